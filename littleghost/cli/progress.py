"""What a run's watcher writes: a line for everything that is settled. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from littleghost.cli.conversation import arguments_text
from littleghost.cli.escape import one_line, visible
from littleghost.cli.live_rows import tokens
from littleghost.cli.live_tree import BESIDE, Tree, ways
from littleghost.cli.participants import Participant, said
from littleghost.events import StreamEvent
from littleghost.usage import Usage

Mark = Literal[
    "run",
    "start",
    "turn",
    "text",
    "call",
    "result",
    "error",
    "retry",
    "way",
    "step",
    "ask",
    "answer",
    "end",
]
RESULT_CHARS = 300
NAME_CHARS = 40
# Of a participant's place, the names that are shown.
_NAMES = 3
_TOLD_OF_SUBAGENTS = {
    "spawned": "spawned",
    "turn_failed": "failed",
    "factory_failed": "could not be made",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Something that happened and will not change; its text is safe to print.

    Attributes:
        agent: Who it is about; empty for the run's own assembly.
        seconds: How long it took, where the watcher saw it begin.
    """

    mark: Mark
    text: str
    agent: str = ""
    seconds: float | None = None


@dataclass(slots=True)
class Progress:
    """Follows events; see `feed`.

    Attributes:
        tree: What is going on.
        answer: What the run answered, safe to print; empty until it has ended.
        outcome: How the run ended; empty while it goes on.
    """

    tree: Tree = field(default_factory=Tree)
    turn_count: int = 0
    call_count: int = 0
    answer: str = ""
    outcome: str = ""
    _last_said: str = ""

    def feed(self, event: StreamEvent, now: float | None) -> list[Line]:
        """Take in an event and give what is settled by it.

        Args:
            now: The watcher's own clock, in seconds; None for what happened before it watched.
        """
        # The lines first: afterwards the tree has forgotten what began and has ended.
        lines = self._lines(event, now)
        self.tree.feed(event, now)
        return lines

    def _lines(self, event: StreamEvent, now: float | None) -> list[Line]:
        if event.is_terminal:
            return self._end(event)
        if event.type == "run_start":
            return [Line(mark="run", text=one_line(str(event.data.get("run_id", ""))))]
        data = event.data
        if event.type == "agent_stream":
            data = event.inner.get("data") or {}
        source = event.data.get("source") or {}
        agent, kind = _label(source), event.inner_type
        if kind == "model_stop":
            return self._model_stop(self.tree.find(source), agent, data, now)
        if kind == "tool_stop":
            return self._tool_stop(self.tree.find(source), agent, data, now)
        if kind == "assembly_step_stop":
            return self._step_stop(agent, data, now)
        if kind == "approval_answered":
            return _answered(agent, data, self.tree.find(source))
        handle = _HANDLERS.get(kind)
        return handle(agent, data, source) if handle else []

    def _model_stop(
        self, place: Participant | None, agent: str, data: Mapping[str, Any], now: float | None
    ) -> list[Line]:
        turn = place.turn if place else None
        self.turn_count += 1
        number = int(data.get("turn", 0)) + 1
        used = tokens(Usage.from_json(data.get("usage") or {}))
        seconds = _since(turn.began if turn else None, now)
        lines = [Line(mark="turn", agent=agent, text=f"turn {number}  {used}", seconds=seconds)]
        text = (said(data) or (turn.text if turn else "")).strip()
        if text:
            self._last_said = visible(text)
            lines.append(Line(mark="text", agent=agent, text=self._last_said))
        return lines

    def _tool_stop(
        self, place: Participant | None, agent: str, data: Mapping[str, Any], now: float | None
    ) -> list[Line]:
        use, result = data.get("tool_use") or {}, data.get("result") or {}
        call = place.calls.get(str(use.get("id", ""))) if place else None
        self.call_count += 1
        content = one_line(str(result.get("content", "")), RESULT_CHARS)
        return [
            Line(
                mark="result" if result.get("status") == "success" else "error",
                agent=agent,
                text=f"{_name(use)}: {content}",
                seconds=_since(call.began if call else None, now),
            )
        ]

    def _step_stop(self, above: str, data: Mapping[str, Any], now: float | None) -> list[Line]:
        step = self.tree.find({"operation_id": data.get("step_id", "")})
        used = Usage.from_json(data.get("usage") or {})
        text = f"done  {tokens(used)}" if used.total else "done"
        seconds = _since(step.began if step else None, now)
        return [Line(mark="step", agent=_under(above, data), text=text, seconds=seconds)]

    def _end(self, event: StreamEvent) -> list[Line]:
        self.outcome = str(event.data.get("outcome", ""))
        self.answer = visible(str(event.data.get("response") or "").strip())
        lines: list[Line] = []
        if self.answer and self.answer != self._last_said:
            lines.append(Line(mark="text", text=self.answer))
        error = event.data.get("error") or {}
        text = one_line(self.outcome)
        if error:
            text += one_line(f": {error.get('message', '')} ({error.get('code', '')})")
        return [*lines, Line(mark="end", text=text)]


