"""`littleghost cancel RUN…`."""

from __future__ import annotations

import sys

import click

from littleghost.cli import exits
from littleghost.cli.facts import run_facts
from littleghost.cli.find import find_run
from littleghost.cli.options import Options, verb
from littleghost.cli.output import coloured, json_line, note
from littleghost.errors import LittleGhostError, RunNotFoundError


@verb("cancel")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--reason", default="", help="For the run's error; shown to developers.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(options: Options, *, runs: tuple[str, ...], reason: str, yes: bool) -> int:
    """Stop runs: nothing new starts, what is running is cut. Ended runs stay as they are."""
    work = options.connect()
    found = []
    missing = 0
    for text in dict.fromkeys(runs):
        try:
            found.append(find_run(work, text))
        except RunNotFoundError as error:
            note(f"littleghost: {error}")
            missing += 1
    live = [run for run in found if not run.is_finished]
    if live and not yes:
        _ask([run.id for run in live])
    failed = 0
    for run in found:
        try:
            if not run.is_finished:
                run.cancel(reason)
        except LittleGhostError as error:
            note(f"littleghost: {run.id}: {error}")
            failed += 1
            continue
        if options.as_json:
            json_line(run_facts(run.record))
        else:
            click.echo(f"{run.id}  {coloured(run.status)}")
    if missing:
        return exits.NOT_FOUND
    return exits.FAILED if failed else exits.OK


def _ask(names: list[str]) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("cancelling asks first, and there is nobody to ask; add --yes")
    what = names[0] if len(names) == 1 else f"these {len(names)} runs: {', '.join(names)}"
    click.confirm(f"Cancel {what}?", abort=True, err=True)
