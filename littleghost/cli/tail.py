"""`littleghost tail RUN`."""

from __future__ import annotations

import click

from littleghost.cli.find import find_run
from littleghost.cli.follow import follow
from littleghost.cli.options import Options, verb


@verb("tail")
@click.argument("run")
@click.option(
    "--after",
    type=click.IntRange(0),
    default=0,
    metavar="ID",
    help="Begin behind the event of this id.",
)
def command(options: Options, *, run: str, after: int) -> int:
    """Watch one run from any position to its end; ends with the run's exit code.

    Ctrl-C stops the watching and leaves the run alone.
    """
    work = options.connect()
    found = find_run(work, run)
    return follow(found, options, after=after, seen=found.record.events, need_worker=False)
