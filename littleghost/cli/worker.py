"""`littleghost worker turns|tools|all`."""

from __future__ import annotations

import os
import shlex
import sys
from typing import cast

import click

from littleghost.celery.roles import ROLES, STANDALONE, Lanes, celery_command
from littleghost.cli.options import NO_REDIS, REDIS_VARIABLE, Options, import_named, verb
from littleghost.cli.output import note, say
from littleghost.errors import ConfigurationError
from littleghost.settings import PREFIX

IMPORTS_VARIABLE = PREFIX + "IMPORTS"


@verb("worker", context_settings={"ignore_unknown_options": True})
@click.argument("role", type=click.Choice(list(ROLES)))
@click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- CELERY OPTIONS…]")
@click.option("-c", "--concurrency", type=click.IntRange(1), help="Slots instead of the role's.")
@click.option(
    "--lane",
    type=click.Choice(["", "batch", "both"]),
    default="both",
    show_default=True,
    help='"" for interactive work only, "batch" for batch work only.',
)
@click.option("-l", "--loglevel", default="INFO", show_default=True)
@click.option("--print", "only_print", is_flag=True, help="Only print the command, on stdout.")
def command(
    options: Options,
    *,
    role: str,
    extra: tuple[str, ...],
    concurrency: int | None,
    lane: str,
    loglevel: str,
    only_print: bool,
) -> None:
    """Print the exact Celery command of a role, then become it.

    turns: model requests, 100 threads. tools: tool calls, one process per processor. all: both, in
    threads. -A names a Celery app (then it is used) or modules with agents (then a Celery app of
    LittleGhost's own imports them).
    """
    settings = options.settings()
    if settings.redis_url is None:
        raise ConfigurationError(NO_REDIS)
    app, imports = _resolve(options)
    line = celery_command(
        ROLES[role],
        settings,
        app=app,
        lanes=cast("Lanes", lane),
        concurrency=concurrency or 0,
        loglevel=loglevel,
        extra=extra,
    )
    assignments: dict[str, str] = {}
    if imports:
        assignments[IMPORTS_VARIABLE] = ",".join(dict.fromkeys((*imports, *settings.imports)))
    if only_print:
        if options.redis_url:
            assignments[REDIS_VARIABLE] = options.redis_url
        say(_shell(assignments, line))
        return
    if app == STANDALONE and not imports and not settings.imports:
        note(
            "littleghost: no module with agents is named, so this worker knows none; "
            f"add -A my.module or set {IMPORTS_VARIABLE}"
        )
    if options.verbosity >= 0:
        note(_shell(assignments, line))
    os.environ.update(assignments)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(line[0], line)


def _resolve(options: Options) -> tuple[str, list[str]]:
    """Give the Celery app to use, and the modules that its workers are to import."""
    app, modules = STANDALONE, list[str]()
    for target in options.modules:
        import_named(target)
        from littleghost.celery.apps import load_tasks, require_tasks

        found = load_tasks(target)
        if found is None:
            modules.append(target)
        elif app != STANDALONE:
            raise ConfigurationError(f"-A names two Celery apps, {app!r} and {target!r}; use one")
        else:
            require_tasks(found, target)
            app = target
    return app, modules


def _shell(assignments: dict[str, str], line: list[str]) -> str:
    return " ".join(
        [*(f"{name}={shlex.quote(value)}" for name, value in assignments.items()), shlex.join(line)]
    )
