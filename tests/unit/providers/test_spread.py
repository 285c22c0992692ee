from contextlib import ExitStack

from littleghost.providers.spread import Spread


class FakeTransport:
    def __init__(self):
        self.is_closed = False

    def close(self):
        self.is_closed = True


def test_a_transport_is_made_only_when_all_others_are_full():
    spread = Spread(FakeTransport, limit=2)
    with ExitStack() as stack:
        lent = [stack.enter_context(spread.borrow()) for _ in range(5)]
        assert spread.size == 3
        assert [lent.count(transport) for transport in dict.fromkeys(lent)] == [2, 2, 1]
    with spread.borrow() as again:
        assert again is lent[0]


def test_transports_that_carry_nothing_are_closed():
    spread = Spread(FakeTransport, limit=1, idle_s=0)
    with spread.borrow() as used:
        with spread.borrow() as idle:
            pass
        spread.reap()
        assert idle.is_closed
        assert not used.is_closed
    spread.reap()

    assert used.is_closed
    assert spread.size == 0


def test_closing_closes_what_is_there_and_more_can_be_made():
    spread = Spread(FakeTransport)
    with spread.borrow() as first:
        pass
    spread.close()

    assert first.is_closed
    with spread.borrow() as second:
        assert not second.is_closed
