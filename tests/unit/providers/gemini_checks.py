"""Chunks of Gemini answers as servers send them."""

import json
from typing import Any


def candidate(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk with these parts."""
    found: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        found["finishReason"] = finish
    return {"candidates": [found], "responseId": "r-1", "modelVersion": "test-model", **more}


def sse(chunk: Any) -> bytes:
    """A chunk as a server-sent event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n"


def call(name: str, args: Any = None, signature: str = "", **more: Any) -> dict[str, Any]:
    """A part that calls a function."""
    part: dict[str, Any] = {"functionCall": {"name": name, **more}}
    if args is not None:
        part["functionCall"]["args"] = args
    if signature:
        part["thoughtSignature"] = signature
    return part


USAGE = {"promptTokenCount": 8, "candidatesTokenCount": 9, "totalTokenCount": 17}
