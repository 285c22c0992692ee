"""A support graph to try; without a configured model, scripted stand-ins play its model."""

from littleghost.demo.model import STAND_IN, model_or_stand_in

__all__ = ["STAND_IN", "model_or_stand_in"]
