"""Messages that reach an agent while it works: how they are kept, and how its model reads them.

An entry of an agent's inbox is JSON: `{"id", "key": batch key or absent, "r": message record}`. The
message has the metadata `{"interjection": {"id", "reply": {"to": participant, "call": task}?}}`.
Who delivers it is the journal, when it leases a turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from littleghost.engine.commands import Command, Post
from littleghost.json_values import dumps
from littleghost.messages import INTERJECTION, Message, Text

# What the model reads before a message that came while it worked.
FRAME = (
    "A message came in while you were working. First answer it briefly in text, then go on with "
    "the task, unless it tells you to finish or to do something else. The message:\n\n"
)


def entry_of(
    message: Message, message_id: str, key: str | None, reply: Mapping[str, str] | None = None
) -> str:
    """Write a message as an agent's inbox keeps it.

    Args:
        key: What it shares with others that may be delivered together.
        reply: A coordinator, and its waiting call, that are told how the model answers.
    """
    mark: dict[str, Any] = {"id": message_id}
    if reply is not None:
        mark["reply"] = dict(reply)
    marked = replace(message, metadata={**message.metadata, INTERJECTION: mark})
    record = dumps(marked.to_json())
    return dumps({"id": message_id, "r": record, **({"key": key} if key is not None else {})})


def mark_of(message: Message) -> Mapping[str, Any] | None:
    """Give what marks a message as an interjection, or None."""
    mark = message.metadata.get(INTERJECTION)
    is_marked = message.role == "user" and isinstance(mark, Mapping)
    return cast("Mapping[str, Any]", mark) if is_marked else None


def framed(messages: Sequence[Message]) -> list[Message]:
    """Write the conversation as the model reads it: what came in between says so."""
    return [
        replace(message, content=(Text(FRAME), *message.content)) if mark_of(message) else message
        for message in messages
    ]


def replies(records: Sequence[Any], answer: Message) -> list[Command]:
    """Tell those who sent the newest messages how the model answered.

    Args:
        records: The agent's list, as the model saw it.
        answer: What the model said.
    """
    told: list[Command] = []
    for message in reversed(records):
        mark = mark_of(message) if isinstance(message, Message) else None
        if mark is None:
            break
        reply = mark.get("reply")
        if isinstance(reply, Mapping):
            sender = cast("Mapping[str, str]", reply)
            said = {
                "reply": sender["call"],
                "text": answer.text,
                "calls": len(answer.tool_uses),
            }
            told.append(Post(sender["to"], dumps(said)))
    return told[::-1]