def _invocation_start(agent: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del data
    path = source.get("assembly_path") or ()
    # A step's start is told by the composite.
    is_step = bool(path) and path[-1].get("assembly_kind") not in BESIDE
    return [Line(mark="start", agent=agent, text="started")] if agent and not is_step else []


def _model_retry(agent: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del source
    why = one_line(str(data.get("error_class") or "the worker was lost"), 100)
    return [Line(mark="retry", agent=agent, text=f"attempt failed ({why}); {_again(data)}")]


def _tool_start(agent: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del source
    use = data.get("tool_use") or {}
    arguments = arguments_text(use.get("input") or {})
    return [Line(mark="call", agent=agent, text=f"{_name(use)} {arguments}")]


def _step_start(above: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del source
    return [Line(mark="start", agent=_under(above, data), text="started")]


def _step_error(above: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del source
    why = one_line(str(data.get("error_type", "")), 100)
    text = f"attempt {data.get('attempt', 1)} failed ({why})"
    return [Line(mark="error", agent=_under(above, data), text=text)]


def _step_retry(above: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del source
    return [Line(mark="retry", agent=_under(above, data), text=_again(data))]


def _way(above: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del source
    found = list(ways(data))
    targets = " + ".join(name for name, _ in found)
    return [Line(mark="way", agent=above, text=one_line(f"{found[0][1]} → {targets}", 200))]


def _handoff_loop(above: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del source
    text = one_line(f"{data.get('from')} and {data.get('to')} go round in circles", 200)
    return [Line(mark="error", agent=above, text=text)]


def _requested(agent: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    use = data.get("tool_use") or {}
    call = f"{_name(use)} {arguments_text(use.get('input') or {})}"
    return [_asks(agent, source, call, f"respond RUN {_quoted(data.get('id'))} --approve")]


def _awaited(agent: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    name = one_line(str(data.get("name", "")), 64)
    return [_asks(agent, source, f"signal {name}", f"signal RUN {_quoted(name)} JSON")]


def _asks(agent: str, source: Mapping[str, Any], what: str, command: str) -> Line:
    run_id = _quoted(str(source.get("operation_id", "")).rpartition(":")[0])
    told = f"{what}  waiting: littleghost {command.replace('RUN', run_id, 1)}"
    return Line(mark="ask", agent=agent, text=told)


def _answered(agent: str, data: Mapping[str, Any], place: Participant | None) -> list[Line]:
    asked, answer = one_line(str(data.get("id", "")), 80), data.get("answer") or {}
    calls = place.calls.values() if place else ()
    what = next((f"{call.name} {call.arguments}" for call in calls if call.asked == asked), asked)
    told = str(answer.get("verdict", ""))
    told += " with other arguments" if answer.get("edited") else ""
    told += f" by {answer['by']}" if answer.get("by") else ""
    told += f": {answer['reason']}" if answer.get("reason") else ""
    return [Line(mark="answer", agent=agent, text=f"{what}  {one_line(told, RESULT_CHARS)}")]


def _subagent(agent: str, data: Mapping[str, Any], source: Mapping[str, Any]) -> list[Line]:
    del agent, source
    event = data.get("event") or {}
    told = _TOLD_OF_SUBAGENTS.get(str(event.get("event", "")))
    if told is None:
        return []
    who = one_line(str(event.get("subagent_id", "")), NAME_CHARS)
    why = f" ({event['error_type']})" if event.get("error_type") else ""
    mark: Mark = "start" if told == "spawned" else "error"
    text = one_line(f"{told}{why}", 200)
    return [Line(mark=mark, agent=who, text=text)]


# What needs no memory, by the type of the event.
_HANDLERS = {
    "invocation_start": _invocation_start,
    "model_retry": _model_retry,
    "tool_start": _tool_start,
    "assembly_step_start": _step_start,
    "assembly_step_error": _step_error,
    "assembly_step_retry": _step_retry,
    "assembly_transition": _way,
    "assembly_fork": _way,
    "assembly_join": _way,
    "assembly_handoff_loop": _handoff_loop,
    "approval_requested": _requested,
    "signal_awaited": _awaited,
    "subagent": _subagent,
}


def _label(source: Mapping[str, Any]) -> str:
    """Name a participant by its place; the run's own assembly has no name."""
    path = source.get("assembly_path") or ()
    names = [one_line(str(part.get("participant", "")), NAME_CHARS) for part in path]
    if not names and source.get("parent_operation_id"):
        names = [one_line(str(source.get("agent_id", "")), NAME_CHARS)]
    return "/".join(names[-_NAMES:])


def _under(above: str, data: Mapping[str, Any]) -> str:
    """Name a step of a composite."""
    name = one_line(str(data.get("participant", "")), NAME_CHARS)
    return "/".join([*above.split("/"), name][-_NAMES:]) if above else name


def _quoted(value: object) -> str:
    """Write a word for a shell."""
    return shlex.quote(one_line(str(value), 200))


def _name(use: Mapping[str, Any]) -> str:
    return one_line(str(use.get("name", "")), 64)


def _again(data: Mapping[str, Any]) -> str:
    delay = data.get("delay")
    return f"again in {delay:g} s" if isinstance(delay, int | float) and delay else "again"


def _since(began: float | None, now: float | None) -> float | None:
    return None if began is None or now is None else now - began
