"""Durations on the command line: 90s, 10m, 1h30m, 2d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Duration(click.ParamType[timedelta]):
    """A duration such as 90s, 10m, 1h30m or 2d."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read a duration."""
        if isinstance(value, timedelta):
            return value
        text = str(value).strip().lower()
        parts = _DURATION.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fail(f"{value!r} is no duration; write 90s, 10m, 1h30m or 2d", param, ctx)
        try:
            total = sum(
                (timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta()
            )
        except OverflowError:
            self.fail(f"{value!r} is too long", param, ctx)
        if not total:
            self.fail("a deadline is more than nothing", param, ctx)
        return total
