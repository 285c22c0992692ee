"""The adapters that connections name: built in, or registered by the application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from littleghost.errors import ConfigurationError
from littleghost.providers.base import Provider
from littleghost.providers.base_url import checked_url
from littleghost.providers.gemini_connection import gemini_factory
from littleghost.providers.profiles import PROFILES, Profile
from littleghost.providers.scripted import ScriptedProvider

if TYPE_CHECKING:
    from littleghost.providers.http import HttpLimits

Factory: TypeAlias = Callable[..., Provider]

_PROFILE_OPTIONS = frozenset(field.name for field in fields(Profile)) - {
    "name",
    "headers",
    "dialect",
}
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
_HTTP_OPTIONS = _PROFILE_OPTIONS | _PROVIDER_OPTIONS | _LIMIT_OPTIONS

_registered: dict[str, Factory] = {}


def register_adapter(name: str, factory: Factory) -> None:
    """Make a provider of your own available to connections.

    Args:
        name: What connections say to get it.
        factory: A provider class or a function; called with the connection's options once in each
            process that needs it.

    Raises:
        ConfigurationError: The name is taken by a built-in adapter.
    """
    if name in PROFILES or name == "scripted":
        raise ConfigurationError(f"adapter {name!r} is built in: choose another name")
    _registered[name] = factory


def adapter_names() -> list[str]:
    """Give the names of all adapters, sorted."""
    return sorted({*PROFILES, "scripted", *_registered})


def factory_of(adapter: str, options: Mapping[str, Any]) -> Factory:
    """Find an adapter's factory and check what can be checked without it.

    Raises:
        ConfigurationError: There is no such adapter, or it does not know an option.
    """
    if adapter in PROFILES and PROFILES[adapter].dialect == "gemini":
        return gemini_factory(PROFILES[adapter], options)
    if adapter in PROFILES:
        unknown = sorted(set(options) - _HTTP_OPTIONS)
        if unknown:
            raise ConfigurationError(
                f"adapter {adapter!r} has no option {unknown[0]!r}; it has: "
                f"{', '.join(sorted(_HTTP_OPTIONS))}"
            )
        base_url = options.get("base_url") or PROFILES[adapter].base_url
        if not base_url:
            raise ConfigurationError(f"adapter {adapter!r} needs the option 'base_url'")
        checked_url(base_url, bool(options.get("allow_insecure_http")))
        return partial(_make_compatible, PROFILES[adapter])
    if adapter == "scripted":
        return ScriptedProvider
    if adapter in _registered:
        return _registered[adapter]
    raise ConfigurationError(
        f"there is no adapter {adapter!r}; there are: {', '.join(adapter_names())}. "
        "Register your own with register_adapter()"
    )


def _make_compatible(profile: Profile, **options: Any) -> Provider:
    # httpx takes a tenth of a second to import; only a process that asks a service pays it.
    from littleghost.providers.http import HttpLimits
    from littleghost.providers.openai_compatible import OpenAICompatible

    limits: HttpLimits = HttpLimits(**_only(options, _LIMIT_OPTIONS))
    habits = {name: getattr(profile, name) for name in ("name", "headers", "dialect")}
    for name in _PROFILE_OPTIONS:
        habits[name] = options.get(name) or getattr(profile, name)
        if isinstance(options.get(name), bool):
            habits[name] = options[name]
    return OpenAICompatible(
        Profile(**habits),
        limits=limits,
        **_only(options, _PROVIDER_OPTIONS),
    )


def _only(options: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: options[name] for name in names if options.get(name) is not None}
