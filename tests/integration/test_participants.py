"""Who took part in a run, as its handle tells."""

from __future__ import annotations

from typing import Any

import pytest

from littleghost import Workflow
from littleghost.errors import DefinitionError
from littleghost.providers.scripted import Call, Reply
from littleghost.usage import Usage, sums_of
from tests.integration.scripted import make_agent

pytestmark = [pytest.mark.redis, pytest.mark.worker, pytest.mark.usefixtures("embedded")]


def test_each_participant_has_its_tokens_and_those_below_it() -> None:
    said = Usage(input=3, output=2)
    finder = make_agent([Reply(text="found", usage=said)])
    asker = make_agent(
        [
            Reply(tool_calls=[Call("finder", {"input": "look"})], usage=said),
            Reply(text="asked", usage=said),
        ],
        tools=(finder.as_tool(name="finder"),),
    )

    def perform(self: Workflow) -> Any:
        return self.invoke(asker, name="ask")

    flow = type("AskWorkflow", (Workflow,), {"perform": perform, "__module__": __name__})
    run = flow.ask("Go")
    told = {item.id: item for item in run.participants}
    assert [item.kind for item in told.values()] == ["workflow", "agent", "agent"]
    root, child, below = told.values()
    assert (root.id, root.parent_id, root.status) == ("0", None, "completed")
    assert (child.name, child.parent_id, child.usage.total) == ("ask", "0", 15)
    assert (below.parent_id, below.usage.total, below.status) == (child.id, 5, "completed")
    assert root.usage == run.usage
    assert root.to_json()["usage"] == run.usage.to_json()
    assert all(item.finished_at is not None and item.duration_s >= 0 for item in told.values())


def test_sums_go_up_to_the_root() -> None:
    used = {"0.1.2": Usage(input=1), "0.1": Usage(input=2, output=1), "0.11": Usage(output=4)}
    assert sums_of(used) == {
        "0.1.2": Usage(input=1),
        "0.1": Usage(input=3, output=1),
        "0.11": Usage(output=4),
        "0": Usage(input=3, output=5),
    }


def test_all_that_is_wrong_with_a_class_is_said_at_once() -> None:
    body: dict[str, Any] = {
        "__module__": __name__, "assembly_id": "No Good", "description": 7, "limits": None,
    }  # fmt: skip
    wrong = type("WrongWorkflow", (Workflow,), body)
    with pytest.raises(DefinitionError) as refused:
        wrong.ask("Go")
    for field in ("assembly_id", "description", "limits", "perform"):
        assert field in str(refused.value)
