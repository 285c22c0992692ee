"""What an agent does next: run the tool batch, take another turn, finish, try again or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from littleghost.engine.commands import (
    AddUsage,
    Append,
    ChangeState,
    Command,
    Complete,
    Emit,
    Fail,
    Join,
    RecordResult,
    SetState,
    SetText,
    Start,
    TaskSpec,
    TryAgain,
)
from littleghost.errors import (
    OutputLimitError,
    ProtocolError,
    ProviderError,
    ToolCallLimitError,
    TurnLimitError,
    is_retryable,
)
from littleghost.failure import Failure
from littleghost.handoff import (
    TRANSITION,
    Targets,
    is_asked,
    read_call,
    refusals,
)
from littleghost.json_values import dumps
from littleghost.limits import Limits
from littleghost.messages import Message, ToolResult, ToolUse
from littleghost.providers.base import ModelResponse
from littleghost.usage import Usage

_BACKOFF_CAP_S = 16.0
_CUT_CALL = (
    "Not run: your answer was cut at its length limit. Send this call again, with less text."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """Counters of one agent invocation. JSON: `{"turn": n, "calls": n}`."""

    turn: int = 0
    calls: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AgentState:
        """Read the counters."""
        return cls(turn=int(data.get("turn", 0)), calls=int(data.get("calls", 0)))

    def to_json(self) -> dict[str, int]:
        """Give the JSON form."""
        return {"turn": self.turn, "calls": self.calls}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """How one requested tool call will run.

    Attributes:
        asks_s: Seconds that a person has to allow it; None asks nobody.
    """

    queue: str
    exclusive: bool = False
    idempotent: bool = False
    asks_s: float | None = None


def turn_id(participant: str, turn: int) -> str:
    """Name the task of a turn."""
    return f"{participant}-t{turn}"


def call_id(participant: str, turn: int, index: int) -> str:
    """Name the task of a tool call."""
    return f"{participant}-c{turn}.{index}"


def record_of(message: Message) -> str:
    """Write a message as the journal keeps it."""
    return dumps(message.to_json())


def result_record(use_id: str, content: str, status: str) -> str:
    """Write a tool result as the journal keeps it."""
    result = ToolResult(use_id, content, "success" if status == "success" else "error")
    return record_of(Message("tool", (result,)))


def before_turn(state: AgentState, limits: Limits) -> list[Command]:
    """Say what happens instead of the next turn, when it may not be taken.

    Returns:
        Nothing when the turn may go on.
    """
    if limits.max_turns is not None and state.turn >= limits.max_turns:
        return fail(TurnLimitError(f"the agent used its {limits.max_turns} model turns"))
    return []


def otherwise(commands: Sequence[Command]) -> Sequence[Command]:
    """Give what is committed instead of an agent's end, when a message for it has come."""
    return next((item.otherwise for item in commands if isinstance(item, Complete)), ())


def fail(error: BaseException, *, untried: bool = False) -> list[Command]:
    """End the run with an error; untried if that came before the task was begun."""
    return [Emit("invocation_error"), Fail(Failure.of(error).to_json(), untried)]


