"""Reads the model settings of the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from littleghost.providers.profiles import PROFILES

# The strongest first: a key named for LittleGhost says more than one that lies about.
_KEYS = (
    ("LITTLEGHOST_OPENROUTER_API_KEY", "openrouter"),
    ("LITTLEGHOST_OPENAI_API_KEY", "openai"),
    ("LITTLEGHOST_ANTHROPIC_API_KEY", "anthropic"),
    ("OPENROUTER_API_KEY", "openrouter"),
    ("OPENAI_API_KEY", "openai"),
    ("ANTHROPIC_API_KEY", "anthropic"),
)
DEFAULT_TARGETS = {
    "openrouter": "openrouter:openai/gpt-5.6-luna",
    "openai": "openai:gpt-5.6-luna",
    "anthropic": "anthropic:claude-sonnet-5-5",
}
_TRUE = frozenset({"1", "true", "yes", "on"})


def apply_environment(environ: Mapping[str, str], connect: Callable[..., Any]) -> str | None:
    """Make the connections that environment variables describe.

    Args:
        environ: The variables.
        connect: Called as `connect(name, adapter, **options)`.

    Returns:
        The default selection, or None.

    Raises:
        ConfigurationError: The base URL cannot be used.
    """

    def read(name: str) -> str:
        return environ.get(name, "").strip()

    default = read("LITTLEGHOST_MODEL") or next(
        (DEFAULT_TARGETS[name] for variable, name in _KEYS if read(variable)), ""
    )
    base_url = read("LITTLEGHOST_BASE_URL")
    if base_url:
        named, colon, _ = default.partition(":")
        name = named if colon else "openai_compatible"
        adapter = name if name in PROFILES else "openai_compatible"
        options: dict[str, Any] = {"base_url": base_url}
        if read("LITTLEGHOST_ALLOW_INSECURE_HTTP").lower() in _TRUE:
            options["allow_insecure_http"] = True
        connect(name, adapter, **options)
    return default or None
