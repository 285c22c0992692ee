"""A support agent to try, and a scripted stand-in for a model that works without any account."""

from littleghost.demo.stand_in import STAND_IN, connect_stand_in, model_or_stand_in

__all__ = ["STAND_IN", "connect_stand_in", "model_or_stand_in"]

connect_stand_in()