def turn_done(
    state: AgentState,
    response: ModelResponse,
    plans: Sequence[CallPlan],
    limits: Limits,
    *,
    participant: str,
    turns_queue: str,
    next_index: int,
    targets: Targets = (),
    earlier: Sequence[Command] = (),
) -> list[Command]:
    """Decide after a model answered.

    Args:
        plans: How each tool call of the answer would run, in the model's order.
        next_index: The index that the answer will have in the participant's list.
        targets: To whom the participant may hand its work.
        earlier: What is committed before, whatever follows.
    """
    message = response.message
    commands = [*earlier, *_answered(state, response, next_index)]
    if response.finish == "content_filter":
        return [*commands, *fail(ProtocolError("the model service's content filter stopped it"))]
    uses = message.tool_uses
    if uses and response.finish != "length":
        over = limits.max_tool_calls is not None and state.calls + len(uses) > limits.max_tool_calls
        if over:
            error = ToolCallLimitError(
                f"the agent asked for {state.calls + len(uses)} tool calls in all; "
                f"{limits.max_tool_calls} are allowed"
            )
            return [*commands, *fail(error)]
        if is_asked(uses, targets):
            told = _handoff(state, message, targets, participant, turns_queue, next_index)
            return _with_earlier(commands, told, is_last=_is_last(state, limits))
        batch = _batch(state, uses, plans, limits, participant, turns_queue, next_index)
        return [*commands, *batch]
    if uses:
        return [*commands, *_cut_calls(state, uses, participant, turns_queue)]
    if response.finish == "length":
        return [
            *commands,
            *fail(OutputLimitError("the model's answer was cut at its length limit")),
        ]
    result = {"stop_reason": response.finish, "participant": participant, "message": next_index}
    if participant != "0":
        # A parent decides by what its child said, without reading the child's conversation.
        result["output"] = message.text
    # Blank too: what a child said before must not pass for this answer.
    said = [] if message.text.strip() else [SetText("")]
    after, turn = _next_turn(state, 0, participant, turns_queue, waits=False)
    more = () if _is_last(state, limits) else (*commands, *said, after, Start(tasks=[turn]))
    stop = Emit("invocation_stop", record=next_index)
    return [*commands, *said, stop, Complete(result, otherwise=more)]


def _is_last(state: AgentState, limits: Limits) -> bool:
    """Whether no turn is left to answer a message in; the agent then ends as it would have."""
    return limits.max_turns is not None and state.turn + 1 >= limits.max_turns


def _with_earlier(
    earlier: Sequence[Command], commands: Sequence[Command], *, is_last: bool
) -> list[Command]:
    """Put commands in front, also of what is committed instead, if a turn is left for that."""
    return [
        *earlier,
        *(
            replace(item, otherwise=() if is_last else (*earlier, *item.otherwise))
            if isinstance(item, Complete)
            else item
            for item in commands
        ),
    ]


def _answered(state: AgentState, response: ModelResponse, next_index: int) -> list[Command]:
    """Keep an answer and tell of it, whatever follows."""
    message = response.message
    data: dict[str, Any] = {"turn": state.turn, "finish": response.finish}
    if response.usage is not None:
        data["usage"] = response.usage.to_json()
    commands: list[Command] = [
        AddUsage(response.usage or Usage()),
        Append((record_of(message),), (message,)),
        Emit("model_stop", data, record=next_index),
    ]
    if message.text.strip():
        commands.append(SetText(message.text))
    return commands


def _next_turn(
    state: AgentState, calls: int, participant: str, queue: str, *, waits: bool
) -> tuple[SetState, TaskSpec]:
    after = AgentState(turn=state.turn + 1, calls=state.calls + calls)
    task = TaskSpec(
        id=turn_id(participant, after.turn),
        kind="turn",
        participant=participant,
        queue=queue,
        waits=waits,
    )
    return SetState(after.to_json()), task


def _batch(
    state: AgentState,
    uses: Sequence[ToolUse],
    plans: Sequence[CallPlan],
    limits: Limits,
    participant: str,
    turns_queue: str,
    next_index: int,
) -> list[Command]:
    """Start the tool calls of one answer, and the turn that follows them.

    One exclusive call makes the whole batch run one by one, in the model's order.
    """
    join_id = f"{participant}-b{state.turn}"
    ordered = any(plan.exclusive for plan in plans)
    tasks = [
        TaskSpec(
            id=call_id(participant, state.turn, index),
            kind="call",
            participant=participant,
            queue=plan.queue,
            payload=use.to_json(),
            exclusive=plan.exclusive,
            idempotent=plan.idempotent,
            join=join_id,
            asks_s=plan.asks_s,
            ordered=ordered,
        )
        for index, (use, plan) in enumerate(zip(uses, plans, strict=True))
    ]
    width = 1 if ordered else limits.max_parallel_calls
    after, turn = _next_turn(state, len(uses), participant, turns_queue, waits=True)
    join = Join(
        id=join_id,
        participant=participant,
        members=tuple(task.id for task in tasks),
        width=width,
        then=turn.id,
    )
    started: list[Command] = [
        Emit("tool_start", {"index": index}, record=next_index) for index in range(len(uses))
    ]
    started += [
        Emit(
            "approval_requested",
            {"id": task.id, "index": index, "timeout_s": task.asks_s},
            record=next_index,
        )
        for index, task in enumerate(tasks)
        if task.asks_s is not None
    ]
    return [after, *started, Start(tasks=[*tasks, turn], joins=[join])]


