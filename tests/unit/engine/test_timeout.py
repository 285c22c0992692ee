"""A tool's time limit: by a signal in the main thread, by leaving the code behind elsewhere."""

import contextvars
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from littleghost.engine.slot import occupied, refuse_blocking
from littleghost.engine.timeout import call_within
from littleghost.errors import BlockingCallError, ToolError, ToolTimeoutError

LONG_S = 30.0


def in_thread(work: Callable[[], Any]) -> Any:
    """Run in another thread, as a pool of threads does, and give the result or raise."""
    outcome: list[Any] = []

    def body() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join(LONG_S)
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


@pytest.fixture(params=["main", "thread"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Any]], Any]:
    return in_thread if request.param == "thread" else lambda work: work()


def no_timeout() -> None:
    raise AssertionError("time was not up")


def test_a_result_within_the_time_is_given(run: Any) -> None:
    assert run(lambda: call_within(lambda: 5, LONG_S, no_timeout)) == 5
    assert run(lambda: call_within(lambda: None, None, no_timeout)) is None


@pytest.mark.parametrize("error", [ValueError("x"), ToolError("y"), SystemExit(1)])
def test_the_codes_own_error_is_raised(run: Any, error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        run(lambda: call_within(fail, LONG_S, no_timeout))
    assert caught.value is error


def test_code_that_waits_is_ended_and_told(run: Any) -> None:
    told: list[str] = []
    never = threading.Event()
    started = time.monotonic()
    with pytest.raises(ToolTimeoutError, match=r"within 0\.05 s"):
        run(lambda: call_within(lambda: never.wait(LONG_S), 0.05, lambda: told.append("cut")))
    assert time.monotonic() - started < 5
    assert told == ["cut"]
    never.set()


def test_in_the_main_thread_busy_code_is_interrupted_where_it_is() -> None:
    cleaned: list[str] = []

    def busy() -> None:
        try:
            while True:
                pass
        finally:
            cleaned.append("up")

    with pytest.raises(ToolTimeoutError):
        call_within(busy, 0.05, lambda: None)
    assert cleaned == ["up"]


def test_the_main_threads_alarm_is_as_it_was_afterwards() -> None:
    """Somebody else's alarm, such as this test's own time limit, goes on."""
    before, (others_s, _) = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    with pytest.raises(ToolTimeoutError):
        call_within(lambda: time.sleep(LONG_S), 0.02, lambda: None)
    assert signal.getsignal(signal.SIGALRM) is before
    left_s, _ = signal.getitimer(signal.ITIMER_REAL)
    assert others_s - 5 < left_s <= others_s


def test_an_alarm_that_was_set_before_still_rings() -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    others = signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        call_within(lambda: 1, LONG_S, no_timeout)
        deadline = time.monotonic() + 2
        while not rung and time.monotonic() < deadline:
            pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, *others)
        signal.signal(signal.SIGALRM, before)
    assert rung


def test_in_a_thread_the_code_keeps_its_context_and_goes_on_unseen() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []
    release, ended = threading.Event(), threading.Event()

    def slow() -> None:
        seen.append(variable.get())
        release.wait(LONG_S)
        ended.set()

    def work() -> None:
        variable.set("ann")
        call_within(slow, 0.05, lambda: None)

    with pytest.raises(ToolTimeoutError):
        in_thread(work)
    assert seen == ["ann"]
    release.set()
    assert ended.wait(LONG_S)


def test_blocking_calls_are_refused_inside_the_code_as_well() -> None:
    """P3: the code with a limit runs in a thread of its own, which is inside the task, too."""

    def work() -> None:
        with occupied():
            call_within(lambda: refuse_blocking("Agent.ask()"), LONG_S, no_timeout)

    with pytest.raises(BlockingCallError, match="enqueue"):
        in_thread(work)
