"""`littleghost signal RUN NAME [JSON]`."""

from __future__ import annotations

import click

from littleghost.cli.escape import one_line
from littleghost.cli.facts import run_facts
from littleghost.cli.find import find_run
from littleghost.cli.json_argument import read_json
from littleghost.cli.options import Options, verb
from littleghost.cli.output import coloured, json_line


@verb("signal")
@click.argument("run")
@click.argument("name")
@click.argument("value", metavar="[JSON|-]", default="null")
@click.option("--id", "signal_id", metavar="ID", help="Makes it safe to repeat.")
def command(options: Options, *, run: str, name: str, value: str, signal_id: str | None) -> None:
    """Send a value to the workflow that waits for NAME, or to the next one that will.

    The value is JSON, null unless given; - reads it from stdin. Text needs its quotes: '"yes"'.
    """
    found = find_run(options.connect(), run)
    found.signal(name, read_json(value, "value"), id=signal_id)
    found.refresh()
    if options.as_json:
        json_line(run_facts(found.record))
    else:
        click.echo(f"{found.id}  {coloured(found.status)}  {one_line(name)} sent")
