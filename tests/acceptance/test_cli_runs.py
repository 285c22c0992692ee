"""The verbs over one journal with one worker, as a user types them."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import SHOP, Place, newest_run
from tests.acceptance.processes import CLI, Terminal, littleghost, without_styles
from tests.support.redis_server import wait_until

pytestmark = pytest.mark.worker
UNSAFE = ("\x1b", "\x07", "\u202e", "\x9b")


def test_the_answer_alone_goes_to_a_pipe(fleet: Place) -> None:
    done = littleghost("-A", SHOP, "run", "echo", "hello", env=fleet.env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "you said hello\n", "")


def test_input_comes_from_stdin(fleet: Place) -> None:
    done = littleghost("run", f"{SHOP}:EchoAgent", "-", env=fleet.env, text="from a pipe")
    assert done.stdout == "you said from a pipe\n"


def test_a_run_is_found_by_its_beginning_and_shown(fleet: Place) -> None:
    own = {"--session": "s-1", "--actor": "a-1", "--context": "k=v", "--run-id": "my-own-run-1"}
    options = [word for pair in own.items() for word in pair]
    assert littleghost("run", f"{SHOP}:EchoAgent", "x", *options, env=fleet.env).returncode == 0
    shown = littleghost("show", newest_run(fleet.client)[:-3], "--json", env=fleet.env)
    facts = json.loads(shown.stdout)
    assert facts["id"].endswith("my-own-run-1")
    assert (facts["session_id"], facts["actor_id"]) == ("s-1", "a-1")
    texts = [message["content"][0]["text"] for message in facts["participants"][0]["messages"]]
    assert texts == ["x", "you said x"]


def test_follow_in_a_pipe_is_lines_and_json_is_events(fleet: Place) -> None:
    run = ("run", f"{SHOP}:EchoAgent", "hi", "--follow")
    plain = littleghost(*run, env=fleet.env)
    lines = plain.stdout.splitlines()
    assert lines[0].startswith("run ")
    assert lines[2].strip() == "you said hi"
    assert lines[3] == "= completed"
    events = [
        json.loads(line)
        for line in littleghost("--json", *run, env=fleet.env).stdout.split("\n")[:-1]
    ]
    assert events[-1]["type"] == "run_stop"


@pytest.mark.parametrize("verb", ["run", "follow", "tail", "show"])
def test_text_of_models_and_tools_cannot_reach_the_terminal(fleet: Place, verb: str) -> None:
    run = ("run", f"{SHOP}:HostileAgent", "hi")
    done = littleghost(*run, *(["--follow"] if verb == "follow" else []), env=fleet.env)
    if verb in ("tail", "show"):
        done = littleghost(verb, newest_run(fleet.client), "-v", env=fleet.env)
    assert done.returncode == 0
    assert not [mark for mark in UNSAFE if mark in done.stdout + done.stderr]
    assert "\\x1b]0;owned" in done.stdout
    assert "[bold red]x[/bold red]" in done.stdout


def test_on_a_terminal_hostile_text_is_escaped_and_markup_is_text(fleet: Place) -> None:
    terminal = Terminal([*CLI, "run", f"{SHOP}:HostileAgent", "hi"], fleet.env)
    try:
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert "\x1b]0;" not in terminal.output
    assert "\x1b[2J" not in terminal.output
    assert "[bold red]x[/bold red]" in without_styles(terminal.output)


def test_ctrl_c_while_following_detaches_and_says_how_to_cancel(fleet: Place) -> None:
    terminal = Terminal([*CLI, "run", f"{SHOP}:SlowAgent", "hi"], fleet.env)
    try:
        terminal.read_until(lambda text: "writes" in text, "text streams")
        terminal.interrupt()
        assert terminal.end() == 130
    finally:
        terminal.close()
    run_id = newest_run(fleet.client)
    assert f"littleghost cancel {run_id}" in terminal.output
    assert f"littleghost tail {run_id}" in terminal.output
    running = littleghost("runs", "--status", "running", "--json", env=fleet.env)
    assert run_id in running.stdout
    assert littleghost("cancel", run_id, "--yes", env=fleet.env).returncode == 0
    ended = littleghost("tail", run_id[3:], "--json", env=fleet.env)
    assert ended.returncode == 3
    assert json.loads(ended.stdout.splitlines()[-1])["type"] == "run_cancel"


def test_cancel_asks_when_nobody_said_yes(fleet: Place) -> None:
    detached = littleghost("run", f"{SHOP}:SlowAgent", "hi", "--detach", env=fleet.env)
    run_id = detached.stdout.strip()
    refused = littleghost("cancel", run_id, env=fleet.env)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    mixed = littleghost(
        "cancel", run_id, "no-such-run", "--yes", "--reason", "enough", env=fleet.env
    )
    assert mixed.returncode == 6
    wait_until(
        lambda: "enough" in littleghost("show", run_id, "-v", env=fleet.env).stdout,
        "it is cancelled",
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("run", f"{SHOP}:EchoAgent", "hi"), 0),
        (("run", f"{SHOP}:BadAgent", "hi"), 1),
        (("run", f"{SHOP}:EchoAgent", " "), 2),
        (("run", f"{SHOP}:NoAgent", "hi"), 2),
        (("run", "no.such.module:Agent", "hi"), 2),
        (("run", "echo", "hi"), 2),
        (("run", f"{SHOP}:EchoAgent"), 2),
        (("run", f"{SHOP}:EchoAgent", "hi", "--deadline", "soon"), 2),
        (("run", f"{SHOP}:SlowAgent", "hi", "--deadline", "1s"), 4),
        (("show", "no-such-run"), 6),
        (("tail", "no-such-run"), 6),
        (("show", "-bad-"), 2),
        (("--redis", "redis://127.0.0.1:1/0", "runs"), 75),
        (("runs",), 0),
        (("nonsense",), 2),
    ],
)
def test_exit_codes(fleet: Place, arguments: tuple[str, ...], code: int) -> None:
    done = littleghost(*arguments, env=fleet.env)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert not code or done.stderr


def test_an_agent_error_is_told_with_its_traceback_only_when_asked(fleet: Place) -> None:
    littleghost("run", f"{SHOP}:BadAgent", "hi", env=fleet.env)
    run_id = newest_run(fleet.client)
    short = littleghost("show", run_id, env=fleet.env).stdout
    long = littleghost("show", run_id, "-v", env=fleet.env).stdout
    assert "invalid_request" in short
    assert "Traceback" not in short
    assert "no such thing" in long
    failed = littleghost(
        "runs", "--status", "failed", "--agent", "BadAgent", "--json", env=fleet.env
    )
    assert run_id in failed.stdout