def _cut_calls(
    state: AgentState, uses: Sequence[ToolUse], participant: str, turns_queue: str
) -> list[Command]:
    """Answer the calls of a cut answer with errors: what is missing may change their meaning."""
    why = [_CUT_CALL] * len(uses)
    return _refused_calls(state, uses, why, participant, turns_queue)


def _refused_calls(
    state: AgentState,
    uses: Sequence[ToolUse],
    reasons: Sequence[str],
    participant: str,
    turns_queue: str,
) -> list[Command]:
    """Run no call of an answer: each gets an error, and the model another turn."""
    answers = tuple(
        Message("tool", (ToolResult(use.id, reason, "error"),))
        for use, reason in zip(uses, reasons, strict=True)
    )
    records = tuple(map(record_of, answers))
    after, turn = _next_turn(state, len(uses), participant, turns_queue, waits=False)
    return [Append(records, answers), after, Start(tasks=[turn])]


def _handoff(
    state: AgentState,
    message: Message,
    targets: Targets,
    participant: str,
    turns_queue: str,
    next_index: int,
) -> list[Command]:
    """End the agent's part when its answer is a handoff and nothing else."""
    uses = message.tool_uses
    reasons = refusals(uses, targets)
    if reasons:
        return _refused_calls(state, uses, reasons, participant, turns_queue)
    handoff = read_call(uses[0], targets)
    result = {
        "stop_reason": TRANSITION,
        "participant": participant,
        "message": next_index,
        "output": message.text,
        "handoff": handoff.to_json(),
    }
    # Providers refuse a conversation in which a call has no result.
    told = Message("tool", (ToolResult(uses[0].id, f"Handing off to {handoff.to}."),))
    late = ["Not handed off: a message came in. Answer it first."]
    more = _refused_calls(state, uses, late, participant, turns_queue)
    return [
        Append((record_of(told),), (told,)),
        Emit("invocation_stop", record=next_index),
        Complete(result, otherwise=tuple(more)),
    ]


def turn_failed(
    error: BaseException,
    *,
    failures: int,
    limits: Limits,
    left_s: float | None,
    jitter: float,
    partial_text: str = "",
) -> list[Command]:
    """Decide after a model request failed: wait and try again, or end the run.

    Args:
        failures: How often this turn failed before.
        left_s: Seconds to the run's deadline, or None.
        jitter: A number from 0 to 1; spreads retries, upward only.
        partial_text: What the failed request had said; it is withdrawn.

    Returns:
        A retry only if its wait fits into what is left of the deadline.
    """
    if not is_retryable(error) or failures >= limits.max_model_retries:
        return fail(error)
    hint = error.retry_after_s if isinstance(error, ProviderError) else None
    wait_s = hint if hint is not None else min(_BACKOFF_CAP_S, 2.0**failures)
    wait_s += jitter * min(1.0, 0.25 * wait_s)
    if left_s is not None and wait_s >= left_s:
        return fail(error)
    data: dict[str, Any] = {
        "attempt": failures + 1,
        "delay": round(wait_s, 3),
        "error_class": type(error).__name__,
        "partial_text": partial_text,
    }
    if isinstance(error, ProviderError) and error.status is not None:
        data["http_status"] = error.status
    return [Emit("model_retry", data, live=True), TryAgain(wait_s, failures + 1)]


def call_done(
    task_id: str,
    use: ToolUse,
    content: str,
    status: str,
    operations: Sequence[Mapping[str, Any]] = (),
) -> list[Command]:
    """Record a tool call's result for the batch that waits for it."""
    commands: list[Command] = [
        RecordResult(result_record(use.id, content, status)),
        Emit("tool_stop", {"name": use.name, "status": status}, result=task_id),
    ]
    if operations:
        commands.insert(0, ChangeState(operations))
    return commands
