"""The stand-ins of the demo's graph read nothing but the request."""

from __future__ import annotations

import pytest

from littleghost.demo.model import play
from littleghost.messages import user
from littleghost.providers.base import ModelRequest

FROM = "Original Task:\nhm\n\nFrom billing:\n{}\n\nFrom policies:\n{}"


def _said(model: str, text: str) -> str:
    return play(ModelRequest(model=model, messages=(user(text),), tools=())).text


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("Where is order 481?", "billing"),
        ("Can I have my MONEY back?", "billing"),
        ("How fast is shipping?", "general"),
    ],
)
def test_triage_says_one_word(question: str, word: str) -> None:
    assert _said("triage", question) == word


def test_the_answer_holds_what_the_colleagues_found() -> None:
    text = FROM.format("It left.\n\nIt is big.", "30 days.")
    assert _said("respond", text) == "Thank you for asking! It left.\n\nIt is big. 30 days."


def test_a_colleague_with_nothing_to_look_up_is_left_out() -> None:
    text = FROM.format("It left.", "I am a scripted stand-in for a model and found nothing.")
    assert _said("respond", text) == "Thank you for asking! It left."
