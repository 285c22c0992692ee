"""`littleghost show RUN`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from littleghost.cli.conversation import conversation_lines
from littleghost.cli.escape import one_line, visible
from littleghost.cli.facts import error_facts, run_facts, task_facts
from littleghost.cli.find import find_run
from littleghost.cli.options import Options, verb
from littleghost.cli.output import coloured, duration, json_line, say
from littleghost.cli.pending import pending_lines
from littleghost.cli.tree import tree_lines
from littleghost.participants import participants_of
from littleghost.pending import pending_of

if TYPE_CHECKING:
    from littleghost.journal.record import RunRecord
    from littleghost.wiring import Runtime


@verb("show")
@click.argument("run")
def command(options: Options, *, run: str) -> None:
    """Show one run: facts, participants with their tasks, what it waits for, conversation, error.

    -v adds the traceback and long results.
    """
    work = options.connect()
    record = find_run(work, run).record
    talks = _conversations(work, record)
    pending, now_ms = pending_of(record), work.workers.now_ms()
    is_verbose = options.verbosity > 0
    said = {name: messages for name, _, messages in talks}
    if options.as_json:
        json_line(
            {
                **run_facts(record, with_traceback=is_verbose),
                "participants": [
                    {**facts, "messages": said.get(facts["id"])}
                    for facts in (item.to_json() for item in participants_of(record, now_ms))
                ],
                "tasks": [task_facts(name, task) for name, task in sorted(record.tasks.items())],
                "pending": [item.to_json() for item in pending],
            }
        )
        return
    _print_facts(record)
    say("\nparticipants")
    for line in tree_lines(record, now_ms):
        click.echo(line)
    if pending:
        say("\npending")
        for line in pending_lines(record.run_id, pending):
            say(line)
    for _, label, messages in talks:
        say(f"\nconversation of {one_line(label)}" if len(talks) > 1 else "\nconversation")
        for line in conversation_lines(messages, full=is_verbose):
            say(line)
    _print_error(record.error, is_verbose)


def _conversations(work: Runtime, record: RunRecord) -> list[tuple[str, str, list[Any]]]:
    return [
        (name, str(header.get("n", name)), work.records.messages(record, name))
        for name, header in sorted(record.participants.items())
        if header.get("k") == "agent"
    ]


def _print_facts(record: RunRecord) -> None:
    facts = run_facts(record)
    click.echo(f"run         {record.run_id}")
    click.echo(f"status      {coloured(record.status)}{_waits(record)}")
    say(f"agent       {one_line(record.assembly)}")
    took = f"   took {duration(facts['duration_s'])}" if record.ended_ms else ""
    say(f"created     {facts['created_at']}{took}")
    for name in ("deadline_at", "actor_id"):
        if facts[name]:
            say(f"{name.partition('_')[0]:<12}{one_line(str(facts[name]))}")
    if facts["session_id"] != record.run_id:
        say(f"session     {one_line(str(facts['session_id']))}")
    for name, label in (("retry_of", "retry of"), ("forked_from", "fork of")):
        if facts[name]:
            say(f"{label:<12}{one_line(str(facts[name]))}")
    say(f"tokens      {usage_text(record)}")
    say(f"events      {record.events}")


def _waits(record: RunRecord) -> str:
    return "   waits for an earlier run of its session" if record.waits_for_session else ""


def usage_text(record: RunRecord) -> str:
    """Write a run's tokens for people."""
    parts = [f"{count} {name.replace('_', ' ')}" for name, count in record.usage.to_json().items()]
    return ", ".join(parts) or "none yet"


def _print_error(error: Mapping[str, Any] | None, is_verbose: bool) -> None:
    facts = error_facts(error, with_traceback=is_verbose)
    if not facts:
        return
    say(f"\nerror       {facts['code']}: {facts['message']}")
    if facts.get("detail"):
        say(f"            {one_line(facts.get('type', ''))}: {one_line(facts['detail'], 1000)}")
    if facts.get("traceback"):
        say(visible(facts["traceback"]))
    elif error and error.get("traceback"):
        say("            (-v shows the traceback)")
