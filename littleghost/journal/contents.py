"""Reads what a run has in hashes that grow with it: participants, and what is still to be done."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from littleghost.journal.connection import Client
from littleghost.journal.headers import read_header
from littleghost.journal.scripts import guarded
from littleghost.usage import Usage

# About how many fields are read at once, so that no command takes Redis long.
_PAGE = 2000


def tree_key(key: str) -> str:
    """Give the key of what is kept of a run's participants."""
    return f"{key}:p"


def open_key(key: str) -> str:
    """Give the key of what a run still has to do."""
    return f"{key}:t"


def left_key(key: str) -> str:
    """Give the key of what a run that did not end well had open."""
    return f"{key}:f"


def read_hash(client: Client, name: str, match: str | None = None) -> dict[str, str]:
    """Read a hash piece by piece; one that changes meanwhile may be told partly as it was."""
    found: dict[str, str] = {}
    cursor = 0
    while True:
        cursor, rows = cast(
            "tuple[int, dict[str, str]]",
            guarded(lambda at=cursor: client.hscan(name, at, match=match, count=_PAGE)),
        )
        found.update(rows)
        if cursor == 0:
            return found


def marked(fields: Mapping[str, str], mark: str) -> dict[str, str]:
    """Give the fields whose names begin with a mark, by the rest of it."""
    return {name[len(mark) :]: text for name, text in fields.items() if name.startswith(mark)}


class Contents:
    """The participants and tasks of one run, each read when it is first asked for."""

    def __init__(self, client: Client, key: str, counts: Sequence[str | None], leased: int) -> None:
        """Look at a run.

        Args:
            counts: The tokens of the root and of all below it, JSON.
            leased: How many of its tasks workers have.
        """
        self._client, self._key = client, key
        self.usage = sum((_usage(text) for text in counts if text), Usage())
        self.leased = leased

    @cached_property
    def _tree(self) -> dict[str, str]:
        return read_hash(self._client, tree_key(self._key))

    @cached_property
    def _open(self) -> dict[str, str]:
        return read_hash(self._client, open_key(self._key))

    @cached_property
    def participants(self) -> dict[str, dict[str, Any]]:
        """Headers by participant."""
        found = marked(self._tree, "p:")
        return {name: read_header(self._key, name, text) for name, text in found.items()}

    @cached_property
    def ends(self) -> dict[str, tuple[int, int, str]]:
        """Start and end in ms and status, by participant below the root that has ended."""
        found: dict[str, tuple[int, int, str]] = {}
        for name, text in marked(self._tree, "z:").items():
            begun, ended, status = text.split(",")
            found[name] = (int(begun), int(ended), status)
        return found

    @cached_property
    def usage_of(self) -> dict[str, Usage]:
        """Tokens by participant."""
        return {name: _usage(text) for name, text in marked(self._tree, "u:").items()}

    @cached_property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """Headers of tasks that are not done, by id."""
        return {name: json.loads(text) for name, text in marked(self._open, "t:").items()}

    @cached_property
    def payloads(self) -> dict[str, str]:
        """What tool calls among the tasks call, JSON text by id."""
        return marked(self._open, "d:")

    @cached_property
    def at_work(self) -> list[str]:
        """Participants that have not ended."""
        return list(marked(self._open, "x:"))


def _usage(text: str) -> Usage:
    return Usage.from_json(json.loads(text))
