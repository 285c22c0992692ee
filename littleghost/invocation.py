"""One call's request in normal form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, cast

from littleghost.errors import InvocationError
from littleghost.ids import check_run_id
from littleghost.json_text import clean_text
from littleghost.json_values import check_json, check_json_mapping
from littleghost.messages import (
    INTERJECTION,
    ROLES,
    Block,
    Document,
    Image,
    Message,
    Text,
    block_from_json,
)

_ID_LENGTH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What a caller asked for; it never changes during the run.

    JSON (in the journal): the same names without `history`, which opens the conversation instead.

    Attributes:
        message: The user's message.
        history: Messages before it, for a run without a stored session.
        settings: Model settings for this request.
        context: Values of the application for this request; the model never sees them.
        metadata: Anything the application wants to find again.
        run_id: The run's id.
        invocation_id: An id of the request; the run's id unless given.
        session_id: The session the run belongs to; the run's id unless given.
        actor_id: Who asks; never inferred.
        deadline_at: When the run must have ended.
        include_agent_events: Whether the event stream holds the agents' own events.
        fields: Any other value that was passed; also read as attributes.
    """

    message: Message
    history: tuple[Message, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run_id: str = ""
    invocation_id: str = ""
    session_id: str = ""
    actor_id: str | None = None
    deadline_at: datetime | None = None
    include_agent_events: bool = True
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"the invocation has no field {name!r}") from None

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form that the journal keeps."""
        data: dict[str, Any] = {"message": self.message.to_json()}
        for name in ("settings", "context", "metadata", "fields"):
            if getattr(self, name):
                data[name] = dict(getattr(self, name))
        for name in ("run_id", "invocation_id", "session_id"):
            data[name] = getattr(self, name)
        if self.actor_id is not None:
            data["actor_id"] = self.actor_id
        if self.deadline_at is not None:
            data["deadline_at"] = self.deadline_at.isoformat()
        if not self.include_agent_events:
            data["include_agent_events"] = False
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Invocation:
        """Read what `to_json` wrote."""
        deadline = data.get("deadline_at")
        return cls(
            message=Message.from_json(data["message"]),
            settings=_frozen(data, "settings"),
            context=_frozen(data, "context"),
            metadata=_frozen(data, "metadata"),
            fields=_frozen(data, "fields"),
            run_id=data["run_id"],
            invocation_id=data["invocation_id"],
            session_id=data["session_id"],
            actor_id=data.get("actor_id"),
            deadline_at=datetime.fromisoformat(deadline) if deadline else None,
            include_agent_events=data.get("include_agent_events", True),
        )


def _frozen(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return MappingProxyType(data.get(name) or {})


def read_message(value: object) -> Message:
    """Read the caller's message.

    Raises:
        InvocationError: It is blank, of the wrong role, or holds what a user cannot send.
    """
    try:
        message = clean_message(Message.from_json(value), "message")
    except (InvocationError, ValueError, TypeError) as error:
        raise InvocationError(f"message: {error}", field="message") from error
    if message.role != "user":
        raise InvocationError(
            f"message has the role {message.role!r}; a call begins with a user message, "
            "earlier messages belong in 'history'",
            field="message",
        )
    for block in message.content:
        if not isinstance(block, Text | Image | Document):
            raise InvocationError(
                f"message holds a {type(block).__name__} block; use text, images and documents",
                field="message",
            )
    has_attachment = any(not isinstance(block, Text) for block in message.content)
    if not has_attachment and not message.text.strip():
        raise InvocationError("message is blank; say what the run is to do", field="message")
    return message


def clean_message(message: Message, field: str) -> Message:
    """Replace what is no valid text (lone surrogates, NUL) in a message.

    Args:
        field: The argument it came in, for error messages.

    Raises:
        InvocationError: It holds what has no JSON form.
    """
    if message.role not in ROLES:
        raise InvocationError(f"unknown message role {message.role!r}", field=field)
    # A message that the application built may hold anything, whatever its type says.
    content = cast("Iterable[object]", message.content)
    blocks = tuple(
        _clean_block(block_from_json(block), f"{field}.content[{index}]")
        for index, block in enumerate([content] if isinstance(content, str) else content)
    )
    metadata = message.metadata and check_json_mapping(message.metadata, f"{field}.metadata")
    if INTERJECTION in metadata:
        # What the engine goes by is the engine's; nobody else may write it.
        metadata = {name: value for name, value in metadata.items() if name != INTERJECTION}
    return Message(message.role, blocks, metadata)


def _clean_block(block: Block, where: str) -> Block:
    if isinstance(block, Text) and type(block.text) is str:
        return Text(clean_text(block.text))
    if isinstance(block, Image | Document) and isinstance(block.data, bytes):
        # The data itself is text of our own making, and may be long.
        shape = check_json({**replace(block, data=b"").to_json()}, where=where)
        return replace(cast("Image | Document", block_from_json(shape)), data=block.data)
    return block_from_json(check_json(block.to_json(), where=where))


def _read_history(value: object) -> tuple[Message, ...]:
    if value is None:
        return ()
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvocationError("history must be a list of messages", field="history")
    messages: list[Message] = []
    for index, item in enumerate(cast("Iterable[object]", value)):
        try:
            messages.append(clean_message(Message.from_json(item), "message"))
        except (InvocationError, ValueError, TypeError) as error:
            raise InvocationError(f"history[{index}]: {error}", field="history") from error
    return tuple(messages)


def _read_id(name: str, value: object) -> str | None:
    if value is None:
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not 0 < len(text) <= _ID_LENGTH or clean_text(text) != text:
        raise InvocationError(
            f"{name} {value!r:.80} must be text of 1 to {_ID_LENGTH} characters", field=name
        )
    return text


def read_deadline(value: object, now: datetime) -> datetime | None:
    """Read a deadline: an aware time, ISO 8601 text, or a duration from now.

    Raises:
        InvocationError: It cannot be read, has no time zone, or has passed.
    """
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise InvocationError(
                f"deadline_at {value!r:.80} is no ISO 8601 time", field="deadline_at"
            ) from error
    if isinstance(value, timedelta):
        try:
            value = now + value
        except OverflowError as error:
            raise InvocationError(
                f"deadline_at is {value!r} from now, which no calendar has", field="deadline_at"
            ) from error
    if not isinstance(value, datetime):
        raise InvocationError(
            f"deadline_at must be a time, ISO 8601 text or a timedelta, not {type(value).__name__}",
            field="deadline_at",
        )
    if value.tzinfo is None:
        raise InvocationError(
            f"deadline_at {value.isoformat()!r} has no time zone; use an aware datetime",
            field="deadline_at",
        )
    if value <= now:
        raise InvocationError(
            f"deadline_at {value.isoformat()!r} has passed already", field="deadline_at"
        )
    return value.astimezone(UTC)


def _checked(rest: dict[str, Any], name: str) -> Mapping[str, Any]:
    return MappingProxyType(check_json_mapping(rest.pop(name, None), name))


def read_invocation(message: object, values: Mapping[str, Any], now: datetime) -> Invocation:
    """Check one call's values and put them into normal form.

    Args:
        message: The user's message: text, a message, or its JSON form.
        values: The call's other values by name; unknown names become application fields.
        now: The current time.

    Returns:
        The invocation; `run_id` and what follows from it are still empty unless given.

    Raises:
        InvocationError: A value is refused; its `field` says which.
    """
    rest = dict(values)
    include = rest.pop("include_agent_events", True)
    if not isinstance(include, bool):
        raise InvocationError(
            f"include_agent_events is {include!r}; use True or False", field="include_agent_events"
        )
    run_id = rest.pop("run_id", None)
    if "deadline" in rest and "deadline_at" in rest:
        raise InvocationError("give deadline_at or its alias deadline, not both", field="deadline")
    deadline_at = rest.pop("deadline_at", rest.pop("deadline", None))
    return Invocation(
        message=read_message(message),
        history=_read_history(rest.pop("history", None)),
        settings=_checked(rest, "settings"),
        context=_checked(rest, "context"),
        metadata=_checked(rest, "metadata"),
        run_id="" if run_id is None else check_run_id(str(run_id)),
        invocation_id=_read_id("invocation_id", rest.pop("invocation_id", None)) or "",
        session_id=_read_id("session_id", rest.pop("session_id", None)) or "",
        actor_id=_read_id("actor_id", rest.pop("actor_id", None)),
        deadline_at=read_deadline(deadline_at, now),
        include_agent_events=include,
        fields=MappingProxyType(check_json_mapping(rest, "fields")),
    )
