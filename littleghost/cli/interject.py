"""`littleghost interject RUN MESSAGE`."""

from __future__ import annotations

import sys
from typing import Any

import click

from littleghost.cli.conversation import arguments_text
from littleghost.cli.escape import one_line
from littleghost.cli.find import find_run
from littleghost.cli.options import Options, verb
from littleghost.cli.output import json_line, note, say
from littleghost.reach import InterjectionAnswer


@verb("interject")
@click.argument("run")
@click.argument("message", metavar="MESSAGE|-")
@click.option("--wait", "wants_answer", is_flag=True, help="Wait for the answer and print it.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="How long to wait; a message not delivered by then is taken back.",
)
@click.option("--id", "message_id", metavar="ID", help="Makes it safe to repeat.")
def command(
    options: Options,
    *,
    run: str,
    message: str,
    wants_answer: bool,
    timeout_s: float | None,
    message_id: str | None,
) -> None:
    """Say something to the agent that is at work; - reads it from stdin.

    It gets the message before its next model request, answers it briefly, and goes on.
    """
    if timeout_s is not None and not wants_answer:
        raise click.UsageError("--timeout is for --wait")
    found = find_run(options.connect(), run)
    text = sys.stdin.read() if message == "-" else message
    sent = found.interject(text, id=message_id)
    facts: dict[str, Any] = {"run": found.id, "id": sent.id, "participant": sent.participant}
    answer = sent.wait(timeout_s) if wants_answer else None
    if options.as_json:
        json_line({**facts, "answer": _told(answer)})
    elif answer is not None:
        _show(answer)
    else:
        say(f"{found.id}  message {one_line(sent.id)} is kept for the agent")


def _told(answer: InterjectionAnswer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {
        "text": answer.text,
        "tool_calls": [use.to_json() for use in answer.tool_calls],
        "interjection_ids": list(answer.interjection_ids),
    }


def _show(answer: InterjectionAnswer) -> None:
    if answer.text:
        say(answer.text)
    for use in answer.tool_calls:
        note(f"→ {one_line(use.name, 64)} {arguments_text(use.input)}")
