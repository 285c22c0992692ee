"""Writes a conversation for people: who said what, which tools were called, what came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from littleghost.cli.escape import one_line, visible
from littleghost.errors import InvocationError
from littleghost.json_values import dumps
from littleghost.messages import Document, Image, Message, Reasoning, Text, ToolResult, ToolUse

RESULT_CHARS = 400
_INDENT = " " * 12


def arguments_text(arguments: Mapping[str, Any], limit: int = 200) -> str:
    """Write a tool call's arguments on one line."""
    return one_line(dumps(dict(arguments)), limit)


def conversation_lines(records: list[Any], *, full: bool = False) -> Iterator[str]:
    """Write messages as lines.

    Args:
        records: Messages in their JSON form.
        full: Whether long tool results and reasoning are shown whole.
    """
    for record in records:
        try:
            message = Message.from_json(record)
        except InvocationError:
            yield _line("?", one_line(dumps(record), RESULT_CHARS))
            continue
        yield from _message_lines(message, full)


def _message_lines(message: Message, full: bool) -> Iterator[str]:
    role: str = message.role
    for block in message.content:
        match block:
            case Text(text):
                yield _line(role, visible(text))
            case ToolUse():
                yield _line(role, f"→ {one_line(block.name)} {arguments_text(block.input)}")
            case ToolResult():
                mark = "←" if block.status == "success" else "← error:"
                text = visible(block.content) if full else one_line(block.content, RESULT_CHARS)
                yield _line(role, f"{mark} {text}")
            case Reasoning():
                if full and block.text:
                    yield _line(role, f"(thinks) {visible(block.text)}")
            case Image() | Document():
                name = block.name or block.media_type
                yield _line(role, f"[{one_line(name, 80)}, {len(block.data)} bytes]")
        role = ""


def _line(role: str, text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([f"  {role:<10}{first}", *(_INDENT + line for line in rest)])
