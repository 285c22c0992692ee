"""The examples, as a reader runs them: offline, with nothing configured."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Place, printed_command, run_printed
from tests.acceptance.processes import ROOT, Terminal, environment, littleghost, started

pytestmark = pytest.mark.worker

EXAMPLES = ROOT / "examples"
# What each prints, in this order.
PRINTED = {
    "caller": ["[order_status", "Order 481 left the warehouse"],
    "workflow": [
        "letter of a teapot; stock of a teapot: fine; price of a teapot: fine; reservation of",
        "  letter: completed",
    ],
    "swarm": ["triage → billing", "bill 7 is 30 euro now"],
    "graph": [
        "flowchart TD",
        'n_advise["advise"]',
        "sort: trip",
        "trains: failed",
        "buses: A bus leaves at nine.",
        "Take the bus at nine, and a hat.",
    ],
    "subagents": [
        "/lamps spawned",
        "/lamps: Done: Find out about lamps.",
        "/lighthouses: Done: Find out about lighthouses.",
    ],
    "approvals": [
        "May it call refund with {'order': 481, 'euro': 30}? Yes, nobody is here to ask.",
        "30 euro for order 481 are paid back.",
    ],
    "builder": ["triage → billing → answer", "triage → shipping → answer"],
    "chat": ["agent: That was number 1.", "agent: That was number 2. You began with: I am Ada."],
}


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", f"examples.{name}"]


@pytest.mark.parametrize("name", PRINTED)
def test_it_runs_with_nothing_configured(name: str) -> None:
    done = subprocess.run(
        _command(name),
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    at = 0
    for piece in PRINTED[name]:
        assert piece in done.stdout[at:], f"{piece!r} is not in:\n{done.stdout}"
        at = done.stdout.index(piece, at)


def test_every_example_is_run_and_listed() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {*PRINTED, "support"}
    told = set(re.findall(r"\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text("utf-8")))
    assert told == names


@pytest.mark.parametrize(
    ("answer", "said"), [("n", "not today"), ("y", "30 euro for order 481 are paid back")]
)
def test_a_person_is_asked_where_there_is_one(answer: str, said: str) -> None:
    terminal = Terminal(_command("approvals"), environment())
    try:
        terminal.read_until(lambda text: "[y/N]" in text, "it asks")
        terminal.type(f"{answer}\n")
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert said in terminal.output


def test_workers_can_import_all_of_them_at_once(place: Place, tmp_path: Path) -> None:
    modules = [f"examples.{name}" for name in sorted({*PRINTED, "support"} - {"caller"})]
    env = {**place.env, "LITTLEGHOST_IMPORTS": ",".join(modules)}
    line = printed_command("all", "-c", "4", env=env)
    command, env = run_printed(line, env)
    log = tmp_path / "all.log"
    with started(command, log, env=env):
        place.wait_for_workers(1, log)
        for target, said in (
            ("examples.graph:TripGraph", "Take the bus at nine, and a hat."),
            ("examples.chat:ChatAgent", "That was number 1."),
        ):
            done = littleghost("run", target, "A trip", env=env)
            assert done.returncode == 0, done.stderr
            assert said in done.stdout
