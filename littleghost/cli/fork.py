"""`littleghost fork RUN [MESSAGE]`."""

from __future__ import annotations

import sys

import click

from littleghost.cli.find import find_run
from littleghost.cli.follow import follow
from littleghost.cli.options import Options, verb
from littleghost.cli.run import started


@verb("fork")
@click.argument("run")
@click.argument("message", metavar="[MESSAGE|-]", required=False)
@click.option(
    "--at", metavar="EVENT|TASK", help='Up to where: the id of an event, or of a task as "0-t3".'
)
@click.option("--session", metavar="S", help="A new session that it begins.")
@click.option("--run-id", metavar="ID", help="An id of your own; a second run of it is refused.")
@click.option("--follow", "wants_follow", is_flag=True, help="Watch the new run.")
def command(
    options: Options,
    *,
    run: str,
    message: str | None,
    at: str | None,
    session: str | None,
    run_id: str | None,
    wants_follow: bool,
) -> int:
    """Start a new run with the history of another one, up to a point.

    MESSAGE is what it is asked on top of that; without one it takes the turn at that point again.
    The module of its assembly is named by -A, or in LITTLEGHOST_IMPORTS.
    Prints the new run's id; the old run stays as it is.
    """
    options.load()
    found = find_run(options.connect(), run)
    text = sys.stdin.read() if message == "-" else message
    fields = {"session_id": session, "run_id": run_id}
    forked = found.fork(
        at=at, message=text, **{name: value for name, value in fields.items() if value is not None}
    )
    return follow(forked, options, need_worker=True) if wants_follow else started(forked, options)
