"""What a composite run has said when its deadline comes: the words of whoever was to answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from littleghost import Edge, Graph, Member, Swarm, Tool, Workflow
from littleghost.handoff import HANDOFF
from littleghost.providers.scripted import Call, Reply
from tests.integration.scripted import Gate, calls, make_agent, terminals

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]
_numbers = itertools.count()
GATES: list[Gate] = []


class Hold(Tool):
    """Wait for the test."""

    name = "hold"

    def call(self, input: dict[str, Any]) -> str:
        GATES[-1].enter()
        return "late"


@pytest.fixture(autouse=True)
def gate() -> Iterator[Gate]:
    GATES.append(Gate())
    yield GATES[-1]
    GATES[-1].open()


def make(base: type[Any], **body: Any) -> type[Any]:
    name = f"Partial{next(_numbers)}{base.__name__}"
    return type(name, (base,), {**body, "__module__": __name__})


def streams(*before: Any, tools: Any = ()) -> type[Any]:
    """Make an agent that is still speaking when the deadline comes."""
    return make_agent(
        [*before, Reply(text="word " * 2000, chunk_chars=5, chunk_delay_s=0.02)], *tools
    )


def holds(text: str = "") -> type[Any]:
    """Make an agent that waits for a tool when the deadline comes."""
    return make_agent([calls("hold", text=text)], Hold)


def swarm(last: type[Any]) -> type[Any]:
    handing = Reply(
        text="Not mine.", tool_calls=[Call(HANDOFF, {"agent_id": "last", "message": "Go on."})]
    )
    members = [Member(make_agent([handing]), name="first"), Member(last, name="last")]
    return make(Swarm, members=members, start="first")


def graph(first: type[Any], last: type[Any]) -> type[Any]:
    nodes = {"first": first, "last": last}
    return make(Graph, nodes=nodes, start="first", finish="last", edges=[Edge("first", "last")])


def flow(perform: Callable[[Any], Any]) -> type[Any]:
    return make(Workflow, perform=perform)


def reads(child: type[Any]) -> type[Any]:
    return flow(lambda self: self.invoke(child).output)


def returns(child: type[Any], first: type[Any] | None = None) -> type[Any]:
    def perform(self: Workflow) -> Any:
        if first is not None:
            assert self.invoke(first).output
        return self.invoke(child)

    return flow(perform)


def says() -> type[Any]:
    return make_agent(["A draft."])


def forks() -> type[Any]:
    """Make a graph of which two nodes speak at once, neither of them the last."""
    nodes = {"first": says(), "a": streams(), "b": holds("Branch."), "last": says()}
    edges = [Edge("first", ["a", "b"]), Edge(["a", "b"], "last")]
    return make(Graph, nodes=nodes, start="first", finish="last", edges=edges)


def delegates(to: type[Any]) -> type[Any]:
    return make_agent([calls(("help", {"input": "x"}), text="I ask.")], to.as_tool(name="help"))


@pytest.mark.parametrize(
    ("make_it", "said"),
    [
        (lambda: swarm(streams()), "word word"),
        (lambda: swarm(streams(calls("hold"), tools=[Hold])), ""),
        (lambda: swarm(holds("I look.")), "I look."),
        (lambda: graph(says(), streams()), "word word"),
        (lambda: graph(streams(), says()), ""),
        (lambda: graph(holds("I look."), says()), ""),
        (forks, ""),
        (lambda: returns(streams(), says()), "word word"),
        (lambda: returns(streams(), streams()), ""),
        (lambda: reads(streams()), ""),
        (lambda: returns(graph(says(), swarm(streams())), says()), "word word"),
        (lambda: reads(graph(says(), swarm(streams()))), ""),
        (lambda: graph(swarm(streams()), says()), ""),
        (lambda: swarm(delegates(streams())), "I ask."),
        (lambda: delegates(holds("Child.")), "I ask."),
        (lambda: delegates(swarm(streams())), "I ask."),
    ],
)
def test_at_the_deadline_only_who_was_to_answer_counts(
    make_it: Callable[[], type[Any]], said: str
) -> None:
    run = make_it().ask("Go", deadline=timedelta(seconds=1))
    assert (run.outcome, terminals(run)) == ("partial", ["run_partial"]), run.error
    assert run.response.startswith(said)
    assert bool(run.response) == bool(said)


def test_who_was_to_answer_before_is_not_taken_for_the_one_that_is_now() -> None:
    """What a failed attempt at the last step had said is withdrawn with it."""

    def script(request: Any) -> Reply:
        if request.messages[-1].role == "user":
            return calls("look", text="Draft.")
        raise ValueError("broken")

    class Look(Tool):
        """Look."""

        name = "look"

        def call(self, input: dict[str, Any]) -> str:
            return "seen"

    moody = make_agent(script, Look)
    again = flow(lambda self: self.invoke(moody, retries=1, retry_on=ValueError, retry_delay_s=60))
    ended = again.ask("Go", deadline=timedelta(seconds=0.5))
    assert (ended.outcome, ended.response) == ("partial", "")


def test_a_completed_run_answers_with_its_result() -> None:
    inner = graph(says(), says())
    run = flow(lambda self: {"said": self.invoke(inner).output}).ask("Go")
    assert run.response == '{"said":"A draft."}'
    assert swarm(make_agent(["Done."])).ask("Go").response == "Done."
    assert delegates_and_ends().ask("Go").response == ""


def delegates_and_ends() -> type[Any]:
    asks = calls(("help", {"input": "x"}), text="I ask.")
    return make_agent([asks, Reply(text="")], says().as_tool(name="help"))
