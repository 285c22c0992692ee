"""Request bodies for Anthropic, judged by the types of the service's own client."""

import json
import os
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

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
from littleghost.providers.anthropic_request import build_request
from littleghost.providers.profiles import PROFILES
from littleghost.providers.wire_text import encode_body
from tests.support.sdk_types import walk

try:
    from anthropic.types import message_create_params
except ImportError:
    if os.environ.get("CI"):
        raise
    pytest.skip("the client of Anthropic is not installed", allow_module_level=True)

ORIGIN = {"origin": "anthropic:m"}
SPEC = ToolSpec("files.read", "Read a file.", {"type": "object", "properties": {}})
BODY: TypeAdapter[Any] = TypeAdapter(message_create_params.MessageCreateParamsStreaming)


def judge(body: Mapping[str, Any]) -> None:
    walk(BODY.validate_python(json.loads(encode_body(body)), extra="forbid"))


def body_of(*messages, tools=(), **settings):
    request = ModelRequest(model="m", messages=messages, tools=tools, settings=settings)
    return build_request(request, PROFILES["anthropic"])


CALLS = Message(
    "assistant",
    (
        Reasoning("hm", "c2ln", details=ORIGIN),
        Reasoning(redacted="eA==", details=ORIGIN),
        Text("Let me see."),
        ToolUse("functions.read:0", "files.read", {"path": "a"}),
        ToolUse("b", "gone", {}, "{broken", "the arguments are not valid JSON"),
    ),
)
FILES = Message(
    "user",
    (
        Text("look"),
        Image(b"\x89PNG", "image/png"),
        Document(b"%PDF", "application/pdf", "a.pdf"),
        Document(b"x", "text/plain", "b.txt"),
        Document(b"x", "application/zip", "c.zip"),
    ),
)
CONVERSATIONS = {
    "text": [system("s"), user("u")],
    "nothing": [],
    "only an answer": [assistant("a")],
    "calls": [user("u"), CALLS, Message("tool", (ToolResult("b", "", "error"),)), user("and?")],
    "files": [system("s"), FILES, assistant("a"), system("late")],
}
SETTINGS = {
    "none": {},
    "cache": {"cache": True},
    "cache for an hour": {"cache": "1h"},
    "budget": {"thinking": 2048},
    "thinking": {"thinking": True, "output_config": {"effort": "high"}},
    "no thinking": {"thinking": False, "service_tier": "auto"},
    "one tool": {"tool_choice": "files.read", "parallel_tool_calls": False},
    "a tool": {"tool_choice": "required", "stop": "END", "max_tokens": 7},
    "no tool": {"tool_choice": "none", "metadata": {"user_id": "7"}},
}


@pytest.mark.parametrize("tools", [(), (SPEC,)], ids=["no tools", "tools"])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_the_client_would_send_the_same(conversation, settings, tools):
    judge(body_of(*CONVERSATIONS[conversation], tools=tools, **SETTINGS[settings]))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("max_tokens"),
        lambda body: body.update(cache=True),
        lambda body: body["messages"][1]["content"][0].pop("signature"),
        lambda body: body["messages"][1]["content"][0].update(index=0),
        lambda body: body["messages"][2]["content"][0].pop("tool_use_id"),
        lambda body: body["messages"][1].update(role="model"),
        lambda body: body["tools"][0].pop("name"),
    ],
)
def test_the_judge_finds_what_is_wrong(change):
    body = body_of(*CONVERSATIONS["calls"], tools=(SPEC,))
    change(body)

    with pytest.raises(ValidationError):
        judge(body)
