"""What differs between services, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One service's habits.

    Attributes:
        name: What connections say to get it.
        base_url: Where it is; "" when the connection must say.
        key_variables: Environment variables that may hold its key, the strongest first.
        needs_key: Whether it refuses requests without a key.
        tool_call_content: What stands as content in an assistant turn that only calls tools:
            "null", or "string" for servers that answer 400 or 500 to null.
        usage_in_stream: Whether it understands `stream_options.include_usage`.
        max_tokens_field: The field for the longest answer, in tokens.
        has_developer_role: Whether it knows the developer role; else it is sent as system.
        keeps_reasoning: Whether its `reasoning_details` are sent back to it.
        headers: Further headers of every request.
        dialect: What it speaks: OpenAI's "chat" or "responses", Anthropic's "messages", "gemini",
            or "vertex", which is Gemini's at Vertex AI; the fields about content, usage, roles
            and reasoning are for "chat" only.
    """

    name: str
    base_url: str = ""
    key_variables: tuple[str, ...] = ()
    needs_key: bool = False
    tool_call_content: Literal["null", "string"] = "null"
    usage_in_stream: bool = True
    max_tokens_field: str = "max_tokens"
    has_developer_role: bool = False
    keeps_reasoning: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    dialect: Literal["chat", "responses", "messages", "gemini", "vertex"] = "chat"


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="openai",
            base_url="https://api.openai.com/v1",
            key_variables=("LITTLEGHOST_OPENAI_API_KEY", "OPENAI_API_KEY"),
            needs_key=True,
            max_tokens_field="max_completion_tokens",
            has_developer_role=True,
        ),
        Profile(
            name="openai_responses",
            base_url="https://api.openai.com/v1",
            key_variables=("LITTLEGHOST_OPENAI_API_KEY", "OPENAI_API_KEY"),
            needs_key=True,
            dialect="responses",
        ),
        Profile(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key_variables=("LITTLEGHOST_OPENROUTER_API_KEY", "OPENROUTER_API_KEY"),
            needs_key=True,
            keeps_reasoning=True,
            headers={"x-title": "LittleGhost"},
        ),
        Profile(
            name="anthropic",
            base_url="https://api.anthropic.com",
            key_variables=("LITTLEGHOST_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
            needs_key=True,
            dialect="messages",
        ),
        Profile(
            name="gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta",
            key_variables=("LITTLEGHOST_GEMINI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
            needs_key=True,
            dialect="gemini",
        ),
        Profile(
            name="vertex",
            key_variables=("LITTLEGHOST_VERTEX_TOKEN", "GOOGLE_OAUTH_TOKEN"),
            needs_key=True,
            dialect="vertex",
        ),
        Profile(name="ollama", base_url="http://127.0.0.1:11434/v1", tool_call_content="string"),
        Profile(name="lm_studio", base_url="http://127.0.0.1:1234/v1", tool_call_content="string"),
        Profile(name="vllm", base_url="http://127.0.0.1:8000/v1"),
        Profile(name="openai_compatible", key_variables=("LITTLEGHOST_API_KEY",)),
    )
}
