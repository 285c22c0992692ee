"""What a run's watcher knows: lines that are settled, and what is going on right now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from littleghost.cli.conversation import arguments_text
from littleghost.cli.escape import one_line, visible
from littleghost.cli.pending import answer_command
from littleghost.events import StreamEvent
from littleghost.usage import Usage

Mark = Literal[
    "run", "start", "turn", "text", "call", "result", "error", "retry", "ask", "answer", "end"
]
RESULT_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Something that happened and will not change; its text is safe to print.

    Attributes:
        agent: Who it is about; empty for the run's own agent.
        seconds: How long it took, where the watcher saw it begin.
    """

    mark: Mark
    text: str
    agent: str = ""
    seconds: float | None = None


@dataclass(slots=True)
class Turn:
    """A model turn that is going on."""

    agent: str
    number: int
    began: float
    text: str = ""
    reasoning: bool = False


@dataclass(slots=True)
class Call:
    """A tool call that is going on.

    Attributes:
        asked: The id under which a person is asked to allow it; empty when nobody is.
    """

    agent: str
    name: str
    arguments: str
    began: float
    asked: str = ""


@dataclass(slots=True)
class Progress:
    """Follows events; see `feed`.

    Attributes:
        turns: Turns going on, by participant.
        calls: Calls going on, by participant and call id.
        asked: Calls that a person must allow, by the id to answer under.
        outcome: How the run ended; empty while it goes on.
    """

    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    calls: dict[tuple[str, str], Call] = field(default_factory=dict[tuple[str, str], Call])
    asked: dict[str, str] = field(default_factory=dict[str, str])
    turn_count: int = 0
    call_count: int = 0
    usage: Usage = field(default_factory=Usage)
    outcome: str = ""

    def feed(self, event: StreamEvent, now: float) -> list[Line]:
        """Take in an event and give what is settled by it.

        Args:
            now: The watcher's own clock, in seconds.
        """
        if event.is_terminal:
            return self._end(event)
        if event.type == "run_start":
            return [Line(mark="run", text=one_line(str(event.data.get("run_id", ""))))]
        source = event.data.get("source") or {}
        key = str(source.get("operation_id", ""))
        agent = (
            one_line(str(source.get("agent_id", ""))) if source.get("parent_operation_id") else ""
        )
        data = event.inner.get("data") or {}
        handle = getattr(self, f"_{event.inner_type}", None) if source else None
        return handle(key, agent, data, now) if handle else []

    def _invocation_start(
        self, key: str, agent: str, data: Mapping[str, Any], now: float
    ) -> list[Line]:
        del key, data, now
        return [Line(mark="start", agent=agent, text="started")] if agent else []

    def _model_start(self, key: str, agent: str, data: Mapping[str, Any], now: float) -> list[Line]:
        self.turns[key] = Turn(agent, int(data.get("turn", 0)) + 1, now)
        return []

    def _text_delta(self, key: str, agent: str, data: Mapping[str, Any], now: float) -> list[Line]:
        del agent, now
        if key in self.turns:
            self.turns[key].text += str(data.get("text", ""))
        return []

    def _reasoning_delta(
        self, key: str, agent: str, data: Mapping[str, Any], now: float
    ) -> list[Line]:
        del agent, data, now
        if key in self.turns:
            self.turns[key].reasoning = True
        return []

    def _model_retry(self, key: str, agent: str, data: Mapping[str, Any], now: float) -> list[Line]:
        del now
        if key in self.turns:
            # What that attempt said is withdrawn.
            self.turns[key].text = ""
        why = one_line(str(data.get("error_class") or "the worker was lost"), 100)
        delay = data.get("delay")
        when = f"again in {delay:g} s" if isinstance(delay, int | float) and delay else "again"
        return [Line(mark="retry", agent=agent, text=f"attempt failed ({why}); {when}")]

    def _model_stop(self, key: str, agent: str, data: Mapping[str, Any], now: float) -> list[Line]:
        turn = self.turns.pop(key, None)
        self.turn_count += 1
        used = Usage.from_json(data.get("usage") or {})
        self.usage += used
        number = int(data.get("turn", 0)) + 1
        tokens = (
            f"{used.total - used.output - used.reasoning} in, {used.output + used.reasoning} out"
        )
        seconds = now - turn.began if turn else None
        lines = [Line(mark="turn", agent=agent, text=f"turn {number}  {tokens}", seconds=seconds)]
        said = _said(data) or (turn.text if turn else "")
        if said.strip():
            lines.append(Line(mark="text", agent=agent, text=visible(said.strip())))
        return lines

    def _tool_start(self, key: str, agent: str, data: Mapping[str, Any], now: float) -> list[Line]:
        use = data.get("tool_use") or {}
        call = Call(
            agent,
            one_line(str(use.get("name", "")), 64),
            arguments_text(use.get("input") or {}),
            now,
        )
        self.calls[(key, str(use.get("id", "")))] = call
        return [Line(mark="call", agent=agent, text=f"{call.name} {call.arguments}")]

    def _tool_stop(self, key: str, agent: str, data: Mapping[str, Any], now: float) -> list[Line]:
        use, result = data.get("tool_use") or {}, data.get("result") or {}
        call = self.calls.pop((key, str(use.get("id", ""))), None)
        self.call_count += 1
        content = one_line(str(result.get("content", "")), RESULT_CHARS)
        return [
            Line(
                mark="result" if result.get("status") == "success" else "error",
                agent=agent,
                text=f"{one_line(str(use.get('name', '')), 64)}: {content}",
                seconds=now - call.began if call else None,
            )
        ]

    def _approval_requested(
        self, key: str, agent: str, data: Mapping[str, Any], now: float
    ) -> list[Line]:
        del now
        use = data.get("tool_use") or {}
        call = f"{one_line(str(use.get('name', '')), 64)} {arguments_text(use.get('input') or {})}"
        asked = str(data.get("id", ""))
        self.asked[asked] = call
        running = self.calls.get((key, str(use.get("id", ""))))
        if running:
            running.asked = asked
        return [_asks(key, agent, call, "approval", asked)]

    def _approval_answered(
        self, key: str, agent: str, data: Mapping[str, Any], now: float
    ) -> list[Line]:
        del key, now
        for running in self.calls.values():
            if running.asked == data.get("id"):
                running.asked = ""
        call = self.asked.pop(str(data.get("id", "")), str(data.get("id", "")))
        answer = data.get("answer") or {}
        said = str(answer.get("verdict", ""))
        said += " with other arguments" if answer.get("edited") else ""
        said += f" by {answer['by']}" if answer.get("by") else ""
        said += f": {answer['reason']}" if answer.get("reason") else ""
        return [Line(mark="answer", agent=agent, text=f"{call}  {one_line(said)}")]

    def _signal_awaited(
        self, key: str, agent: str, data: Mapping[str, Any], now: float
    ) -> list[Line]:
        del now
        name = one_line(str(data.get("name", "")), 64)
        return [_asks(key, agent, f"signal {name}", "signal", name)]

    def _end(self, event: StreamEvent) -> list[Line]:
        self.turns.clear()
        self.calls.clear()
        self.asked.clear()
        self.outcome = str(event.data.get("outcome", ""))
        error = event.data.get("error") or {}
        text = self.outcome
        if error:
            text += one_line(f": {error.get('message', '')} ({error.get('code', '')})")
        return [Line(mark="end", text=text)]


def _asks(key: str, agent: str, what: str, kind: str, pending_id: str) -> Line:
    command = answer_command(key.rpartition(":")[0], kind, pending_id)
    return Line(mark="ask", agent=agent, text=f"{what}  waiting: {command}")


def _said(data: Mapping[str, Any]) -> str:
    message = (data.get("response") or {}).get("message") or {}
    blocks = message.get("content") or ()
    return "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
