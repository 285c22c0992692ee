"""Reads JSON that was given as an argument, or in its place on stdin."""

from __future__ import annotations

import json
import sys
from typing import Any

import click


def read_json(text: str, what: str) -> Any:
    """Read JSON.

    Args:
        text: The JSON itself, or - for stdin.
        what: The argument, for the error message.
    """
    given = sys.stdin.read() if text == "-" else text
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{what} {given[:80]!r} is no JSON: {error}") from error
