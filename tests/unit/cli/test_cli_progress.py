"""What a watcher makes of events."""

from __future__ import annotations

from typing import Any

from littleghost.cli.plain import plain_text
from littleghost.cli.progress import Progress
from littleghost.events import StreamEvent
from tests.unit.cli.flow import Flow


def _agent(
    kind: str, data: dict[str, Any], who: str = "0", parent: str | None = None
) -> StreamEvent:
    source = {"agent_id": f"agent{who}", "operation_id": who, "parent_operation_id": parent}
    return StreamEvent(
        "1", "agent_stream", {"source": source, "event": {"type": kind, "data": data}}
    )


def _said(text: str, turn: int = 0) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    usage = {"input": 7, "output": 5}
    return {"turn": turn, "usage": usage, "response": {"message": message}}


def _lines(progress: Progress, *events: StreamEvent) -> list[str]:
    return [
        plain_text(line)
        for number, event in enumerate(events)
        for line in progress.feed(event, float(number))
    ]


def test_a_turn_with_a_call() -> None:
    use = {"id": "c1", "name": "add", "input": {"a": 2}}
    result = {"tool_use_id": "c1", "content": "5", "status": "success"}
    progress = Progress()
    assert _lines(
        progress,
        StreamEvent("1", "run_start", {"run_id": "r"}),
        _agent("model_start", {"turn": 0}),
        _agent("text_delta", {"text": "let "}),
        _agent("model_stop", _said("let me")),
        _agent("tool_start", {"tool_use": use}),
        _agent("tool_stop", {"tool_use": {"id": "c1", "name": "add"}, "result": result}),
        StreamEvent("9", "run_stop", {"outcome": "completed"}),
    ) == [
        "run r",
        "+ turn 1  7 in, 5 out  (2.00 s)",
        "    let me",
        '  → add {"a":2}',
        "  ← add: 5  (1.00 s)",
        "= completed",
    ]
    assert (progress.turn_count, progress.call_count, progress.outcome) == (1, 1, "completed")


def test_text_of_a_failed_attempt_is_withdrawn() -> None:
    progress = Progress()
    lines = _lines(
        progress,
        _agent("model_start", {"turn": 0}),
        _agent("text_delta", {"text": "wrong"}),
        _agent("model_retry", {"attempt": 1, "delay": 2.0, "error_class": "OverloadedError"}),
    )
    assert lines == ["  ! attempt failed (OverloadedError); again in 2 s"]
    turn = progress.tree.root.turn
    assert turn is not None
    assert turn.text == ""


def test_agents_of_one_run_do_not_mix() -> None:
    progress = Progress()
    _lines(
        progress,
        _agent("model_start", {"turn": 0}),
        _agent("model_start", {"turn": 0}, "1", "0"),
        _agent("text_delta", {"text": "root"}),
        _agent("text_delta", {"text": "child"}, "1", "0"),
    )
    (child,) = progress.tree.root.children.values()
    assert [place.turn.text for place in (progress.tree.root, child)] == ["root", "child"]
    lines = _lines(progress, _agent("model_stop", _said("child"), "1", "0"))
    assert lines == ["+ [agent1] turn 1  7 in, 5 out  (-1.00 s)", "    [agent1] child"]
    assert progress.tree.root.turn is not None
    assert child.turn is None


def test_a_failed_run_says_why_safely() -> None:
    error = {"code": "overloaded", "message": "busy \x1b[2J"}
    event = StreamEvent("1", "run_error", {"outcome": "failed", "error": error})
    assert _lines(Progress(), event) == ["= failed: busy \\x1b[2J (overloaded)"]


def test_unknown_events_are_passed_over() -> None:
    assert _lines(Progress(), _agent("from_the_future", {}), StreamEvent("1", "other", {})) == []


def test_a_composite_is_told_by_the_places_of_its_participants() -> None:
    flow = Flow("graph")
    lines = _lines(
        Progress(),
        flow.start("sort"),
        flow.stop("sort", input=7, output=2),
        flow.fork("sort", "left", "right"),
        flow.start("left"),
        flow.error("left", again=True),
        flow.retry("left", 1.5),
        flow.start("left"),
        flow.agent("left", "model_start", {"turn": 0}),
        flow.agent("left", "model_stop", _said("the answer")),
        flow.join(["left", "right"], "end"),
        StreamEvent("9", "run_stop", {"outcome": "completed", "response": "42"}),
    )
    assert lines == [
        "+ [sort] started",
        "✓ [sort] done  7 in, 2 out  (1.00 s)",
        "> sort → left + right",
        "+ [left] started",
        "  ✗ [left] attempt 1 failed (OverloadedError)",
        "  ! [left] again in 1.5 s",
        "+ [left] started",
        "+ [left] turn 1  7 in, 5 out  (1.00 s)",
        "    [left] the answer",
        "> left + right → end",
        # What the run answers was said by nobody.
        "    42",
        "= completed",
    ]


def test_what_was_there_before_the_watching_has_no_times() -> None:
    progress, flow = Progress(), Flow("workflow")
    progress.feed(flow.start("a"), None)
    (line,) = progress.feed(flow.stop("a"), 5.0)
    assert line.seconds is None


def test_questions_and_answers_say_how_to_answer() -> None:
    use = {"id": "c1", "name": "refund", "input": {"eur": 7}}
    source = {"agent_id": "payer", "operation_id": "00-r1:0.1", "parent_operation_id": "00-r1:0"}

    def told(kind: str, **data: Any) -> StreamEvent:
        return StreamEvent("1", kind, {**data, "source": source})

    progress = Progress()
    start = _agent("tool_start", {"tool_use": use}, "00-r1:0.1", "00-r1:0")
    asked = told("approval_requested", id="0.1-c0.0", tool_use=use, timeout_s=60)
    lines = _lines(progress, start, asked)
    assert lines[1] == (
        '  ? [payer] refund {"eur":7}  waiting: littleghost respond 00-r1 0.1-c0.0 --approve'
    )
    call = progress.tree.root.calls["c1"]
    assert (call.state, call.asked) == ("asks", "0.1-c0.0")
    answer = {"verdict": "rejected", "by": "ann\x1b[2J", "reason": "no"}
    assert _lines(
        progress,
        told("approval_answered", id="0.1-c0.0", answer=answer),
        told("approval_answered", id="0.1-c9.9", answer={"verdict": "expired"}),
        told("signal_awaited", name="paid", timeout_s=None),
        told("signal_awaited", name="$(rm)", timeout_s=None),
    ) == [
        '  · [payer] refund {"eur":7}  rejected by ann\\x1b[2J: no',
        "  · [payer] 0.1-c9.9  expired",
        "  ? [payer] signal paid  waiting: littleghost signal 00-r1 paid JSON",
        "  ? [payer] signal $(rm)  waiting: littleghost signal 00-r1 '$(rm)' JSON",
    ]
    assert call.state == "running"
