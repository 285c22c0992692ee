"""Keeps what Gemini signs its parts with, and the ids it gives its calls, within a message.

They stand in a reasoning block of their own right before the block they belong to. Reasoning of
earlier runs is not sent again, and with it go their signatures, as Gemini wants it.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from littleghost.messages import Reasoning
from littleghost.providers.wire_text import clean_text

# What Google tells clients to send for a call that its model did not sign.
SKIP_CHECK = "skip_thought_signature_validator"
_VERSION = re.compile(r"gemini-(\d+)")


@dataclass(frozen=True, slots=True)
class Signed:
    """What belongs to one part of an answer.

    Attributes:
        signs: "next" when it belongs to the block after it, "thought" when it is a thought
            itself, "text" when it is a part with empty text.
        signature: Gemini's signature, "" when there is none.
        id: Gemini's id of a call, "" when it gave none.
    """

    signs: str
    signature: str = ""
    id: str = ""

    @property
    def is_for_next(self) -> bool:
        """Whether it belongs to the block after it."""
        return self.signs == "next"

    @property
    def is_thought(self) -> bool:
        """Whether it is a thought itself."""
        return self.signs == "thought"

    def block(self, origin: str, text: str = "") -> Reasoning:
        """Make the reasoning block that keeps it."""
        details = {"origin": origin, "signs": self.signs}
        if self.signature:
            details["signature"] = self.signature
        if self.id:
            details["id"] = self.id
        return Reasoning(text, details=details)


def signed_of(block: Reasoning, origin: str) -> Signed | None:
    """Read what a reasoning block keeps, if it came from `origin`; None otherwise."""
    if not isinstance(block.details, Mapping):
        return None
    details = cast("Mapping[str, Any]", block.details)
    signs, signature, id_ = (details.get(name) for name in ("signs", "signature", "id"))
    if details.get("origin") != origin or signs not in ("next", "thought", "text"):
        return None
    return Signed(
        signs,
        clean_text(signature) if isinstance(signature, str) else "",
        clean_text(id_) if isinstance(id_, str) else "",
    )


def needs_signatures(model: str) -> bool:
    """Say whether a model refuses calls without a signature: those from Gemini 3 on do."""
    found = _VERSION.search(model)
    return found is not None and int(found[1][:4]) >= 3


def signature_origin(service: str, model: str) -> str:
    """Name the model that signatures belong to: only that one gets them back."""
    return f"{service}:{model}"
