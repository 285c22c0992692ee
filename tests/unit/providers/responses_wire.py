"""Answers of a service that speaks the Responses dialect, as its events."""

import json
from typing import Any


def sse(kind: str, **data: Any) -> bytes:
    """One event."""
    text = json.dumps({"type": kind, **data}, ensure_ascii=False)
    return f"event: {kind}\ndata: {text}\n\n".encode()


def message(text: str, id: str = "msg_1", kind: str = "output_text", **more: Any) -> dict[str, Any]:
    name = "refusal" if kind == "refusal" else "text"
    content = [{"type": kind, name: text}]
    return {"type": "message", "id": id, "role": "assistant", "content": content, **more}


def call(call_id: str, name: str, arguments: str, id: str = "fc_1") -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": id,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def reasoning(id: str = "rs_1", secret: str | None = "ZW5j", *summary: str) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    item = {"type": "reasoning", "id": id, "summary": parts, "encrypted_content": secret}
    return {name: value for name, value in item.items() if value is not None}


def answer(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A whole answer."""
    body = {"id": "resp_1", "object": "response", "model": "m-1", "status": "completed"}
    return {**body, "error": None, "incomplete_details": None, "output": list(items), **more}


def cut_up(text: str, size: int = 3) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def item_events(index: int, item: dict[str, Any]) -> list[bytes]:
    """The events of one item: its beginning, its pieces, its end."""
    place = {"output_index": index, "item_id": item["id"]}
    empty = {"message": {"content": []}, "function_call": {"arguments": ""}}
    begun = {**item, **empty.get(item["type"], {"summary": []})}
    begun.pop("encrypted_content", None)
    blocks = [sse("response.output_item.added", output_index=index, item=begun)]
    if item["type"] == "message":
        (part,) = item["content"]
        text, kind = part.get("text") or part.get("refusal"), part["type"]
        name = "refusal" if kind == "refusal" else "output_text"
        kind = f"response.{name}.delta"
        blocks += [sse(kind, **place, content_index=0, delta=piece) for piece in cut_up(text)]
        blocks.append(sse(f"response.{name}.done", **place, content_index=0, text=text))
    elif item["type"] == "function_call":
        kind = "response.function_call_arguments"
        pieces = cut_up(item["arguments"])
        blocks += [sse(f"{kind}.delta", **place, delta=piece) for piece in pieces]
        blocks.append(sse(f"{kind}.done", **place, arguments=item["arguments"]))
    else:
        for number, part in enumerate(item["summary"]):
            for piece in cut_up(part["text"]):
                kind = "response.reasoning_summary_text.delta"
                blocks.append(sse(kind, **place, summary_index=number, delta=piece))
    return [*blocks, sse("response.output_item.done", output_index=index, item=item)]


def stream(*items: dict[str, Any], **more: Any) -> list[bytes]:
    """All events of an answer, with its end."""
    whole = answer(*items, **more)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    begun["incomplete_details"] = None
    blocks = [sse("response.created", response=begun), sse("response.in_progress", response=begun)]
    for index, item in enumerate(items):
        blocks += item_events(index, item)
    end = "incomplete" if whole["status"] == "incomplete" else "completed"
    return [*blocks, sse(f"response.{end}", response=whole)]


USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 42,
}
