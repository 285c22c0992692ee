"""The fleet of compose.yaml as local processes: Redis, turns, tools, and the example caller."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Place, newest_run, printed_command, run_printed
from tests.acceptance.processes import CLI, ROOT, Terminal, littleghost, started, without_styles

pytestmark = pytest.mark.worker


@pytest.mark.parametrize("target", ["workers.app", "examples.support"])
def test_an_example_caller_gets_its_answer_from_turns_and_tools(
    place: Place, tmp_path: Path, target: str
) -> None:
    env = {
        **place.env,
        "LITTLEGHOST_IMPORTS": "examples.support",
        "WORKER_HEARTBEAT_FILE": str(tmp_path / "heartbeat"),
    }
    logs = {role: tmp_path / f"{role}.log" for role in ("turns", "tools")}
    turns, turns_env = run_printed(printed_command("turns", "-A", target, env=env), env)
    tools, tools_env = run_printed(printed_command("tools", "-A", target, "-c", "2", env=env), env)
    with (
        started(turns, logs["turns"], env=turns_env),
        started(tools, logs["tools"], env=tools_env),
    ):
        for log in logs.values():
            place.wait_for_workers(2, log)
        caller = subprocess.run(
            [sys.executable, "-m", "examples.caller", "Where is order 481?"],
            cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert caller.returncode == 0, caller.stderr
        assert "[order_status {'order_number': '481'}]" in caller.stdout
        assert "Order 481 left the warehouse" in caller.stdout
        assert "embedded" not in caller.stderr
        if target == "workers.app":
            for probe in ("live", "ready"):
                done = subprocess.run(
                    [sys.executable, "-m", "workers.health", probe],
                    cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False,
                )  # fmt: skip
                assert (done.returncode, done.stderr) == (0, "")
        doctor = littleghost("doctor", "--runs", "--json", env=env)
        assert doctor.returncode == 0, doctor.stdout


def test_the_demo_can_run_on_a_fleet(place: Place, tmp_path: Path) -> None:
    line = printed_command("all", "-A", "littleghost.demo.support", "-c", "4", env=place.env)
    command, env = run_printed(line, place.env)
    log = tmp_path / "all.log"
    with started(command, log, env=env):
        place.wait_for_workers(1, log)
        done = littleghost("demo", "--fleet", env=place.env)
        run_id = newest_run(place.client)
        again = littleghost("tail", run_id, "--after", "20", env=place.env)
        terminal = Terminal([*CLI, "tail", run_id, "--after", "20"], place.env)
        try:
            assert terminal.end() == 0
        finally:
            terminal.close()
    assert done.returncode == 0, done.stderr
    assert "Order 481" in done.stdout
    assert "embedded" not in done.stderr
    assert "littleghost show" in done.stdout
    # From the middle, and afterwards: everybody is in place, and nobody's time is made up.
    assert "> billing + policies → respond" in again.stdout
    assert "[triage] done" not in again.stdout
    assert " s)" not in again.stdout
    rows = without_styles(terminal.output).splitlines()
    assert "✓ support  graph" in rows
    assert [row for row in rows if row.startswith("└─ ✓ respond  106 in, 40 out · after billing")]


def test_health_probes_say_what_is_wrong(place: Place, tmp_path: Path) -> None:
    env = {**place.env, "WORKER_HEARTBEAT_FILE": str(tmp_path / "none")}
    for probe, sentence in (("live", "no heartbeat"), ("ready", "no live worker of host")):
        done = subprocess.run(
            [sys.executable, "-m", "workers.health", probe],
            cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert sentence in done.stderr


def test_a_role_of_the_team_becomes_its_worker(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "role.log"
    command = [sys.executable, "-m", "workers.roles", "all"]
    env = {**place.env, "WORKER_HEARTBEAT_FILE": str(tmp_path / "heartbeat")}
    with started(command, log, env=env) as process:
        place.wait_for_workers(1, log)
        assert f"-n all-{process.pid}@%h" in log.read_text()
        assert (tmp_path / "heartbeat").exists()
