"""`littleghost version`."""

from __future__ import annotations

import platform
from importlib import metadata

from littleghost.cli.options import Options, verb
from littleghost.cli.output import json_line, say
from littleghost.version import __version__

_PACKAGES = ("celery", "kombu", "redis", "httpx", "pydantic")


@verb("version")
def command(options: Options) -> None:
    """Print the versions of LittleGhost and of what it stands on."""
    found = {"littleghost": __version__, "python": platform.python_version()}
    found.update({name: metadata.version(name) for name in _PACKAGES})
    if options.as_json:
        json_line(found)
    elif options.verbosity < 0:
        say(__version__)
    else:
        for name, number in found.items():
            say(f"{name:<12} {number}")
