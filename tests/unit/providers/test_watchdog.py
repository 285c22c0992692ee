import threading

import pytest

from littleghost.errors import CancelledError, DeadlineExceededError
from littleghost.providers import CallControl
from littleghost.providers.watchdog import Watchdog, cut_at_deadline


def test_alarms_go_off_in_the_order_of_their_times():
    dog, order, done = Watchdog(), [], threading.Event()
    dog.after(0.03, lambda: (order.append(3), done.set()))
    dog.after(0.01, lambda: order.append(1))
    dog.after(0.02, lambda: order.append(2))

    assert done.wait(5)
    assert order == [1, 2, 3]


def test_a_cancelled_alarm_does_not_go_off():
    dog, called, done = Watchdog(), [], threading.Event()
    dog.after(0.01, lambda: called.append(1)).cancel()
    dog.after(0.02, done.set)

    assert done.wait(5)
    assert called == []


def test_an_action_that_fails_does_not_stop_the_others(caplog):
    dog, done = Watchdog(), threading.Event()
    dog.after(0, lambda: 1 / 0)
    dog.after(0.001, done.set)

    assert done.wait(5)
    assert "an alarm's action failed" in caplog.text


def test_cancelled_alarms_are_not_kept():
    dog = Watchdog()
    for _ in range(10_000):
        dog.after(3600, lambda: None).cancel()

    assert len(dog._heap) < 200


def test_one_thread_serves_all_alarms():
    dog = Watchdog()
    before = threading.active_count()
    alarms = [dog.after(3600, lambda: None) for _ in range(100)]

    assert threading.active_count() <= before + 1
    for alarm in alarms:
        alarm.cancel()


def test_a_control_is_cut_at_its_deadline():
    control, woken = CallControl(deadline_s=0.02), threading.Event()
    with cut_at_deadline(control), control.closing(woken.set):
        assert woken.wait(5)

    with pytest.raises(DeadlineExceededError):
        control.check()


def test_a_request_that_ends_in_time_is_not_cut():
    control = CallControl(deadline_s=0.5)
    with cut_at_deadline(control):
        pass
    control.cut(CancelledError("first"))

    with pytest.raises(CancelledError, match="first"):
        control.check()
