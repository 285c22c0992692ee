"""The documentation is true: its programs run, and what it names exists."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import pytest

from littleghost import errors
from littleghost.cli.entry import VERBS
from littleghost.cli.exits import LEGEND
from littleghost.errors import LittleGhostError
from littleghost.journal import keys
from littleghost.settings import PREFIX, Settings
from tests.acceptance.processes import ROOT, environment

DOCS = ROOT / "docs"
PACKAGE = ROOT / "littleghost"
PAGES = sorted(DOCS.glob("*.md"))
_BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what stands behind that, and the output it is followed by."""

    page: str
    number: int
    language: str
    words: tuple[str, ...]
    text: str
    output: str | None

    @property
    def file(self) -> str:
        """The name it is saved by."""
        named = [word for word in self.words if word.endswith(".py")]
        return named[0] if named else f"block_{self.number}.py"


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found = list(_BLOCK.finditer(text))
    made: list[Block] = []
    for number, match in enumerate(found):
        after = found[number + 1] if number + 1 < len(found) else None
        is_output = (
            after is not None
            and after[1] == "text"
            and not text[match.end() : after.start()].strip()
        )
        output = after[3] if after is not None and is_output else None
        words = tuple(match[2].split())
        made.append(Block(page.name, number, match[1], words, match[3], output))
    return made


RUNNABLE = [block for page in PAGES for block in blocks(page) if "runnable" in block.words]


def prose(page: Path) -> str:
    """Give a page without its blocks."""
    return _BLOCK.sub("", page.read_text("utf-8"))


def named(page: Path) -> list[str]:
    """Give what a page names in backticks, in its prose."""
    return sorted(set(re.findall(r"`([^`\n]+)`", prose(page))))


def rows(page: str, heading: str) -> list[list[str]]:
    """Give the cells of the first table under a heading."""
    section = (DOCS / page).read_text("utf-8").partition(f"## {heading}\n")[2]
    section = section.partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
    return cells[2:]


def plain(cell: str) -> str:
    return cell.strip().strip("`")


# Programs.


@pytest.mark.worker
@pytest.mark.parametrize("block", RUNNABLE, ids=lambda block: f"{block.page}-{block.number}")
def test_a_program_runs_and_says_what_the_page_says(block: Block, tmp_path: Path) -> None:
    for other in RUNNABLE:
        if other.page == block.page and other.file != f"block_{other.number}.py":
            (tmp_path / other.file).write_text(other.text)
    env = environment()
    if block.language == "python":
        (tmp_path / block.file).write_text(block.text)
        command = [sys.executable, block.file]
    else:
        assert block.language == "bash"
        command = ["bash", "-euc", block.text]
        env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    if block.output is not None:
        told = [line.rstrip() for line in done.stdout.splitlines()]
        assert told == [line.rstrip() for line in block.output.splitlines()]


def test_each_page_that_teaches_has_programs() -> None:
    pages = {block.page for block in RUNNABLE if block.language == "python"}
    assert pages >= {"quickstart.md", "providers.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_is_python(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_exists(page: Path) -> None:
    text = "\n".join(block.text for block in blocks(page) if block.language in ("sh", "bash"))
    text += "\n".join(f" {name}" for name in named(page))
    used = set(re.findall(r"(?:^|\s)littleghost ([a-z]+)", text))
    assert used <= set(VERBS)


# Names.


@cache
def source() -> str:
    """Give all of the package's text."""
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.lua")]
    return "\n".join(path.read_text("utf-8") for path in files)


@cache
def defined() -> set[str]:
    """Give the functions, methods (`Class.method`) and classes of the package and its scripts."""
    found = set(re.findall(r"local function (\w+)", source()))
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.ClassDef):
                found.add(node.name)
                found |= {
                    f"{node.name}.{item.name}"
                    for item in node.body
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
                }
    return found


@cache
def documented_keys() -> str:
    return keys.__doc__ or ""


def is_there(name: str) -> bool:
    """Say whether a name of the page about a run's way exists."""
    if name.endswith((".py", ".lua", ".toml", ".conf")):
        return any(ROOT.glob(name)) or any(PACKAGE.glob(f"**/{name}"))
    if name.endswith("()"):
        return name[:-2].removeprefix("self.") in defined()
    if ":" in name or name.startswith("lg."):
        words = re.sub(r"^lg:\{\d+\}:", "", name).replace("<worker>", "<id>")
        known = documented_keys().replace("<worker>", "<id>")
        return f"`{words}`" in known or words in known or f"`{name}`" in known or is_word(name)
    return is_word(name)


def is_word(name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source()) is not None


# What the page shows of the example itself, and ids and fields made of them.
_OF_THE_EXAMPLE = re.compile(r"0|0-[tcb][\d.]*|<run>|littleghost/[\w/]*|lg\.(turns|tools)")


