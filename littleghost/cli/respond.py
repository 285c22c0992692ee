"""`littleghost respond RUN [ID]`."""

from __future__ import annotations

from typing import Any

import click

from littleghost.cli import exits
from littleghost.cli.escape import one_line
from littleghost.cli.facts import run_facts
from littleghost.cli.find import find_run
from littleghost.cli.json_argument import read_json
from littleghost.cli.options import Options, verb
from littleghost.cli.output import coloured, json_line, note, say
from littleghost.cli.pending import pending_lines
from littleghost.errors import ApprovalError
from littleghost.run import Run


@verb("respond")
@click.argument("run")
@click.argument("pending_id", metavar="[ID]", required=False)
@click.option("--approve", is_flag=True, help="Allow the call.")
@click.option(
    "--reject",
    is_flag=False,
    flag_value="",
    metavar="[REASON]",
    help="Refuse it; the model reads the reason.",
)
@click.option("--edit", metavar="JSON|-", help="Allow it with these arguments, all of them.")
@click.option("--by", default="", metavar="WHO", help="Who answers, for the run's events.")
def command(
    options: Options,
    *,
    run: str,
    pending_id: str | None,
    approve: bool,
    reject: str | None,
    edit: str | None,
    by: str,
) -> int:
    """Answer a tool call that waits for a person; without an answer, list what waits.

    ID may be left out when one call waits. Signals are sent with `littleghost signal`.
    """
    if approve + (reject is not None) + (edit is not None) > 1:
        raise click.UsageError("--approve, --reject and --edit exclude each other")
    found = find_run(options.connect(), run)
    if not approve and reject is None and edit is None:
        if pending_id is not None:
            raise click.UsageError("say --approve, --reject or --edit")
        return _list(found, options)
    arguments: Any = None if edit is None else read_json(edit, "--edit")
    named = pending_id or _only(found)
    if edit is not None:
        found.edit(named, arguments, by=by)
    elif reject is not None:
        found.reject(named, reject, by=by)
    else:
        found.approve(named, by=by)
    verdict = "rejected" if reject is not None else "approved"
    if options.as_json:
        json_line({**_facts(found), "answered": {"id": named, "verdict": verdict}})
    else:
        click.echo(f"{found.id}  {coloured(found.status)}  {one_line(named)} {verdict}")
    return exits.OK


def _only(run: Run) -> str:
    """Give the id of the one call that waits.

    Raises:
        ApprovalError: None waits, or several do.
    """
    calls = [item.id for item in run.pending if item.kind == "approval"]
    if len(calls) == 1:
        return calls[0]
    if calls:
        raise ApprovalError(
            f"{len(calls)} calls wait in run {run.id!r}: {', '.join(calls)}; name one"
        )
    raise ApprovalError(f"no call of run {run.id!r} waits for a person; it is {run.status}")


def _list(run: Run, options: Options) -> int:
    pending = run.pending
    if options.as_json:
        json_line(_facts(run))
    elif pending:
        for line in pending_lines(run.id, pending):
            say(line.removeprefix("  "))
    elif options.verbosity >= 0:
        note(f"nothing waits in run {run.id}; it is {run.status}")
    return exits.WAITING if pending else exits.OK


def _facts(run: Run) -> dict[str, Any]:
    pending = [item.to_json() for item in run.pending]
    return {**run_facts(run.record), "pending": pending}
