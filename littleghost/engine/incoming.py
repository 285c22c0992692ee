"""Makes what a provider gives fit for the journal: valid text, plain JSON.

The adapters that come with the library clean what they read; one of the application's own may not,
and what cannot be written must never hold up a run, nor the live text of other runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from littleghost.json_values import check_json, clean_text
from littleghost.messages import Block, Message, Reasoning, Text, ToolUse


def fit_data(kind: str, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Clean the data of a live event; None when it has no JSON form."""
    if kind in ("text_delta", "reasoning_delta"):
        return {"text": clean_text(data["text"])}
    if kind == "tool_call_delta":
        return {"index": int(data["index"]), "arguments": clean_text(data["arguments"])}
    try:
        fit = check_json(dict(data))
    except ValueError:
        return None
    return fit if isinstance(fit, dict) else None


def fit_message(message: Message) -> Message:
    """Clean an answer.

    Returns:
        The message itself where nothing had to change. A call whose input has no JSON form keeps
        its place, with an error instead of the input; metadata without one is left out.
    """
    blocks = tuple(_fit_block(block) for block in message.content)
    metadata = _fit_metadata(message.metadata)
    same = all(fit is block for fit, block in zip(blocks, message.content, strict=True))
    if same and metadata == message.metadata:
        return message
    return Message(message.role, blocks, metadata)


def _fit_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        fit = check_json(dict(metadata)) if metadata else metadata
    except ValueError:
        return {}
    return fit if isinstance(fit, Mapping) else {}


def _fit_block(block: Block) -> Block:
    if isinstance(block, Text):
        text = clean_text(block.text)
        return block if text is block.text else Text(text)
    if isinstance(block, ToolUse):
        return _fit_use(block)
    if isinstance(block, Reasoning):
        text, details = clean_text(block.text), block.details
        if details is not None:
            try:
                details = check_json(details)
            except ValueError:
                details = None
        same = text is block.text and details is block.details
        return block if same else replace(block, text=text, details=details)
    return block


def _fit_use(use: ToolUse) -> ToolUse:
    fit = use
    try:
        value = check_json(dict(use.input), where="the arguments")
        if value != use.input:
            fit = replace(fit, input=value)
    except ValueError as error:
        fit = replace(fit, input={}, arguments=None, error=use.error or str(error))
    for name in ("id", "name", "arguments", "error"):
        text = getattr(fit, name)
        if text is not None and clean_text(text) is not text:
            fit = replace(fit, **{name: clean_text(text)})
    return fit
