"""The dialects that services speak: which options a connection has in each, and its provider.

The one place that knows both; a profile names its dialect, and nothing else asks which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from littleghost.providers.base import Provider
from littleghost.providers.profiles import Profile
from littleghost.providers.vertex import VERTEX_OPTIONS, vertex_options

ProviderClass: TypeAlias = Callable[..., Provider]

_PROVIDER_OPTIONS = frozenset({"base_url", "api_key", "headers", "allow_insecure_http"})
_LIMIT_OPTIONS = frozenset(
    {
        "open_timeout_s",
        "read_timeout_s",
        "max_response_bytes",
        "max_error_bytes",
        "per_transport",
    }
)
# The fields of a profile that mean something in every dialect, and those of the chat dialect.
_KEY_HABITS = frozenset({"key_variables", "needs_key"})
_FIXED = frozenset({"name", "base_url", "headers", "dialect"})
_CHAT_HABITS = frozenset(field.name for field in fields(Profile)) - _FIXED


# The classes are imported when they are needed: httpx takes a tenth of a second, which only a
# process that asks a service pays.
def _chat() -> ProviderClass:
    from littleghost.providers.openai_compatible import OpenAICompatible

    return OpenAICompatible


def _responses() -> ProviderClass:
    from littleghost.providers.openai_responses import OpenAIResponses

    return OpenAIResponses


def _messages() -> ProviderClass:
    from littleghost.providers.anthropic import Anthropic

    return Anthropic


def _gemini() -> ProviderClass:
    from littleghost.providers.gemini import Gemini

    return Gemini


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What the connections of one dialect take.

    Attributes:
        load: Gives the class of their providers.
        habits: The fields of the profile that a connection may change.
        own: Options that other dialects do not have.
        translate: Checks these and says them in the words of the provider, where those differ.
    """

    load: Callable[[], ProviderClass]
    habits: frozenset[str] = _KEY_HABITS
    own: frozenset[str] = frozenset()
    translate: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None

    @property
    def options(self) -> frozenset[str]:
        """The names of all options of a connection."""
        return self.habits | self.own | _PROVIDER_OPTIONS | _LIMIT_OPTIONS

    def settled(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the options that say something, in the words of the provider.

        Raises:
            ConfigurationError: One that only this dialect has is missing or cannot be used.
        """
        given = {name: value for name, value in options.items() if value is not None}
        return given if self.translate is None else self.translate(given)

    def make(self, profile: Profile, options: Mapping[str, Any]) -> Provider:
        """Make a connection's provider.

        Args:
            profile: The service.
            options: By the names in `options`; None leaves what is usual.

        Raises:
            ConfigurationError: An option is missing or cannot be used.
        """
        from littleghost.providers.http import HttpLimits

        given = self.settled(options)
        # A habit that is set to nothing, such as an empty name, is not set.
        habits = {n: given[n] for n in self.habits & given.keys() if given[n] or given[n] is False}
        limits = {name: given[name] for name in _LIMIT_OPTIONS & given.keys()}
        others = given.keys() - self.habits - _LIMIT_OPTIONS
        return self.load()(
            replace(profile, **habits),
            limits=HttpLimits(**limits),
            **{name: given[name] for name in others},
        )


DIALECTS: dict[str, Dialect] = {
    "chat": Dialect(load=_chat, habits=_CHAT_HABITS),
    "responses": Dialect(load=_responses, own=frozenset({"encrypted_reasoning"})),
    "messages": Dialect(load=_messages),
    "gemini": Dialect(load=_gemini),
    "vertex": Dialect(load=_gemini, own=VERTEX_OPTIONS, translate=vertex_options),
}


def has_key(options: Mapping[str, Any]) -> bool:
    """Say whether a connection's options hold a key, or what gives one."""
    return bool(options.get("api_key") or options.get("token"))