def test_what_the_page_about_a_runs_way_names_exists() -> None:
    names = named(DOCS / "how-a-run-travels.md")
    assert len(names) > 80
    missing = [name for name in names if not _OF_THE_EXAMPLE.fullmatch(name) and not is_there(name)]
    assert not missing


def test_the_fields_it_shows_are_the_journals() -> None:
    shown = "".join(
        block.text for block in blocks(DOCS / "how-a-run-travels.md") if block.language == "text"
    )
    fields_shown = set(re.findall(r"^    ([a-z]{2,9})(?:  +\S)", shown, re.MULTILINE))
    assert fields_shown >= {"status", "asm", "inv", "ev", "text", "result", "ended"}
    quoted = {name for name in fields_shown if re.search(rf"['\"]{name}['\"]", source())}
    assert fields_shown == quoted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_scripts_and_functions_exist(page: Path) -> None:
    names = [
        name
        for name in named(page)
        if re.fullmatch(r"[\w/.-]+\.(py|lua|toml|conf|md)", name)
        or re.fullmatch(r"[A-Za-z_.]+\(\)", name)
    ]
    # What a reader's own project holds, and Python's.
    own = {"shop.py", "agents.py", "tasks.py", "proj/celery.py", "shop/agents.py"}
    public = {"ask()", "enqueue()"}
    missing = [name for name in names if name not in own | public and not is_there(name)]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        place = DOCS / file if file else page
        assert place.exists(), target
        headings = re.findall(r"^#+ (.*)$", prose(place), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}
        assert not anchor or anchor in slugs, target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_environment_variables_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for variable in set(re.findall(rf"\b{PREFIX}[A-Z][A-Z_]*[A-Z]\b", text)):
        setting = variable.removeprefix(PREFIX).lower()
        assert setting in {item.name for item in fields(Settings)} or is_word(variable), variable


# Promises.


def test_every_promise_is_there_with_its_tests() -> None:
    text = (DOCS / "delivery.md").read_text("utf-8")
    assert re.findall(r"^## P(\d+) ", text, re.MULTILINE) == [str(n) for n in range(1, 13)]
    references = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", text)
    assert len(references) > 20
    for file, name in references:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        found |= {
            f"{node.name}::{item.name}"
            for node in tree.body
            if isinstance(node, ast.ClassDef)
            for item in node.body
            if isinstance(item, ast.FunctionDef)
        }
        assert name in found, f"{file}::{name}"


def test_numbers_that_follow_from_settings_are_the_defaults() -> None:
    """What pages say about times names the setting and its default: `lease_s` 3."""
    settings = Settings()
    for page in PAGES:
        for name, value in re.findall(r"`([a-z_]+)` \(?(\d+(?:\.\d+)?)\b", prose(page)):
            if name in {item.name for item in fields(Settings)}:
                assert float(value) == getattr(settings, name), f"{page.name}: {name}"


# Tables.


def test_the_settings_are_all_there_with_their_defaults() -> None:
    told = {
        plain(row[0]): ast.literal_eval(plain(row[1])) for row in rows("operations.md", "Settings")
    }
    settings = Settings()
    assert told == {item.name: getattr(settings, item.name) for item in fields(Settings)}


def error_tree() -> dict[str, str]:
    found: dict[str, str] = {}
    waiting: list[type[LittleGhostError]] = [LittleGhostError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__ == errors.__name__:
            found[kind.__name__] = kind.code
    return found


def test_the_error_codes_are_the_error_tree() -> None:
    table = rows("operations.md", "Error codes")
    assert {plain(row[1]): plain(row[0]) for row in table} == error_tree()
    assert len(table) == len(error_tree())


def test_errors_that_are_not_raised_are_marked() -> None:
    table = {plain(row[1]): row[2].startswith("·") for row in rows("operations.md", "Error codes")}
    for name, is_marked in table.items():
        raised = re.search(rf"\b{name}\(", re.sub(r"class \w+\(\w+\)", "", source()))
        if is_marked:
            assert raised is None, f"{name} is raised"


def test_each_log_line_exists() -> None:
    lines = [plain(row[0]) for row in rows("operations.md", "Log lines")]
    assert len(lines) > 15
    for line in lines:
        pieces = [piece.strip(" :;") for piece in line.split("…")]
        assert all(piece in source() for piece in pieces if piece), line


def test_the_exit_codes_are_the_commands() -> None:
    text = (DOCS / "operations.md").read_text("utf-8").partition("Exit codes of the command:")[2]
    told = set(re.findall(r"\b(\d+) [a-z]", text.partition("\n\n")[0]))
    assert told <= set(re.findall(r"(\d+) ", LEGEND))


def test_the_glossary_has_each_word_once() -> None:
    words = re.findall(r"^\| ([^|]+) \|", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    words = [word for word in words if word not in ("word", "---")]
    assert len(words) > 50
    assert len(words) == len(set(words))
