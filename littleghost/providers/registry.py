"""The models an application may use: connections, roles, and the default.

Importing this imports no HTTP client; a provider is built when its first request is made.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from littleghost.errors import ConfigurationError, CredentialError, UnknownModelError
from littleghost.providers.adapters import Factory, factory_of
from littleghost.providers.base import Provider
from littleghost.providers.dialects import has_key
from littleghost.providers.environment import apply_environment
from littleghost.providers.per_process import PerProcess
from littleghost.providers.profiles import PROFILES
from littleghost.providers.roles import Roles, Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """What a selection means.

    Attributes:
        provider: Asks the model; kept for the process.
        model: The service's own model id.
        settings: The settings of the role or mapping; a request's own settings come on top.
        connection: The connection's name.
        target: "connection:model", for logs and records.
    """

    provider: Provider
    model: str
    settings: Mapping[str, Any]
    connection: str
    target: str


@dataclass(frozen=True, slots=True)
class _Connection:
    """A configured account. Options hold secrets and are never shown."""

    name: str
    adapter: str
    factory: Factory
    options: Mapping[str, Any] = field(repr=False)


class _Built:
    """One process's providers, by the connection they were built for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.providers: dict[int, tuple[_Connection, Provider]] = {}


class Models:
    """Connections, roles and the default model.

    Every adapter that knows its address (`openai`, `openai_responses`, `openrouter`, `anthropic`,
    `gemini`, `ollama`, `lm_studio`, `vllm`) is a connection of its own name, unless another one
    takes that name. Thread-safe and fork-safe.

    Attributes:
        default: The selection used when an agent names none; None when there is none.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """Start with nothing but the built-in connections.

        Args:
            environ: Where keys of built-in connections are looked up; the process's own
                environment by default.
        """
        self.default: Selection | None = None
        self._environ: Mapping[str, str] = os.environ if environ is None else environ
        self._connections: dict[str, _Connection] = {}
        self._roles = Roles()
        self._built: PerProcess[_Built] = PerProcess(_Built)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Models:
        """Make the models that environment variables describe.

        `LITTLEGHOST_MODEL` is the default selection; without it, the first key found among
        `LITTLEGHOST_OPENROUTER_API_KEY`, `LITTLEGHOST_OPENAI_API_KEY`,
        `LITTLEGHOST_ANTHROPIC_API_KEY`, `OPENROUTER_API_KEY`, `OPENAI_API_KEY` and
        `ANTHROPIC_API_KEY` decides. `LITTLEGHOST_BASE_URL` is where the default's connection is,
        `LITTLEGHOST_API_KEY` the key of a connection that is not built in.

        Raises:
            ConfigurationError: A variable cannot be used.
        """
        models = cls(environ)
        models.default = apply_environment(models._environ, models.connect)
        return models

    def connect(self, name: str, adapter: str | Provider | Factory, **options: Any) -> None:
        """Add or replace a connection; nothing is opened.

        Args:
            name: The part before the colon in "connection:model".
            adapter: The name of an adapter (a service such as "openai", "openai_compatible",
                "scripted", or one that was registered), a provider, or a function or class that
                makes one.
            **options: For the adapter. Services take `api_key` (text, or a function that is asked
                for each request), `base_url`, `headers`, `allow_insecure_http`, `open_timeout_s`,
                `read_timeout_s` and their profile's fields; "scripted" takes `script`.

        Raises:
            ConfigurationError: The name, the adapter or an option is wrong.
        """
        if not name or ":" in name:
            raise ConfigurationError(f"connection {name!r}: a name is not empty and has no colon")
        self._connections[name] = _make_connection(name, adapter, options)

    def role(
        self, name: str, target_or_inherits: str, settings: Mapping[str, Any] | None = None
    ) -> None:
        """Name a model, so that it can be changed in one place.

        Args:
            name: The role; dots make it fall back: "support.billing" to "support".
            target_or_inherits: "connection:model", or a role to inherit from.
            settings: Settings of every request; they come on top of inherited ones.
        """
        self._roles.add(name, target_or_inherits, settings)

    def check(self, selection: Selection | None = None) -> None:
        """Refuse what can be refused without the network.

        Raises:
            UnknownModelError: The selection names what is not configured.
            CredentialError: Its connection needs a key and has none; the variable is named.
        """
        target = self._roles.target(self._chosen(selection))
        connection = self._connection(target.connection, selection)
        profile = PROFILES.get(connection.adapter)
        if profile is None or has_key(connection.options):
            return
        if not connection.options.get("needs_key", profile.needs_key):
            return
        if not self._key_from_environment(connection.adapter):
            raise CredentialError(
                f"connection {connection.name!r} needs a key: set "
                f"{' or '.join(profile.key_variables)}, or pass api_key"
            )

    def resolve(self, selection: Selection | None = None) -> ResolvedModel:
        """Find the provider and model that a selection means.

        Args:
            selection: "connection:model", a role, or a mapping with `provider` and `model`; None
                is the default.

        Raises:
            UnknownModelError: The selection names what is not configured.
            ConfigurationError: The connection's provider cannot be built.
        """
        target = self._roles.target(self._chosen(selection))
        connection = self._connection(target.connection, selection)
        return ResolvedModel(
            provider=self._provider(connection),
            model=target.model,
            settings=target.settings,
            connection=connection.name,
            target=str(target),
        )

    def close(self) -> None:
        """Close the providers that this process has built."""
        built = self._built.get()
        with built.lock:
            providers, built.providers = list(built.providers.values()), {}
        for _, provider in providers:
            provider.close()

    def __repr__(self) -> str:
        names = ", ".join(sorted(self._connections))
        return f"Models(connections=[{names}], roles={self._roles.names()})"

    def _chosen(self, selection: Selection | None) -> Selection:
        chosen = selection or self.default
        if not chosen:
            raise UnknownModelError(
                "no model is chosen and there is no default: set an agent's model, "
                "LITTLEGHOST_MODEL, or a key such as OPENAI_API_KEY"
            )
        return chosen

    def _connection(self, name: str, selection: Selection | None) -> _Connection:
        found = self._connections.get(name)
        if found is None and name in PROFILES and PROFILES[name].base_url:
            found = self._connections.setdefault(name, _make_connection(name, name, {}))
        if found is None:
            ready = {*self._connections, *(p.name for p in PROFILES.values() if p.base_url)}
            roles = ", ".join(self._roles.names()) or "none"
            raise UnknownModelError(
                f"model selection {selection or self.default!r}: there is no connection {name!r} "
                f"(connections: {', '.join(sorted(ready))}; roles: {roles})"
            )
        return found

    def _provider(self, connection: _Connection) -> Provider:
        built = self._built.get()
        known = built.providers.get(id(connection))
        if known is not None:
            return known[1]
        with built.lock:
            known = built.providers.get(id(connection))
            if known is None:
                # The connection is kept beside its provider, so that its id stays its own.
                known = (connection, self._build(connection))
                built.providers[id(connection)] = known
        return known[1]

    def _build(self, connection: _Connection) -> Provider:
        options = dict(connection.options)
        if connection.adapter in PROFILES and not has_key(options):
            options["api_key"] = lambda: self._key_from_environment(connection.adapter)
        try:
            return connection.factory(**options)
        except TypeError as error:
            raise ConfigurationError(
                f"connection {connection.name!r}: its adapter does not take these options "
                f"({', '.join(sorted(options)) or 'none'})"
            ) from error

    def _key_from_environment(self, adapter: str) -> str:
        values = (self._environ.get(name, "") for name in PROFILES[adapter].key_variables)
        return next((value for value in map(str.strip, values) if value), "")


def _make_connection(
    name: str, adapter: str | Provider | Factory, options: Mapping[str, Any]
) -> _Connection:
    if isinstance(adapter, str):
        return _Connection(name, adapter, factory_of(adapter, options), dict(options))
    if isinstance(adapter, type) or not hasattr(adapter, "stream"):
        if not callable(adapter):
            raise ConfigurationError(f"connection {name!r}: {adapter!r} makes no provider")
        return _Connection(name, "", adapter, dict(options))
    if options:
        raise ConfigurationError(f"connection {name!r}: a provider that is built takes no options")
    provider = adapter
    return _Connection(name, "", lambda: provider, {})  # type: ignore[return-value]
