"""The rules of the house: sizes, names, and what the repository must not hold."""

from __future__ import annotations

import re

import pytest

from tests.repo.tree import ROOT, functions, named, sources, tracked

MAX_LINES = 400
# The error tree is one table, and grows by an entry of six lines.
LONGER = {"littleghost/errors.py": 600}
MAX_FUNCTION = 60
BANNED = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "core", "types"}
LIBRARY = sources("littleghost", "workers", "examples")

# Absolute places of one machine, and where one machine gets its packages. Written so that this file
# does not hold what it looks for.
_PLACES = [
    r"/" + "home/[a-z]",
    r"/" + "Users/[A-Z]",
    r"/" + "root/",
    r"/" + "work/",
    r"/opt/" + "(wheels|pypi)",
    r"(?:artifactory|nexus|devpi|jfrog)[\w.-]*\." + "[a-z]",
    r"--(?:extra-)?" + "index-url",
    r"files\.pythonhosted\." + "org",
]
FOREIGN = re.compile("|".join(f"(?:{place})" for place in _PLACES))
TEXTS = {".py", ".md", ".toml", ".yaml", ".yml", ".lua", ".json", ".conf", ".cfg", ".txt", ""}


@pytest.mark.parametrize("path", LIBRARY, ids=named)
def test_files_have_one_duty(path):
    text = path.read_text("utf-8")
    assert text.count("\n") <= LONGER.get(named(path), MAX_LINES)
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in functions(path)
        if node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    ]
    assert not long


def test_no_module_is_a_drawer_for_everything():
    names = {path: path.stem for path in sources("littleghost", "workers", "tests", "examples")}
    assert not [named(path) for path, stem in names.items() if stem in BANNED]


def test_no_machine_is_named():
    found = []
    for path in tracked():
        if path.suffix not in TEXTS or path.stat().st_size > 2_000_000:
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if FOREIGN.search(line):
                found.append(f"{named(path)}:{number}: {line.strip()[:80]}")
    assert not found


def test_no_lock_file_and_no_build_product_is_tracked():
    names = {path.name for path in tracked()}
    assert not names & {"uv.lock", "poetry.lock", "Pipfile.lock", "pip.conf", "dump.rdb"}


def test_every_library_module_says_what_it_is():
    for path in sources("littleghost", "workers"):
        first = path.read_text("utf-8").lstrip()[:3]
        assert first in ('"""', ""), named(path)


def test_the_project_file_names_the_command():
    assert 'littleghost = "littleghost.cli:main"' in (ROOT / "pyproject.toml").read_text()
