"""The files of the repository, as git tracks or would track them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked() -> list[Path]:
    """Give every file that is, or would be, part of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        # An unpacked archive has no git: take what is there.
        return [path for path in ROOT.rglob("*") if path.is_file() and ".git" not in path.parts]
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def sources(*folders: str) -> list[Path]:
    """Give the Python files of some folders."""
    wanted = {ROOT / folder for folder in folders}
    return sorted(path for path in tracked() if path.suffix == ".py" and wanted & set(path.parents))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Give every function of a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def named(path: Path) -> str:
    """Give a file's name within the repository."""
    return path.relative_to(ROOT).as_posix()
