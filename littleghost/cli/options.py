"""The options every verb shares, and what they set up before it works."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from littleghost.errors import ConfigurationError
from littleghost.settings import PREFIX, Settings

if TYPE_CHECKING:
    from littleghost.wiring import Runtime

REDIS_VARIABLE = PREFIX + "REDIS_URL"
NO_REDIS = (
    f"no Redis is configured: set {REDIS_VARIABLE}, or pass --redis redis://host:6379/0 "
    "(a run of `littleghost demo` or an embedded `littleghost run` ends with its process)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was said before or after the verb.

    Attributes:
        app: Modules to import, so that their assemblies are known; commas between.
        redis_url: The journal's Redis instead of the environment's.
        as_json: Whether results are JSON.
        verbosity: -1 quiet, 0 normal, 1 or more verbose.
    """

    app: str = ""
    redis_url: str = ""
    as_json: bool = False
    verbosity: int = 0

    @property
    def modules(self) -> list[str]:
        """The modules of `app`, in order."""
        return [name.strip() for name in self.app.split(",") if name.strip()]

    def settings(self) -> Settings:
        """Apply the options to this process and give its settings.

        The URL goes into the environment: the application's modules read the same one.
        """
        if self.redis_url:
            os.environ[REDIS_VARIABLE] = self.redis_url
        if self.verbosity > 0:
            logging.basicConfig(level=logging.INFO, stream=sys.stderr)
        return Settings.from_environment()

    def load(self) -> Settings:
        """Do that, and import the application's modules."""
        settings = self.settings()
        for name in (*self.modules, *settings.imports):
            import_named(name)
        return settings

    def connect(self) -> Runtime:
        """Give the runtime of a journal that exists.

        Raises:
            ConfigurationError: None is configured; a private one would hold nothing.
        """
        if self.settings().redis_url is None:
            raise ConfigurationError(NO_REDIS)
        from littleghost.wiring import runtime

        return runtime()


def import_named(target: str) -> Any:
    """Import a module as the user named it, the working directory first.

    Raises:
        ConfigurationError: There is no such module. Errors inside it are raised as they are.
    """
    name = target.partition(":")[0]
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise ConfigurationError(
                f"there is no module {name!r} in {here} or among the installed packages"
            ) from error
        raise
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{name!r} is no module name") from error
    if "celery" in sys.modules:
        from littleghost.celery.apps import load_tasks

        load_tasks(target)
    return module


def _shared() -> list[click.Option]:
    return [
        click.Option(["-A", "--app"], metavar="MODULE", help="Import this module's assemblies."),
        click.Option(["--redis", "redis_url"], metavar="URL", help="The journal's Redis."),
        click.Option(["--json", "as_json"], is_flag=True, help="Results as JSON (lines)."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Only results and errors."),
        click.Option(["-v", "--verbose"], count=True, help="More detail; logs on stderr."),
    ]


SHARED = _shared()


def merged(options: Options, values: Mapping[str, Any]) -> Options:
    """Give the options with what was said this time on top."""
    found = replace(options)
    if values.get("app"):
        found = replace(found, app=str(values["app"]))
    if values.get("redis_url"):
        found = replace(found, redis_url=str(values["redis_url"]))
    if values.get("as_json"):
        found = replace(found, as_json=True)
    if values.get("quiet"):
        found = replace(found, verbosity=-1)
    if values.get("verbose"):
        found = replace(found, verbosity=int(values["verbose"]))
    return found


def verb(name: str, **settings: Any) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a function a verb: it gets the options first, then its own parameters, by name.

    The shared options are understood before and after the verb.

    Args:
        name: The verb.
        settings: For click's command.
    """

    def decorate(function: Callable[..., int | None]) -> click.Command:
        @functools.wraps(function)
        def work(**values: Any) -> int | None:
            shared = {option.name or "": values.pop(option.name or "", None) for option in SHARED}
            given = click.get_current_context().find_object(Options) or Options()
            return function(merged(given, shared), **values)

        made = click.command(name, **settings)(work)
        made.params += [option for option in _shared() if not _taken(made, option)]
        return made

    return decorate


def _taken(command: click.Command, option: click.Option) -> bool:
    return any(option.name == other.name for other in command.params)
