"""What a watcher makes of events."""

from __future__ import annotations

from typing import Any

from littleghost.cli.plain import plain_text
from littleghost.cli.progress import Progress
from littleghost.events import StreamEvent


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
    assert progress.turns["0"].text == ""


def test_agents_of_one_run_do_not_mix() -> None:
    progress = Progress()
    _lines(
        progress,
        _agent("model_start", {"turn": 0}),
        _agent("model_start", {"turn": 0}, "1", "0"),
        _agent("text_delta", {"text": "root"}),
        _agent("text_delta", {"text": "child"}, "1", "0"),
    )
    assert [turn.text for turn in progress.turns.values()] == ["root", "child"]
    lines = _lines(progress, _agent("model_stop", _said("child"), "1", "0"))
    assert lines == ["+ [agent1] turn 1  7 in, 5 out", "    [agent1] child"] or lines[1:] == [
        "    [agent1] child"
    ]
    assert list(progress.turns) == ["0"]


def test_a_failed_run_says_why_safely() -> None:
    error = {"code": "overloaded", "message": "busy \x1b[2J"}
    event = StreamEvent("1", "run_error", {"outcome": "failed", "error": error})
    assert _lines(Progress(), event) == ["= failed: busy \\x1b[2J (overloaded)"]


def test_unknown_events_are_passed_over() -> None:
    assert _lines(Progress(), _agent("from_the_future", {}), StreamEvent("1", "other", {})) == []


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
    assert [call.asked for call in progress.calls.values()] == ["0.1-c0.0"]
    answer = {"verdict": "rejected", "by": "ann\x1b[2J", "reason": "no"}
    assert _lines(
        progress,
        told("approval_answered", id="0.1-c0.0", answer=answer),
        told("approval_answered", id="0.1-c9.9", answer={"verdict": "expired"}),
        told("signal_awaited", name="paid", timeout_s=None),
    ) == [
        '  · [payer] refund {"eur":7}  rejected by ann\\x1b[2J: no',
        "  · [payer] 0.1-c9.9  expired",
        "  ? [payer] signal paid  waiting: littleghost signal 00-r1 paid JSON",
    ]
    assert progress.asked == {}
    assert [call.asked for call in progress.calls.values()] == [""]
