"""The public names: exactly these, each importable, each documented, cheap to import."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import littleghost

PUBLIC = {
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
}


def test_at_least_these_names_are_public():
    # Removing a name breaks applications; adding one is a feature that its own tests cover.
    assert set(littleghost.__all__) >= PUBLIC
    assert littleghost.__all__ == sorted(littleghost.__all__)


@pytest.mark.parametrize("name", sorted(set(littleghost.__all__) - {"__version__"}))
def test_each_is_there_and_documented(name):
    value = getattr(littleghost, name)
    assert inspect.getdoc(value)
    assert name in dir(littleghost)


@pytest.mark.parametrize("module", ["celery", "redis", "httpx", "pydantic", "click"])
def test_importing_the_package_imports_nothing_heavy(module):
    code = f"import sys, littleghost; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
