"""Reads model selections: targets, roles and inline mappings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from littleghost.errors import ConfigurationError, UnknownModelError

Selection: TypeAlias = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """A model of a connection, with settings.

    Attributes:
        connection: The connection's name.
        model: The service's own model id.
        settings: Settings of every request to it.
    """

    connection: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"{self.connection}:{self.model}"


@dataclass(frozen=True, slots=True)
class Role:
    """A name for a choice: `base` is a target ("connection:model") or another role."""

    base: str
    settings: Mapping[str, Any]


class Roles:
    """The configured roles. `support.billing` falls back to `support` when it is not there."""

    def __init__(self) -> None:
        self._roles: dict[str, Role] = {}

    def add(self, name: str, base: str, settings: Mapping[str, Any] | None = None) -> None:
        """Add or replace a role.

        Raises:
            ConfigurationError: The name has a colon, which would make it a target.
        """
        if not name or ":" in name:
            raise ConfigurationError(f"role {name!r}: a role's name is not empty and has no colon")
        if not base:
            raise ConfigurationError(f"role {name!r} needs a target or a role to inherit from")
        self._roles[name] = Role(base, dict(settings or {}))

    def names(self) -> list[str]:
        """Give the roles' names, sorted."""
        return sorted(self._roles)

    def target(self, selection: Selection) -> Target:
        """Follow a selection to the model it means.

        Args:
            selection: "connection:model", a role's name, or a mapping
                `{"provider": connection, "model": id, …settings}`; without a provider, its
                `model` is a selection itself.

        Raises:
            UnknownModelError: No role has this name.
            ConfigurationError: Roles inherit from each other in a circle.
        """
        if isinstance(selection, str):
            return self._follow(selection, selection, ())
        settings = dict(selection)
        connection, model = settings.pop("provider", None), settings.pop("model", None)
        if not isinstance(model, str) or not model or not isinstance(connection, str | None):
            raise UnknownModelError(
                f"model selection {dict(selection)!r} needs 'model' and 'provider', both text"
            )
        if connection:
            return Target(connection, model, settings)
        target = self._follow(model, model, ())
        return Target(target.connection, target.model, {**target.settings, **settings})

    def _follow(self, name: str, selection: str, seen: tuple[str, ...]) -> Target:
        connection, colon, model = name.partition(":")
        if colon:
            if not connection or not model:
                raise UnknownModelError(f"model selection {name!r} is not 'connection:model'")
            return Target(connection, model)
        if name in seen:
            circle = " → ".join((*seen, name))
            raise ConfigurationError(f"model roles inherit from each other: {circle}")
        role = self._find(name)
        if role is None:
            known = ", ".join(self.names()) or "none"
            raise UnknownModelError(
                f"model selection {selection!r}: there is no role {name!r} (roles: {known}). "
                "Name a model as 'connection:model'"
            )
        target = self._follow(role.base, selection, (*seen, name))
        return Target(target.connection, target.model, {**target.settings, **role.settings})

    def _find(self, name: str) -> Role | None:
        while name:
            if name in self._roles:
                return self._roles[name]
            name = name.rpartition(".")[0]
        return None
