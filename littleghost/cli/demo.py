"""`littleghost demo`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from littleghost.cli.options import NO_REDIS, REDIS_VARIABLE, Options, verb
from littleghost.cli.output import say
from littleghost.errors import ConfigurationError
from littleghost.settings import PREFIX

_STAND_IN = """\
The model is a scripted stand-in: no account, no network. For a real one set OPENAI_API_KEY or
OPENROUTER_API_KEY, or say --model connection:model-id (--base-url for a server of your own)."""
_NEXT = """
Where to look next
  the graph:       {path}
  ask it more:     {me} demo "What about order 502, and how do I get an invoice?"
  the other way:   {me} demo "How fast is shipping?"
  your own:        {me} run my_module:MyAgent "…"
  a fleet:         export LITTLEGHOST_REDIS_URL=redis://127.0.0.1:6379/0
                   {me} worker all -A littleghost.demo.support &
                   {me} demo --fleet"""
_NEXT_FLEET = """
Where to look next
  this run:        {me} show {run}
  all runs:        {me} runs
  the fleet:       {me} doctor"""


@verb("demo")
@click.argument("question", default="")
@click.option("--model", metavar="CONNECTION:ID", help="Ask this model.")
@click.option("--base-url", metavar="URL", help="Where the model's server is (OpenAI's dialect).")
@click.option(
    "--fleet", is_flag=True, help="Let the workers at LITTLEGHOST_REDIS_URL carry the run."
)
def command(
    options: Options, *, question: str, model: str | None, base_url: str | None, fleet: bool
) -> int:
    """See a graph of agents at work: who runs, tool calls, streamed text, tokens, the answer.

    Needs nothing: it brings a private Redis and a worker, and a scripted model when no key is set.
    """
    _choose_place(options, fleet)
    _choose_model(model, base_url)
    # From here on the environment is settled.
    from littleghost.cli.follow import follow
    from littleghost.demo import STAND_IN, model_or_stand_in, support

    chosen = model_or_stand_in()
    asked = question.strip() or support.QUESTION
    if not options.as_json:
        say(f"Question:  {asked}")
        say(f"Model:     {chosen}")
        if chosen == STAND_IN:
            say(_STAND_IN)
        if fleet:
            say("Workers:   the fleet's; they must import littleghost.demo.support")
        say()
    run = support.SupportGraph.enqueue(
        asked, actor_id="demo", context={"account_id": support.ACCOUNT, "model": chosen}
    )
    code = follow(run, options, need_worker=True)
    if not options.as_json:
        next_steps = _NEXT_FLEET if fleet else _NEXT
        say(next_steps.format(run=run.id, path=support.__file__, me=_called()))
    return code


def _called() -> str:
    """Give what to type for this command: its name when the shell finds it, else its path."""
    name = Path(sys.argv[0]).name
    if shutil.which(name) and name == "littleghost":
        return name
    return sys.argv[0] if name == "littleghost" else "littleghost"


def _choose_place(options: Options, fleet: bool) -> None:
    settings = options.settings()
    if fleet:
        if settings.redis_url is None:
            raise ConfigurationError(NO_REDIS)
        return
    # A fleet's workers need not know the demo's agent, so the demo brings its own.
    for variable in (REDIS_VARIABLE, PREFIX + "BROKER_URL"):
        os.environ.pop(variable, None)


def _choose_model(model: str | None, base_url: str | None) -> None:
    if base_url:
        if not model:
            raise click.UsageError("--base-url needs --model: the id of a model that server has")
        os.environ[PREFIX + "BASE_URL"] = base_url
    if model:
        named = model if ":" in model or not base_url else f"openai_compatible:{model}"
        os.environ[PREFIX + "MODEL"] = named
