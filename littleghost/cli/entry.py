"""The `littleghost` command: its verbs, its global options, and how it ends.

A verb's module is imported when the verb is used, so that `littleghost --help` is instant.
"""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from littleghost.cli import exits
from littleghost.cli.escape import visible
from littleghost.cli.options import SHARED, Options, merged
from littleghost.errors import LittleGhostError

# In the order of use; each is a module of this package with a command of the verb's name.
VERBS = {
    "demo": "See a support graph at work, live, with nothing configured.",
    "run": "Start a run of an agent, and watch it or leave it to the workers.",
    "runs": "List the newest runs.",
    "show": "Show one run: facts, participants, what it waits for, conversation, error.",
    "tail": "Watch one run from any position to its end.",
    "respond": "Allow, refuse or change a tool call that waits for a person.",
    "signal": "Send a value to a workflow that waits for it.",
    "interject": "Say something to the agent that is at work.",
    "cancel": "Stop runs.",
    "retry": "Go on, in a new run, where a run ended that did not end well.",
    "fork": "Start a new run with the history of another one, up to a point.",
    "graph": "Show what an assembly is made of.",
    "worker": "Print and start the Celery worker of a role: turns, tools or all.",
    "doctor": "Check Redis, broker, workers and settings; say what to do.",
    "version": "Print the versions.",
}

HELP = """Agents that run as durable jobs, on Celery and Redis.

The journal is the Redis at LITTLEGHOST_REDIS_URL. Without one, `demo` and `run` bring their own.
"""

EPILOG = (
    "Ids may be shortened to any unique beginning. Results go to stdout, all else to stderr. "
    "Exit codes: " + exits.LEGEND + "."
)


class Verbs(click.Group):
    """A group that imports a verb's module only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the verbs in the order of use."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb."""
        del ctx
        if cmd_name not in VERBS:
            return None
        return getattr(import_module(f"littleghost.cli.{cmd_name}"), "command")  # noqa: B009

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def _begin(context: click.Context, **values: object) -> None:
    context.obj = merged(Options(), values)


group = Verbs(
    name="littleghost",
    callback=click.pass_context(_begin),
    params=[*SHARED, click.Option(["--version", "wants_version"], is_flag=True, hidden=True)],
    help=HELP,
    epilog=EPILOG,
    subcommand_metavar="VERB …",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        arguments = ["version"]
    sys.exit(run_command(arguments))


def run_command(arguments: Sequence[str]) -> int:
    """Run the command line and give its exit code; every error becomes a line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = group.main(list(arguments), prog_name="littleghost", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else exits.OK
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return exits.USAGE
    except click.ClickException as error:
        error.show(sys.stderr)
        return exits.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("littleghost: interrupted", err=True)
        return exits.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; so are we. Keep the interpreter from flushing again.
        with contextlib.suppress(OSError):
            sys.stdout = io.StringIO()
        return exits.OK
    except LittleGhostError as error:
        return _report(error, arguments)


def _report(error: LittleGhostError, arguments: Sequence[str]) -> int:
    click.echo(f"littleghost: {visible(str(error))}", err=True)
    if any(word in ("-v", "--verbose") for word in arguments):
        click.echo(visible("".join(traceback.format_exception(error))), err=True)
    return exits.of_error(error)
