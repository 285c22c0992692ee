"""What the command line prints: safe text, durations, masked secrets."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from littleghost.cli.escape import one_line, visible
from littleghost.cli.masked import masked_settings, masked_url
from littleghost.cli.output import duration
from littleghost.settings import Settings


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb", "a\\rb"),
        ("\u202eabc", "\\u202eabc"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("naïve — 日本 👩\u200d🚀", "naïve — 日本 👩\u200d🚀"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(alphabet=st.characters(codec=None)))
def test_nothing_unsafe_is_left(text: str) -> None:
    left = {unicodedata.category(char) for char in visible(text) if char not in "\n\t"}
    assert not left & {"Cc", "Cs"}
    assert not set(visible(text)) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(st.text())
def test_one_line_is_one_short_line(text: str) -> None:
    shown = one_line(text, 20)
    assert len(shown) <= 20
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.421, "0.42 s"),
        (12.34, "12.3 s"),
        (250, "4 min 10 s"),
        (10_930, "3 h 2 min"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://:secret@h/0", "redis://:***@h/0"),
        ("rediss://user:s:e:c@h/0", "rediss://user:***@h/0"),
        ("sentinel://:secret@a;sentinel://:secret@b", "sentinel://:***@a;sentinel://:***@b"),
        ("redis://h/0?password=secret&db=1", "redis://h/0?password=***&db=1"),
    ],
)
def test_passwords_are_hidden(url: str, shown: str) -> None:
    assert masked_url(url) == shown
    assert masked_settings(Settings(redis_url=url))["redis_url"] == shown
