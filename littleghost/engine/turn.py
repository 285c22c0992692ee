"""One model turn: ask the model, pass its text on as it comes, decide what follows."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from littleghost.context import Binding
from littleghost.delegation import AssemblyTool
from littleghost.engine.approval import asks_s
from littleghost.engine.commands import Command, SetText
from littleghost.engine.decide import agent as decide
from littleghost.engine.decide.agent import AgentState, CallPlan
from littleghost.engine.incoming import fit_data, fit_message
from littleghost.engine.interjection import framed, replies
from littleghost.engine.ports import Collaborators, Lease, LiveWriter, RunningAgent, UseIds
from littleghost.engine.subagent_call import told_by_call, told_by_turn
from littleghost.engine.view import binding_of, opened_tools
from littleghost.errors import (
    CleanupError,
    ControlError,
    LittleGhostError,
    ProtocolError,
    ToolError,
)
from littleghost.handoff import HANDOFF, specification, targets_of
from littleghost.messages import Message, Reasoning, Text, ToolUse, system
from littleghost.providers.base import CallControl, ModelRequest, ModelResponse
from littleghost.subagents import ControlTool
from littleghost.toolset import Toolset

# Queues are told apart by the work they hold; a tool may name another one.
TURNS, TOOLS = "turns", "tools"


class TurnCutError(ControlError):
    """The turn was cut; carries what the model had said so far."""

    code = "turn_cut"

    def __init__(self, cause: ControlError, text: str) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.text = text


class Turn:
    """Performs one turn under its lease."""

    def __init__(self, lease: Lease, env: Collaborators, control: CallControl) -> None:
        self._lease = lease
        self._env = env
        self._control = control
        self._text: list[str] = []

    def perform(self) -> list[Command]:
        """Take the turn and say what follows.

        Raises:
            TurnCutError: The run is being stopped, or the worker is.
        """
        try:
            return self._perform()
        except CleanupError as error:
            return decide.fail(error)
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - see below
            # Such as SystemExit, or a coroutine's cancellation, out of the application's code: it
            # must not end the worker's process, nor leave its task without an outcome.
            return decide.fail(error)

    def _perform(self) -> list[Command]:
        lease = self._lease
        state = AgentState.from_json(lease.state)
        binding = binding_of(lease, self._control)
        agent = cast("RunningAgent", self._env.assemblies.lookup(lease.assembly).bind(binding))
        stopped = decide.before_turn(state, agent.limits)
        if stopped:
            return stopped
        with opened_tools(agent) as toolset:
            return self._take(agent, toolset, state, binding.with_(agent=agent))

    def _take(
        self, agent: RunningAgent, toolset: Toolset, state: AgentState, binding: Binding
    ) -> list[Command]:
        lease = self._lease
        writer = self._env.live.open(lease, self._control)
        writer.add("model_start", {"turn": state.turn})
        try:
            response = self._ask(self._request(agent, toolset, state), writer)
        except CleanupError:
            writer.rest()
            raise
        except ControlError as error:
            writer.rest()
            raise TurnCutError(error, "".join(self._text)) from error
        except LittleGhostError as error:
            return [*writer.rest(), *self._failed(error, agent)]
        message = self._normal(fit_message(response.message))
        if message is not response.message:
            response = replace(response, message=message)
        return decide.turn_done(
            state,
            response,
            [self._plan(toolset, use, binding) for use in response.message.tool_uses],
            agent.limits,
            participant=lease.participant,
            turns_queue=self._env.queue(TURNS, lease.lane),
            next_index=len(lease.records),
            targets=targets_of(lease.header),
            earlier=(
                *writer.rest(),
                *replies(lease.records, response.message),
                *self._progress(state.turn, response.message),
            ),
        )

    def _request(
        self, agent: RunningAgent, toolset: Toolset, state: AgentState
    ) -> tuple[Any, ModelRequest]:
        lease = self._lease
        resolved = self._env.models.resolve(agent.model_selection())
        records = cast("list[Message]", lease.records)
        # Reasoning of earlier runs is not sent again: providers accept only their own, and only
        # within one exchange.
        messages = records
        if lease.base:
            older = [message.without_reasoning() for message in records[: lease.base]]
            messages = older + records[lease.base :]
        messages = framed(messages)
        prompt = agent.prompt_text()
        if prompt.strip():
            messages = [system(prompt), *messages]
        settings: dict[str, Any] = {
            **resolved.settings,
            **agent.limits.model_settings,
            **cast("Mapping[str, Any]", lease.memory.invocation.get("settings", {})),
            **cast("Mapping[str, Any]", lease.header.get("set", {})),
        }
        offered = agent.offered(toolset.specifications(), state.turn)
        targets = targets_of(lease.header)
        if targets:
            own = [spec for spec in offered if spec.name != HANDOFF]
            offered = [*own, specification(targets)]
        return resolved.provider, ModelRequest(
            model=resolved.model, messages=messages, tools=offered, settings=settings
        )

    def _ask(self, asked: tuple[Any, ModelRequest], writer: LiveWriter) -> ModelResponse:
        provider, request = asked
        response: ModelResponse | None = None
        self._control.check()
        for event in provider.stream(request, self._control):
            if event.type == "message_stop":
                response = event.response
                continue
            if event.type in _LIVE:
                data = fit_data(event.type, event.data)
                if event.type == "text_delta" and data:
                    self._text.append(data["text"])
                if data is not None:
                    writer.add(event.type, data)
            self._control.check()
        if response is None:
            raise ProtocolError(f"the answer of {request.model!r} ended without a message_stop")
        return response

    def _failed(self, error: LittleGhostError, agent: RunningAgent) -> Sequence[Command]:
        return decide.turn_failed(
            error,
            failures=self._lease.failures,
            limits=agent.limits,
            left_s=self._control.remaining_s(),
            jitter=random.random(),
            partial_text="".join(self._text),
        )

    def _progress(self, turn: int, message: Message) -> list[Command]:
        told = told_by_turn(self._lease, turn, message.text)
        for use in message.tool_uses:
            told += told_by_call(self._lease.header, use.id, use.name, "tool_started")
        return told

    def _plan(self, toolset: Toolset, use: ToolUse, binding: Binding) -> CallPlan:
        """Say how a call will run; one that cannot run gets its error result anywhere."""
        queue = self._env.queue(TOOLS, self._lease.lane)
        try:
            tool = toolset.get(use.name)
        except ToolError:
            return CallPlan(queue=queue, idempotent=True)
        if issubclass(tool, AssemblyTool | ControlTool):
            # It runs no code of the application, so whoever took the turn may go on with it.
            queue = self._env.queue(TURNS, self._lease.lane)
        elif tool.queue:
            queue = self._env.queue(tool.queue, self._lease.lane)
        return CallPlan(
            queue=queue,
            exclusive=tool.exclusive,
            idempotent=tool.idempotent,
            asks_s=asks_s(tool, use, toolset, binding),
        )

    def _normal(self, message: Message) -> Message:
        """Give every tool call an id of its own in the whole run: results are found by it."""
        if not message.tool_uses:
            return message
        used = self._used_ids()
        blocks: list[Any] = []
        for block in message.content:
            if isinstance(block, ToolUse):
                fresh = block
                if not block.id or block.id in used:
                    fresh = replace(block, id=f"call_{uuid.uuid4().hex[:24]}")
                used.add(fresh.id)
                blocks.append(fresh)
            elif isinstance(block, Text | Reasoning):
                blocks.append(block)
        return Message(message.role, tuple(blocks), message.metadata)

    def _used_ids(self) -> set[str]:
        memory, records = self._lease.memory, self._lease.records
        known = memory.use_ids.setdefault(self._lease.participant, UseIds())
        for record in records[known.seen :]:
            known.ids.update(use.id for use in cast("Message", record).tool_uses)
        known.seen = len(records)
        return set(known.ids)


def cut_commands(error: TurnCutError) -> list[Command]:
    """Keep what a cut turn had said, for a run that ends as partial."""
    return [SetText(error.text)] if error.text.strip() else []


_LIVE = frozenset(
    {
        "message_start",
        "text_delta",
        "reasoning_delta",
        "tool_call_start",
        "tool_call_delta",
        "tool_call_stop",
        "usage",
    }
)
