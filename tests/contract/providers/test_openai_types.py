"""The official SDK's own types judge the requests of the Responses dialect."""

import os
from collections.abc import Mapping
from typing import Any

import pytest

from littleghost.messages import (
    Document,
    Image,
    Message,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    assistant,
    system,
    user,
)
from littleghost.providers import ModelRequest, ToolSpec
from littleghost.providers.responses_request import build_request
from tests.support.sdk_types import walk

try:
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
    from pydantic import TypeAdapter, ValidationError
except ImportError:
    if os.environ.get("CI"):
        raise
    pytest.skip("openai is not installed", allow_module_level=True)

ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "so"}],
    "content": [{"type": "reasoning_text", "text": "so"}],
    "encrypted_content": "ZW5j",
}
HISTORY = [
    system("s"),
    user("u"),
    Message(
        "user",
        (Text("look"), Image(b"i", "image/png"), Document(b"d", "application/pdf", "d.pdf")),
    ),
    Message("developer", (Text("d"),)),
    Message(
        "assistant",
        (
            Reasoning("so", details={"origin": "me", "items": [ITEM]}),
            Text("Looking."),
            ToolUse("a", "files.read", {"n": 1}, '{"n": 1}'),
            ToolUse("b", "f", {}),
        ),
        {"openai_responses": {"origin": "me", "phases": ["commentary"]}},
    ),
    Message("tool", (ToolResult("a", "r"),)),
    assistant("done"),
]
CLOSED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
REQUEST = ModelRequest(
    model="gpt-5.6-luna",
    messages=HISTORY,
    tools=[ToolSpec("files.read", "d", CLOSED), ToolSpec("f", "", {"type": "object"})],
    settings={
        "max_tokens": 9,
        "reasoning_effort": "low",
        "reasoning_summary": "auto",
        "verbosity": "low",
        "temperature": 0.5,
        "tool_choice": "files.read",
        "parallel_tool_calls": True,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": CLOSED, "strict": False},
        },
    },
)


def check(body: Mapping[str, Any]) -> None:
    # Held while its lazy parts are read: they point into it.
    adapter = TypeAdapter(ResponseCreateParamsStreaming)
    walk(adapter.validate_python(body))


def test_a_request_is_what_the_official_types_want():
    body = build_request(REQUEST, "me")

    check(body)
    assert set(body) <= set(ResponseCreateParamsStreaming.__annotations__)
    assert [item["type"] for item in body["input"]].count("function_call") == 2


@pytest.mark.parametrize("kind", ["message", "reasoning", "function_call", "function_call_output"])
def test_the_official_types_notice_a_broken_item(kind):
    body = build_request(REQUEST, "me")
    item = next(item for item in body["input"] if item["type"] == kind)
    broken = {"message": "content", "reasoning": "summary", "function_call": "arguments"}
    item[broken.get(kind, "output")] = 7

    with pytest.raises(ValidationError):
        check(body)
