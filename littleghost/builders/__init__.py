"""Assemblies declared at run time, by chained calls instead of classes.

`AgentBuilder`, `WorkflowBuilder`, `SwarmBuilder` and `GraphBuilder` make the same declarations as
the classes. A call takes a snapshot, which the run keeps as data; see `definition`.
"""

from __future__ import annotations

from littleghost.builders.agent import AgentBuilder
from littleghost.builders.definition import learn
from littleghost.builders.graph import GraphBuilder
from littleghost.builders.swarm import SwarmBuilder
from littleghost.builders.workflow import WorkflowBuilder

__all__ = ["AgentBuilder", "GraphBuilder", "SwarmBuilder", "WorkflowBuilder", "learn"]
