"""What a run's watcher sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

TERMINAL_TYPES = frozenset({"run_stop", "run_error", "run_partial", "run_cancel"})
# An agent's own events are told inside `agent_stream`; these are told as they are.
RAW_AGENT_TYPES = frozenset({"invocation_stop", "invocation_error"})
# What people are asked and told is told as it is, whoever among the participants asks.
PERSON_TYPES = frozenset({"approval_requested", "approval_answered", "signal_awaited"})
# So is what happens between the participants of a composite.
ASSEMBLY_TYPES = frozenset(
    {
        "assembly_step_start",
        "assembly_step_stop",
        "assembly_step_error",
        "assembly_step_retry",
        "assembly_transition",
        "assembly_handoff_loop",
        "assembly_fork",
        "assembly_join",
    }
)


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a run.

    JSON: `{"id": str, "type": str, "data": object}`.

    Run level: run_start `{run_id, thread_id}`; run_stop `{outcome, response, result}`; run_error
    `{outcome, error, message, cleanup_failed}`; run_partial and run_cancel
    `{outcome, response, error}`. One of the last four ends every stream.

    Composite level, each with the `source` of the composite that tells it:
    assembly_step_start `{assembly_id, assembly_kind, participant, step_id, step?, branch_id?}`;
    assembly_step_stop `{assembly_id, assembly_kind, participant, step_id, step?, branch_id?,
    usage}`;
    assembly_step_error `{step_id, participant, attempt, error_type, usage, terminal}`;
    assembly_step_retry `{step_id, participant, attempt, error_type, delay}`;
    assembly_transition `{assembly_id, assembly_kind, step, from, to, error?, branch_id?}`;
    assembly_handoff_loop `{assembly_id, assembly_kind, from, to, count}`;
    assembly_fork `{assembly_id, assembly_kind, from, branches}`;
    assembly_join `{assembly_id, assembly_kind, from, to}`.
    Of a step, assembly_id and assembly_kind are its participant's, else the composite's. `step`
    counts a swarm's or graph's steps, branch_id names the first node of a graph's branch. usage is
    what the attempt used with all below it, empty if it was cut; terminal says that no other
    attempt follows. `error: true` is the way of an error edge; a join's `from` lists the branches'
    last nodes.

    What a run waits for from outside, whoever in it asks: approval_requested `{id, tool_use,
    timeout_s, source}`, where `tool_use` is the call as the model wrote it and `id` is what
    `Run.approve` takes; approval_answered `{id, answer: {verdict: approved|rejected|expired, by?,
    reason?, edited?, arguments?}, source}`; signal_awaited `{name, timeout_s, source}`, once for
    each `Workflow.wait_for` whose signal was not there. Nothing tells of signals that come.

    Subagents: subagent `{event: {event, subagent_id, conversation_id, kind, status, turn, resumed?,
    error_type?, tool_call_id?, tool_name?}, source}`; the inner event is spawned, message_queued,
    turn_started, activity, tool_started, tool_finished, turn_finished, turn_failed or
    factory_failed. It holds no text of messages.

    Agent level, inside agent_stream `{source, event: {type, data}, input?}`: invocation_start
    `{agent_id}`; model_start `{turn}`; message_start `{id, model}`; text_delta `{text}`;
    reasoning_delta `{text}`; tool_call_start `{index, id, name}`; tool_call_delta `{index,
    arguments}`; tool_call_stop `{index, tool_use}`; usage `{usage}`;
    model_retry `{attempt, delay, error_class, partial_text?, http_status?}` (that attempt's text is
    withdrawn); model_stop `{turn, finish, response, usage?}`; tool_start `{tool_use}`;
    tool_stop `{tool_use, result}`; agent_interjection_delivered `{interjection_ids, batch_key}`
    before the model_start of the turn that answers them.
    The root's invocation_stop `{result, metadata}` and invocation_error `{error, usage}` come as
    they are, also when the root is a composite.

    Attributes:
        id: The resume cursor: pass it as `after` to go on behind this event.
        type: See above.
        data: See above.
    """

    id: str
    type: str
    data: Mapping[str, Any]

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended with this event."""
        return self.type in TERMINAL_TYPES

    @property
    def inner_type(self) -> str:
        """The agent's own event type inside an agent_stream; the type itself otherwise."""
        return str(self.inner.get("type", self.type))

    @property
    def inner(self) -> Mapping[str, Any]:
        """The agent's own event inside an agent_stream: `{type, data}`."""
        if self.type != "agent_stream":
            return {"type": self.type, "data": self.data}
        return cast("Mapping[str, Any]", self.data["event"])

    @property
    def text(self) -> str:
        """The piece of text of a text_delta, else empty."""
        inner = self.inner
        return str(inner["data"]["text"]) if inner["type"] == "text_delta" else ""

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {"id": self.id, "type": self.type, "data": dict(self.data)}
