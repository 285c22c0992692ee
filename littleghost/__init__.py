"""Agents that run as durable jobs inside real applications.

Most names are imported when they are first used, so that `import littleghost` needs neither Celery
nor Redis. `tool` is imported at once: a module has the same name, and the decorator must win.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from littleghost.functions import tool
from littleghost.version import __version__

if TYPE_CHECKING:
    from littleghost.agent import Agent
    from littleghost.builders import AgentBuilder, GraphBuilder, SwarmBuilder, WorkflowBuilder
    from littleghost.errors import LittleGhostError, ToolError
    from littleghost.events import StreamEvent
    from littleghost.failure import Failure
    from littleghost.graph import Edge, ErrorEdge, Graph, Node
    from littleghost.invocation import Invocation
    from littleghost.limits import Limits
    from littleghost.messages import Document, Image, Message, Text
    from littleghost.result import RunResult
    from littleghost.run import Run
    from littleghost.settings import Settings
    from littleghost.subagents import Subagent, SubagentLimits
    from littleghost.swarm import Member, Swarm
    from littleghost.tool import Tool
    from littleghost.usage import Usage
    from littleghost.wiring import configure, models
    from littleghost.workflow import Workflow

_HOMES = {
    "Agent": "agent",
    "AgentBuilder": "builders",
    "Document": "messages",
    "Edge": "graph",
    "ErrorEdge": "graph",
    "Failure": "failure",
    "Graph": "graph",
    "GraphBuilder": "builders",
    "Image": "messages",
    "Invocation": "invocation",
    "Limits": "limits",
    "LittleGhostError": "errors",
    "Member": "swarm",
    "Message": "messages",
    "Node": "graph",
    "Run": "run",
    "RunResult": "result",
    "Settings": "settings",
    "StreamEvent": "events",
    "Subagent": "subagents",
    "SubagentLimits": "subagents",
    "Swarm": "swarm",
    "SwarmBuilder": "builders",
    "Text": "messages",
    "Tool": "tool",
    "ToolError": "errors",
    "Usage": "usage",
    "Workflow": "workflow",
    "WorkflowBuilder": "builders",
    "configure": "wiring",
    "models": "wiring",
}

__all__ = [
    "Agent",
    "AgentBuilder",
    "Document",
    "Edge",
    "ErrorEdge",
    "Failure",
    "Graph",
    "GraphBuilder",
    "Image",
    "Invocation",
    "Limits",
    "LittleGhostError",
    "Member",
    "Message",
    "Node",
    "Run",
    "RunResult",
    "Settings",
    "StreamEvent",
    "Subagent",
    "SubagentLimits",
    "Swarm",
    "SwarmBuilder",
    "Text",
    "Tool",
    "ToolError",
    "Usage",
    "Workflow",
    "WorkflowBuilder",
    "__version__",
    "configure",
    "models",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'littleghost' has no attribute {name!r}")
    value = getattr(import_module(f"littleghost.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
