"""The demo's model: the environment's, or scripted stand-ins that need no network.

One stand-in sorts questions, one sums up, and the general one calls tools. They read the words of a
conversation and understand nothing.
"""

from __future__ import annotations

import re
from typing import Any

from littleghost.providers.base import ModelRequest
from littleghost.providers.scripted import Reply, ScriptedProvider
from littleghost.providers.stand_in import STAND_IN, connect_stand_in, reply, spoken
from littleghost.wiring import models

__all__ = ["RESPOND", "STAND_IN", "TRIAGE", "model_or_stand_in"]

TRIAGE = "demo:triage"
RESPOND = "demo:respond"
_BILLING = re.compile(r"order|pa(?:y|id)|refund|invoice|bill|money|\d{2,}", re.IGNORECASE)
_FOUND = re.compile(r"^From \w+:\n(.*?)(?=\n\nFrom |\Z)", re.DOTALL | re.MULTILINE)


def model_or_stand_in(agent: object = None) -> Any:
    """Choose the environment's default model, or the stand-in when there is none.

    Usable as an agent's `model`.
    """
    del agent
    return models().default or STAND_IN


def play(request: ModelRequest) -> Reply:
    """Play the part that the model's id names."""
    if not request.tools and request.model == "triage":
        return spoken("billing" if _BILLING.search(request.messages[-1].text) else "general")
    found = [text.strip() for text in _FOUND.findall(request.messages[-1].text)]
    if request.model == "respond" and found:
        # A colleague with nothing to look up has only said what it is.
        told = [text for text in found if "scripted stand-in" not in text] or found
        return spoken("Thank you for asking! " + " ".join(told))
    return reply(request)


connect_stand_in(models())
models().connect("demo", ScriptedProvider(play))
