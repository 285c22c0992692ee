"""The adapters that connections name: built in, or registered by the application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from littleghost.errors import ConfigurationError
from littleghost.providers.base import Provider
from littleghost.providers.base_url import checked_url
from littleghost.providers.dialects import DIALECTS
from littleghost.providers.profiles import PROFILES, Profile
from littleghost.providers.scripted import ScriptedProvider

Factory: TypeAlias = Callable[..., Provider]

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
    if adapter in PROFILES:
        return _service_factory(PROFILES[adapter], options)
    if adapter == "scripted":
        return ScriptedProvider
    if adapter in _registered:
        return _registered[adapter]
    raise ConfigurationError(
        f"there is no adapter {adapter!r}; there are: {', '.join(adapter_names())}. "
        "Register your own with register_adapter()"
    )


def _service_factory(profile: Profile, options: Mapping[str, Any]) -> Factory:
    dialect = DIALECTS[profile.dialect]
    unknown = sorted(set(options) - dialect.options)
    if unknown:
        raise ConfigurationError(
            f"adapter {profile.name!r} has no option {unknown[0]!r}; it has: "
            f"{', '.join(sorted(dialect.options))}"
        )
    given = dialect.settled(options)
    base_url = given.get("base_url") or profile.base_url
    if not base_url:
        raise ConfigurationError(f"adapter {profile.name!r} needs the option 'base_url'")
    checked_url(base_url, bool(given.get("allow_insecure_http")))
    return partial(_make, profile)


def _make(profile: Profile, **options: Any) -> Provider:
    return DIALECTS[profile.dialect].make(profile, options)
