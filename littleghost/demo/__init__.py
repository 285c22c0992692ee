"""A support agent to try; without a configured model, a scripted stand-in plays its model."""

from __future__ import annotations

from typing import Any

from littleghost.providers.stand_in import STAND_IN, connect_stand_in
from littleghost.wiring import models

__all__ = ["STAND_IN", "model_or_stand_in"]

connect_stand_in(models())


def model_or_stand_in(agent: object = None) -> Any:
    """Choose the environment's default model, or the stand-in when there is none.

    Usable as an agent's `model`.
    """
    del agent
    return models().default or STAND_IN
