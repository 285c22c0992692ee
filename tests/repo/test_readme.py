"""The README's programs run, offline and with nothing configured; its commands and links exist."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from littleghost.cli.entry import VERBS
from tests.acceptance.processes import environment
from tests.repo.tree import ROOT

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.worker
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_programs_run(number, tmp_path):
    program = tmp_path / f"readme_{number}.py"
    program.write_text(BLOCKS[number])
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "481" in done.stdout


def test_there_are_programs():
    assert len(BLOCKS) >= 2


def test_its_verbs_exist():
    used = set(re.findall(r"^\s{4}(?:.*\s)?littleghost ([a-z]+)", README, re.MULTILINE))
    assert used
    assert used <= set(VERBS)


def test_its_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"^\s{4}make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
