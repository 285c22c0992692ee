"""One tool call: find the tool, run it, record its result for the model."""

from __future__ import annotations

from typing import Any, cast

from littleghost.delegation import AssemblyTool
from littleghost.engine.approval import refusal, with_note
from littleghost.engine.commands import Command
from littleghost.engine.decide import agent as decide
from littleghost.engine.delegate import answer_of, start_child
from littleghost.engine.ports import Collaborators, Lease, RunningAgent
from littleghost.engine.subagent_call import control_fields, request, told_by_call
from littleghost.engine.timeout import call_within
from littleghost.engine.view import (
    CONTEXT_STATE,
    TOOL_STATE,
    binding_of,
    opened_tools,
    state_of,
)
from littleghost.errors import CleanupError, ToolError
from littleghost.messages import ToolUse, block_from_json
from littleghost.providers.base import CallControl
from littleghost.registry import name_of
from littleghost.state import State
from littleghost.subagents import ControlTool
from littleghost.tool_output import ToolOutcome, cut_middle

_UNKNOWN_OUTCOME = (
    "The outcome of this call is unknown: the worker that ran it died before it could say how it "
    "ended. It may or may not have taken effect, and it was not repeated."
)
_LOST = "This call could not be finished: the workers that ran it died {times} times."


class Call:
    """Performs one tool call under its lease."""

    def __init__(self, lease: Lease, env: Collaborators, control: CallControl) -> None:
        self._lease = lease
        self._env = env
        self._control = control
        self._use = cast("ToolUse", block_from_json(lease.payload))

    def perform(self) -> list[Command]:
        """Run the tool, unless that would repeat a call that must not be repeated.

        Raises:
            ControlError: The run is being stopped.
        """
        lease = self._lease
        if lease.lost and not lease.idempotent:
            return self._done(_UNKNOWN_OUTCOME, "error")
        if lease.lost >= self._env.max_lost:
            return self._done(_LOST.format(times=lease.lost), "error")
        self._control.check()
        if self._use.error is not None:
            return self._done(f"Invalid tool input: {self._use.error}", "error")
        rejected = refusal(lease.answer)
        if rejected is not None:
            return self._done(self._cut(rejected), "error")
        if lease.awaited is not None:
            content, status = answer_of(lease.awaited)
            return self._done(self._cut(content), status)
        try:
            return self._run()
        except CleanupError as error:
            return decide.fail(error)
        except ToolError as error:
            return self._failed(str(error), error)
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - see below
            # Such as SystemExit, or a coroutine's cancellation: a tool must not end the worker's
            # process, nor leave its task without a result.
            return self._failed(f"Tool failed ({type(error).__name__})", error)

    def _run(self) -> list[Command]:
        lease = self._lease
        binding = binding_of(lease, self._control)
        own_prefix = f"{TOOL_STATE}{self._use.name}/"
        own = state_of(lease, own_prefix)
        binding = binding.with_(
            state=own, idempotency_key=f"{lease.origin or lease.run_id}:{lease.task_id}"
        )
        agent = cast("RunningAgent", self._env.assemblies.lookup(lease.assembly).bind(binding))
        limit = agent.limits.max_tool_result_tokens
        with opened_tools(agent) as toolset:
            tool = toolset.build(self._use.name, binding.with_(agent=agent))
            if isinstance(tool, AssemblyTool):
                given = tool.schema().read(self._use.input)
                if not tool.preserve_context:
                    return start_child(lease, self._env, tool.assembly, self._use)
                fields = {
                    "name": tool.name,
                    "assembly": name_of(tool.assembly),
                    "message": given["input"],
                }
                return request(lease, self._env, self._use, "ask", fields)
            if isinstance(tool, ControlTool):
                given = tool.schema().read(self._use.input)
                fields = control_fields(tool.verb, given, tool.kinds)
                return request(lease, self._env, self._use, tool.verb, fields)
            outcome = call_within(
                lambda: tool.execute(self._use.input, max_result_tokens=limit),
                tool.timeout_s,
                self._control.cut,
            )
        shared = binding.context.state
        operations = [*_named(CONTEXT_STATE, shared), *_named(own_prefix, own)]
        return self._done(outcome.content, outcome.status, operations)

    def _cut(self, content: str) -> str:
        agent = self._env.assemblies.lookup(self._lease.assembly)
        return cut_middle(content, agent.limits.max_tool_result_tokens)

    def _failed(self, text: str, error: BaseException) -> list[Command]:
        return self._done(ToolOutcome.failure(text, error).content, "error")

    def _done(self, content: str, status: str, operations: Any = ()) -> list[Command]:
        content = with_note(content, self._lease.answer, self._use)
        return [
            *decide.call_done(self._lease.task_id, self._use, content, status, operations),
            *told_by_call(self._lease.header, self._use.id, self._use.name, "tool_finished"),
        ]


def _named(prefix: str, state: State) -> list[dict[str, Any]]:
    """Give the changes of a state under its keys in the journal."""
    return [{**operation, "key": prefix + operation["key"]} for operation in state.operations]
