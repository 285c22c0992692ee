"""Models: who answers, and how they are asked."""

from __future__ import annotations

from littleghost.providers.adapters import register_adapter
from littleghost.providers.base import (
    CallControl,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    Provider,
    ToolSpec,
)
from littleghost.providers.registry import Models, ResolvedModel
from littleghost.providers.scripted import Call, Reply, ScriptedProvider

__all__ = [
    "Call",
    "CallControl",
    "ModelEvent",
    "ModelRequest",
    "ModelResponse",
    "Models",
    "Provider",
    "Reply",
    "ResolvedModel",
    "ScriptedProvider",
    "ToolSpec",
    "register_adapter",
]
