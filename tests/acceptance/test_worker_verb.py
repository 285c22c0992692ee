"""`littleghost worker`: the exact command, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import SHOP, Place, printed_command
from tests.acceptance.processes import littleghost


def test_the_command_of_each_role(place: Place) -> None:
    turns = " ".join(printed_command("turns", "-A", SHOP, env=place.env))
    assert turns.startswith(f"LITTLEGHOST_IMPORTS={SHOP} ")
    assert "-m celery -A littleghost.celery.standalone worker" in turns
    assert "-Q lg.turns,lg.turns.batch -P threads -c 100 --prefetch-multiplier 1" in turns
    assert "--without-gossip --without-mingle --without-heartbeat -n turns-" in turns
    tools = " ".join(printed_command("tools", "-A", SHOP, "-c", "3", env=place.env))
    assert "-Q lg.tools,lg.tools.batch -P prefork -c 3" in tools
    every = " ".join(printed_command("all", "--lane", "batch", "-A", SHOP, env=place.env))
    assert "-Q lg.turns.batch,lg.tools.batch -P threads" in every
    interactive = " ".join(printed_command("turns", "--lane", "", "-A", SHOP, env=place.env))
    assert "-Q lg.turns -P" in interactive


def test_a_celery_app_is_used_as_it_is(place: Place, tmp_path: Path) -> None:
    (tmp_path / "proj.py").write_text(
        "from celery import Celery\n"
        "ours = Celery('proj')\n"
        "ours.conf.imports = ('littleghost.celery.tasks',)\n"
        "other = Celery('other')\n"
    )
    for target in ("workers.app", "workers.app:app"):
        assert f"-A {target} worker" in " ".join(
            printed_command("all", "-A", target, env=place.env)
        )
    done = littleghost("worker", "all", "-A", "proj:ours", "--print", env=place.env, cwd=tmp_path)
    assert "-A proj:ours worker" in done.stdout
    refused = littleghost(
        "worker", "all", "-A", "proj:other", "--print", env=place.env, cwd=tmp_path
    )
    assert refused.returncode == 2
    assert "littleghost.celery.tasks" in refused.stderr


def test_further_options_go_to_celery(place: Place) -> None:
    line = printed_command("tools", "-A", SHOP, env=place.env)
    assert "--max-tasks-per-child" not in line
    done = littleghost(
        "worker", "tools", "-A", SHOP, "--print", "--", "--max-tasks-per-child", "9", env=place.env
    )
    assert done.stdout.strip().endswith("--max-tasks-per-child 9")


def test_a_module_that_is_not_there(place: Place) -> None:
    done = littleghost("worker", "all", "-A", "no.such.module", env=place.env)
    assert done.returncode == 2
    assert "no.such.module" in done.stderr


@pytest.mark.parametrize("module", ["celery", "redis", "rich", "httpx", "pydantic"])
def test_help_imports_nothing_heavy(module: str) -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom littleghost.cli.entry import run_command\n"
        f"run_command(['--help'])\nsys.exit({module!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
