"""Reaching a run from outside while it goes on: answers, signals, messages."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

from littleghost.engine.slot import refuse_blocking
from littleghost.errors import InvocationError, RunOverError, WaitTimeoutError
from littleghost.invocation import read_message
from littleghost.journal.inbox import ONLY_REPEAT
from littleghost.json_text import JsonLimits
from littleghost.json_values import check_json, check_json_mapping, clean_text, dumps
from littleghost.messages import Document, Image, Message, Text, ToolUse, block_from_json
from littleghost.pending import Pending, pending_of
from littleghost.watch import Watch
from littleghost.wiring import Runtime, runtime

if TYPE_CHECKING:
    from littleghost.run import Run

SIGNAL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MAX_ID = 200
_MAX_REASON = 2_000
_VALUE_LIMITS = JsonLimits(depth=64, nodes=100_000, size=1_000_000)


class Reachable:
    """What can be sent into a run; the base of `Run`. None of it needs a worker to be up."""

    id: str

    @property
    def _work(self) -> Runtime:
        return runtime()

    def refresh(self) -> Self:
        """Read the run's facts again."""
        raise NotImplementedError

    @property
    def pending(self) -> list[Pending]:
        """What the run waits for now: calls that a person must allow, and signals; read anew."""
        return pending_of(cast("Run", self.refresh()).record)

    def approve(self, pending_id: str, *, by: str = "") -> Self:
        """Allow a tool call that waits for a person. Returns the run itself.

        Args:
            pending_id: The `id` of a `Pending`.
            by: Who answers, for the run's events; the application's own words.

        Raises:
            ApprovalError: Nothing waits under this id, or another answer stands: the first one
                counts, and after the time for it the call counts as rejected.

        Atomic: one script. Idempotent: yes, for the same answer.
        """
        return self._respond(pending_id, {"verdict": "approved", **_signed(by)})

    def reject(self, pending_id: str, reason: str = "", *, by: str = "") -> Self:
        """Refuse a tool call that waits for a person; errors as for `approve`.

        Args:
            pending_id: The `id` of a `Pending`.
            reason: Why; the model reads it.
            by: Who answers.
        """
        why = {"reason": _short(reason, "reason", _MAX_REASON)} if reason else {}
        return self._respond(pending_id, {"verdict": "rejected", **why, **_signed(by)})

    def edit(self, pending_id: str, arguments: Mapping[str, Any], *, by: str = "") -> Self:
        """Allow a tool call with other arguments, which replace the model's.

        Errors as for `approve`. The model is told what the call was made with. The tool checks the
        arguments as it would check the model's.

        Args:
            pending_id: The `id` of a `Pending`.
            arguments: All arguments, not only those that change.
            by: Who answers.

        Raises:
            InvocationError: They are no JSON object.
        """
        # None is no way to say "none": it would allow a call that nobody has looked at.
        if not isinstance(cast("object", arguments), Mapping):
            raise InvocationError("arguments must be a dict of JSON", field="arguments")
        given = check_json_mapping(arguments, "arguments")
        found = cast("Run", self.refresh()).record.payloads.get(pending_id)
        answer = {"verdict": "approved", "edited": True, "arguments": given, **_signed(by)}
        if found is None:
            # Nothing can wait any more, but it may have been answered just so.
            return self._respond(pending_id, answer, ONLY_REPEAT)
        use = cast("ToolUse", block_from_json(json.loads(found)))
        changed = replace(use, input=given, arguments=None)
        return self._respond(pending_id, answer, dumps(changed.to_json()))

    def _respond(
        self, pending_id: str, answer: Mapping[str, Any], payload: str | None = None
    ) -> Self:
        self._work.inbox.respond(self.id, pending_id, answer, payload)
        return self.refresh()

    def signal(self, name: str, value: Any = None, *, id: str | None = None) -> Self:
        """Send a value to the workflow that waits for it, or to the next one that will.

        Each signal reaches one `Workflow.wait_for` of its name, in the order in which they were
        sent. Returns the run itself.

        Args:
            name: 1 to 64 letters, digits, ".", "_" or "-".
            value: JSON, at most 1,000,000 bytes.
            id: Makes the call safe to repeat: the same id and value are one signal.

        Raises:
            InvocationError: Name or value is refused.
            RunOverError: The run has ended.
            SignalError: The id was used for another signal, or 1,000 of them wait already.

        Atomic: one script.
        """
        given: object = name
        if not isinstance(given, str) or not SIGNAL_NAME.fullmatch(given):
            raise InvocationError(
                f"signal name {given!r:.80} must be 1 to 64 letters, digits, '.', '_' or '-'",
                field="name",
            )
        try:
            checked = check_json(value, where="value", limits=_VALUE_LIMITS)
        except ValueError as error:
            raise InvocationError(f"signal {name!r}: {error}", field="value") from error
        known = _short(id, "id", _MAX_ID) if id is not None else uuid.uuid4().hex
        self._work.inbox.signal(self.id, name, checked, known)
        return self

    def interject(
        self,
        message: str | Message | Mapping[str, Any],
        *,
        id: str | None = None,
        batch_key: str | None = None,
    ) -> Interjection:
        """Say something to the agent that is at work.

        It gets the message before its next model request, and is asked to answer it briefly and
        then to go on. An agent that is just giving its last answer takes another turn for it. In
        a composite it is for the one agent that is at work.

        Args:
            message: Text, a message of text, images and documents, or its JSON form.
            id: Makes the call safe to repeat: the same id and message are one interjection.
            batch_key: Messages in a row with the same key are delivered together, up to 100.

        Returns:
            The receipt. The message is kept in the journal from now on.

        Raises:
            InvocationError: The message is refused.
            RunOverError: The run has ended.
            InterjectionError: None or several agents are at work, or the id was used already.

        Atomic: one script.
        """
        said = read_message(message)
        if said.role != "user" or not all(
            isinstance(block, Text | Image | Document) for block in said.content
        ):
            raise InvocationError(
                "a message that is put in consists of text, images and documents", field="message"
            )
        size, limit = len(dumps(said.to_json())), self._work.settings.max_invocation_bytes
        if size > limit:
            raise InvocationError(
                f"the message takes {size} bytes; {limit} are allowed "
                "(LITTLEGHOST_MAX_INVOCATION_BYTES)",
                field="message",
            )
        known = _short(id, "id", _MAX_ID) if id is not None else uuid.uuid4().hex
        key = None if batch_key is None else _short(batch_key, "batch_key", _MAX_ID)
        participant, after = self._work.inbox.interject(self.id, said, known, key)
        return Interjection(cast("Run", self), known, participant, after)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterjectionAnswer:
    """How the model answered a message that was put in.

    Attributes:
        text: What it said.
        tool_calls: What it asked for at the same time.
        interjection_ids: The messages that were delivered together.
    """

    text: str
    tool_calls: tuple[ToolUse, ...]
    interjection_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Interjection:
    """The receipt of a message that was put into a run.

    Attributes:
        run: The run.
        id: The message's id.
        participant: Which participant gets it.
        after: The id of the newest event when it was taken.
    """

    run: Run
    id: str
    participant: str
    after: int

    def withdraw(self) -> bool:
        """Take the message back; False when the agent has got it already, or the run has ended.

        Atomic: one script. Idempotent: yes.
        """
        return runtime().inbox.withdraw(self.run.id, self.participant, self.id)

    def wait(self, timeout_s: float | None = None) -> InterjectionAnswer:
        """Wait until the model has answered the message.

        Args:
            timeout_s: Seconds to wait at most. A message that has not been delivered by then is
                taken back.

        Raises:
            WaitTimeoutError: There is no answer yet.
            RunOverError: The run ended without an answer.
            BlockingCallError: Called inside a worker task, whose slot it would hold.
        """
        refuse_blocking("Interjection.wait()")
        try:
            return self._answer(timeout_s)
        except WaitTimeoutError as error:
            what = "it was taken back" if self.withdraw() else "the agent has got it"
            raise WaitTimeoutError(
                f"no answer to {self.id!r} in run {self.run.id!r} within {timeout_s} s; {what}"
            ) from error

    def _answer(self, timeout_s: float | None) -> InterjectionAnswer:
        watch = Watch(runtime(), self.run.id, whole=True)
        ids: tuple[str, ...] = ()
        operation = f"{self.run.id}:{self.participant}"
        for page in watch.pages(self.after, timeout_s):
            for event in page:
                if event.data.get("source", {}).get("operation_id") != operation:
                    continue
                data = event.inner["data"]
                if event.inner_type == "agent_interjection_delivered":
                    ids = tuple(data["interjection_ids"])
                elif event.inner_type == "model_stop" and self.id in ids:
                    message = Message.from_json(data["response"]["message"])
                    return InterjectionAnswer(
                        text=message.text, tool_calls=message.tool_uses, interjection_ids=ids
                    )
        raise RunOverError(f"run {self.run.id!r} ended without an answer to {self.id!r}")

    async def wait_async(self, timeout_s: float | None = None) -> InterjectionAnswer:
        """Wait without blocking the event loop; see `wait`."""
        return await asyncio.to_thread(self.wait, timeout_s)


def _signed(by: str) -> dict[str, str]:
    return {"by": _short(by, "by", _MAX_ID)} if by else {}


def _short(value: object, field: str, limit: int) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= limit or clean_text(value) != value:
        raise InvocationError(
            f"{field} {value!r:.80} must be text of 1 to {limit} characters", field=field
        )
    return value
