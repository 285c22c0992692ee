"""The events of an Anthropic answer as bytes, and what must hold of every request to it."""

import json
import re
from typing import Any


def sse(kind: str, **fields: Any) -> bytes:
    """One event."""
    data = json.dumps({"type": kind, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


def begin(**usage: int) -> bytes:
    message = {"id": "msg_1", "model": "claude-test", "content": [], "usage": usage}
    return sse("message_start", message=message)


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    """A whole block: its start, its pieces, its end."""
    return b"".join(
        [
            sse("content_block_start", index=index, content_block=content),
            *(sse("content_block_delta", index=index, delta=delta) for delta in deltas),
            sse("content_block_stop", index=index),
        ]
    )


def text(index: int, *pieces: str) -> bytes:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def call(index: int, id_: str, name: str, *pieces: str) -> bytes:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    content = {"type": "tool_use", "id": id_, "name": name, "input": {}}
    return block(index, content, *deltas)


def end(reason: str | None = "end_turn", **usage: int) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return sse("message_delta", delta=delta, usage=usage) + sse("message_stop")


def assert_valid_request(body: dict[str, Any]) -> None:
    """The rules that the service enforces with a 400."""
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        assert message["content"]
        results = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
        kinds = [b["type"] for b in message["content"]]
        assert results == waiting
        assert kinds[: len(results)] == ["tool_result"] * len(results)
        waiting = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
        assert not seen.intersection(waiting)
        assert len(set(waiting)) == len(waiting)
        seen.update(waiting)
        assert message["role"] == "user" or kinds[-1] not in ("thinking", "redacted_thinking")
        for part in message["content"]:
            _assert_valid_part(part)
    for part in body.get("system", ()):
        _assert_valid_part(part)
    if seen:
        assert body["tools"]


def _assert_valid_part(part: dict[str, Any]) -> None:
    if part["type"] == "text":
        assert part["text"].strip()
    elif part["type"] == "tool_use":
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", part["name"])
        assert re.fullmatch(r"[a-zA-Z0-9_-]+", part["id"])
        assert isinstance(part["input"], dict)
    elif part["type"] == "tool_result":
        assert part["content"].strip()
