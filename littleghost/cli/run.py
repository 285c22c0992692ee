"""`littleghost run AGENT [INPUT|-]`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click

from littleghost.cli import exits
from littleghost.cli.duration import Duration
from littleghost.cli.facts import run_facts
from littleghost.cli.find import find_assembly
from littleghost.cli.follow import follow, leave
from littleghost.cli.options import NO_REDIS, Options, verb
from littleghost.cli.output import json_line, note, say
from littleghost.cli.pending import waiting_note
from littleghost.errors import ConfigurationError, WaitTimeoutError
from littleghost.run import Run
from littleghost.wiring import runtime


@verb("run")
@click.argument("agent")
@click.argument("message", metavar="INPUT|-")
@click.option(
    "--follow", "wants_follow", is_flag=True, help="Watch it: live on a terminal, lines in a pipe."
)
@click.option("--detach", is_flag=True, help="Print the id and leave the run to the workers.")
@click.option("--deadline", type=Duration(), help="When it must have ended: 90s, 10m, 1h30m.")
@click.option("--session", metavar="S", help="The session it continues.")
@click.option("--actor", metavar="A", help="On whose behalf.")
@click.option(
    "--context", multiple=True, metavar="K=V", help="For the tools; K:=JSON for other values."
)
@click.option("--run-id", metavar="ID", help="An id of your own; a second run of it is refused.")
@click.option(
    "--lane", type=click.Choice(["", "batch"]), default="", help="batch: never delays others."
)
def command(
    options: Options,
    *,
    agent: str,
    message: str,
    wants_follow: bool,
    detach: bool,
    deadline: timedelta | None,
    session: str | None,
    actor: str | None,
    context: tuple[str, ...],
    run_id: str | None,
    lane: str,
) -> int:
    """Start a run of AGENT: module:Class, or the id or class name of one that -A imports.

    INPUT is the user's message; - reads it from stdin. On a terminal the run is shown live; in a
    pipe only its answer is printed, unless --follow asks for every step.
    """
    if wants_follow and detach:
        raise click.UsageError("--follow and --detach exclude each other")
    settings = options.load()
    if detach and settings.is_embedded:
        raise ConfigurationError(f"--detach needs workers that outlive this command; {NO_REDIS}")
    text = sys.stdin.read() if message == "-" else message
    run: Run = find_assembly(agent).enqueue(
        text,
        lane=lane,
        deadline=deadline,
        session_id=session,
        actor_id=actor,
        context=_context(context),
        run_id=run_id,
    )
    if detach:
        return started(run, options)
    if wants_follow or (sys.stdout.isatty() and not options.as_json):
        return follow(run, options, need_worker=True)
    return _answer(run, options)


def started(run: Run, options: Options) -> int:
    """Tell the id of a run that workers carry."""
    if options.as_json:
        json_line(run_facts(run.record))
    else:
        say(run.id)
    if options.verbosity >= 0:
        note(f"watch it: littleghost tail {run.id}")
    return exits.OK


def _answer(run: Run, options: Options) -> int:
    """Wait, and print nothing but the answer."""
    try:
        _wait(run, options)
    except KeyboardInterrupt:
        return leave(run)
    failure = run.error
    if options.as_json:
        json_line(run_facts(run.record))
    elif run.response:
        say(run.response)
    if failure is not None:
        note(f"littleghost: {run.status}: {failure.message} ({failure.code})")
        if failure.detail and failure.detail != failure.message:
            note(f"littleghost: {failure.type}: {failure.detail}")
    return exits.of_run(run.status, failure.code if failure else "")


def _wait(run: Run, options: Options) -> None:
    """Wait for the end, and say each time when the run has come to wait for a person."""
    # Long enough for the wait to find out that there is no worker.
    look_s = runtime().settings.no_worker_after_s + 2
    told = ""
    while True:
        try:
            run.wait(look_s if told else 1.0, need_worker=True)
            return
        except WaitTimeoutError:
            news = waiting_note(run)
            if news and news != told and options.verbosity >= 0:
                note(news)
            told = news or " "


def _context(pairs: tuple[str, ...]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.rstrip(":"):
            raise click.UsageError(f"--context {pair!r}: write NAME=TEXT or NAME:=JSON")
        if not name.endswith(":"):
            found[name] = value
            continue
        try:
            found[name[:-1]] = json.loads(value)
        except ValueError as error:
            raise click.UsageError(f"--context {pair!r}: {value!r} is no JSON") from error
    return found
