"""`littleghost retry RUN`."""

from __future__ import annotations

from datetime import timedelta

import click

from littleghost.cli.duration import Duration
from littleghost.cli.find import find_run
from littleghost.cli.follow import follow
from littleghost.cli.options import Options, verb
from littleghost.cli.run import started


@verb("retry")
@click.argument("run")
@click.option("--deadline", type=Duration(), help="When it must have ended: 90s, 10m, 1h30m.")
@click.option("--run-id", metavar="ID", help="An id of your own; a second run of it is refused.")
@click.option("--follow", "wants_follow", is_flag=True, help="Watch the new run.")
def command(
    options: Options,
    *,
    run: str,
    deadline: timedelta | None,
    run_id: str | None,
    wants_follow: bool,
) -> int:
    """Go on, in a new run, where a failed, cancelled or partial run ended.

    What is recorded is not done again. Prints the new run's id; the old run stays as it is.
    """
    options.load()
    found = find_run(options.connect(), run)
    again = found.retry(run_id=run_id, deadline=deadline)
    return follow(again, options, need_worker=True) if wants_follow else started(again, options)
