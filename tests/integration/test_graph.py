"""Graphs on the embedded runtime: routes, forks, joins, errors, limits and what nodes see."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from littleghost import Agent, Edge, ErrorEdge, Graph, Message, Node, Run, Workflow, tool
from littleghost.errors import (
    AssemblyStepTimeoutError,
    CleanupError,
    DefinitionError,
    InvalidRequestError,
    OverloadedError,
    ProviderError,
)
from littleghost.messages import Image, Text
from littleghost.providers.scripted import Reply
from tests.integration.scripted import Gate, calls, event_data, kinds, make_agent, terminals

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]

Order = list[str]
_numbers = itertools.count()


def says(text: str, order: Order | None = None, **attributes: Any) -> type[Any]:
    """Make an agent that always says the same, and notes that it was asked."""

    def script(request: Any) -> Reply:
        if order is not None:
            order.append(text)
        return Reply(text=text)

    return make_agent(script, **attributes)


def breaks(error: Exception, order: Order | None = None) -> type[Any]:
    def script(request: Any) -> Reply:
        if order is not None:
            order.append(type(error).__name__)
        raise error

    return make_agent(script)


def make_graph(nodes: dict[str, Any], edges: list[Any], **attributes: Any) -> type[Any]:
    names = list(nodes)
    body = {"nodes": nodes, "edges": edges, "start": names[0], "finish": names[-1], **attributes}
    return type(f"Made{next(_numbers)}Graph", (Graph,), {**body, "__module__": __name__})


def asked(agent: type[Any], index: int = -1) -> str:
    """Give the text a node was asked with."""
    questions = [item for item in agent.brain.requests[index].messages if item.role == "user"]
    return questions[-1].text


def composite(run: Run) -> list[str]:
    return [kind for kind in kinds(run) if kind.startswith("assembly_")]


def code_of(run: Run) -> tuple[str, str]:
    assert run.is_failed
    assert run.error is not None
    return run.error.type, run.error.detail


def support(triage: type[Any], order: Order) -> type[Any]:
    return make_graph(
        {
            "triage": triage,
            "billing": says("billed", order),
            "general": says("helped", order),
            "respond": says("Dear customer.", order),
        },
        [
            Edge(
                "triage", "billing", when=lambda state: state.result("triage").output == "billing"
            ),
            Edge("triage", "general"),
            Edge("billing", "respond"),
            Edge("general", "respond"),
        ],
    )


@pytest.mark.parametrize(("said", "way"), [("billing", "billed"), ("else", "helped")])
def test_the_condition_chooses_the_way_and_the_other_node_is_skipped(said: str, way: str):
    order: Order = []
    graph = support(says(said, order), order)
    run = graph.ask("Help me.")
    assert run.is_completed, run.error
    assert run.response == "Dear customer."
    assert order == [said, way, "Dear customer."]
    last = asked(graph.nodes["respond"])
    node = "billing" if way == "billed" else "general"
    assert last == (
        f"Original Task:\nHelp me.\n\nInputs from previous nodes:\n\nFrom {node}:\n{way}"
    )
    assert composite(run) == [
        "assembly_step_start", "assembly_step_stop", "assembly_transition",
        "assembly_step_start", "assembly_step_stop", "assembly_transition",
        "assembly_step_start", "assembly_step_stop",
    ]  # fmt: skip
    assert [(data["from"], data["to"], data["step"]) for data in
            event_data(run, "assembly_transition")] == [
        ("triage", node, 1), (node, "respond", 2)]  # fmt: skip
    assert run.result is not None
    assert run.result.message.text == "Dear customer."
    assert terminals(run) == ["run_stop"]


def test_skipped_branch_of_a_diamond():
    def goes(state: Any, way: str) -> bool:
        return state.result("start").output in (way, "both")

    def diamond(route: str, order: Order) -> Any:
        names = {name: says(name, order) for name in ("A", "B", "join", "after")}
        return make_graph(
            {"start": says(route), **names},
            [
                Edge("start", "A", when=lambda state: goes(state, "a")),
                Edge("start", "B", when=lambda state: goes(state, "b")),
                Edge("A", "join"), Edge("B", "join"), Edge("join", "after"),
            ],
        )  # fmt: skip

    for route, way in (("a", ["A", "join", "after"]), ("b", ["B", "join", "after"])):
        order: Order = []
        assert diamond(route, order).ask("go").is_completed
        assert order == way
    for route, said in (("both", "2 edges hold at once"), ("none", "'start' no condition holds")):
        kind, detail = code_of(diamond(route, []).ask("go"))
        assert kind == "AssemblyRoutingError"
        assert said in detail


def test_uneven_branches_run_the_join_once_with_all_outputs_in_declared_order():
    order: Order = []
    names = {name: says(name, order) for name in ("s", "a1", "b1", "b2", "b3", "j")}
    edges = [
        Edge("s", "a1"), Edge("s", "b1"), Edge("b1", "b2"), Edge("b2", "b3"),
        Edge("a1", "j"), Edge("b3", "j"),
    ]  # fmt: skip
    graph = make_graph(names, edges)
    run = graph.ask("go")
    assert run.response == "j"
    assert sorted(order) == sorted(names)
    assert order[-1] == "j"
    assert asked(names["j"]) == (
        "Original Task:\ngo\n\nInputs from previous nodes:\n\nFrom a1:\na1\n\nFrom b3:\nb3"
    )
    assert "From s:\ns" in asked(names["b1"])
    assert "a1" not in asked(names["b2"])
    [fork] = event_data(run, "assembly_fork")
    [join] = event_data(run, "assembly_join")
    assert (fork["from"], fork["branches"]) == ("s", ["a1", "b1"])
    assert (join["from"], join["to"]) == (["a1", "b3"], "j")
    moves = event_data(run, "assembly_transition")
    assert [(data["from"], data["to"], data["branch_id"]) for data in moves] == [
        ("b1", "b2", "b1"), ("b2", "b3", "b1")]  # fmt: skip


def test_a_fork_runs_no_more_branches_at_once_than_allowed():
    gate = Gate()

    def wait(request: Any) -> Reply:
        gate.enter()
        return Reply(text="done")

    branches = {name: make_agent(wait) for name in ("a", "b", "c")}
    graph = make_graph(
        {"s": says("s"), **branches, "j": says("j")},
        [Edge("s", [*branches], max_concurrency=2), Edge(["c", "b", "a"], "j")],
    )
    run = graph.enqueue("go")
    gate.wait_for(2)
    assert [data["participant"] for data in _starts(run)] == ["s", "a", "b"]
    gate.open()
    assert run.wait(20).response == "j"
    assert asked(graph.nodes["j"]).index("From c") < asked(graph.nodes["j"]).index("From a")
    assert len(_starts(run)) == 5


def _starts(run: Run) -> list[Any]:
    """Give the steps started so far, while the run goes on."""
    found: list[Any] = []
    for event in run.events():
        if event.inner_type == "assembly_step_start":
            found.append(event.inner["data"])
        if len(found) == 3 and not run.refresh().record.is_over:
            break
    return found


def test_a_failing_branch_cancels_the_others_and_fails_the_graph_with_its_own_error():
    gate = Gate()

    def wait(request: Any) -> Reply:
        gate.enter()
        return Reply(text="late")

    def fail(request: Any) -> Reply:
        gate.wait_for(1)
        raise InvalidRequestError("refused")

    graph = make_graph(
        {"s": says("s"), "a": make_agent(wait), "b": make_agent(fail), "j": says("j")},
        [Edge("s", ["a", "b"]), Edge(["a", "b"], "j")],
    )
    run = graph.ask("go")
    gate.open()
    assert code_of(run) == ("InvalidRequestError", "refused")
    assert not graph.nodes["j"].brain.requests
    [failed] = event_data(run, "assembly_step_error")
    assert (failed["participant"], failed["terminal"]) == ("b", True)


@pytest.mark.parametrize("in_branch", [False, True])
def test_an_error_edge_takes_a_failure_after_its_retries(in_branch: bool):
    order: Order = []
    seen: list[Any] = []

    def rescue(state: Any) -> str:
        seen.append((state.error.type, state.previous, dict(state.incoming_results)))
        return f"Rescue after {state.error.type}."

    fragile = Node(
        breaks(InvalidRequestError("no"), order), retries=2, retry_on=InvalidRequestError
    )
    helper, last = says("helped", order), says("end", order)
    edges = [
        ErrorEdge("a", "r", on=[ProviderError], input=rescue), ErrorEdge("a", "a", on=ValueError),
    ]  # fmt: skip
    if in_branch:
        graph = make_graph(
            {"s": says("s"), "a": fragile, "r": helper, "e": says("e"), "b": says("b"), "j": last},
            [Edge("s", "a"), Edge("s", "b"), Edge("a", "e"), Edge("r", "e"), Edge("e", "j"),
             Edge("b", "j"), *edges],
        )  # fmt: skip
    else:
        graph = make_graph(
            {"a": fragile, "r": helper, "j": last}, [Edge("a", "j"), Edge("r", "j"), *edges]
        )
    run = graph.ask("go")
    assert run.is_completed, run.error
    assert order == ["InvalidRequestError"] * 3 + ["helped", "end"]
    assert asked(helper) == "Rescue after InvalidRequestError."
    assert seen == [("InvalidRequestError", "a", {})]
    errors = event_data(run, "assembly_step_error")
    assert [(data["attempt"], data["terminal"]) for data in errors] == [
        (1, False), (2, False), (3, True)]  # fmt: skip
    assert len(event_data(run, "assembly_step_retry")) == 2
    by_error = [data for data in event_data(run, "assembly_transition") if data.get("error")]
    assert len(by_error) == (0 if in_branch else 1)


def test_the_usual_input_after_an_error_names_the_class_only():
    helper = says("ok")
    graph = make_graph(
        {"a": breaks(InvalidRequestError("secret")), "r": helper},
        [Edge("a", "r"), ErrorEdge("a", "r", on=InvalidRequestError)],
    )
    assert graph.ask("go").response == "ok"
    assert asked(helper).endswith("From a:\nFailed with InvalidRequestError.")
    other = make_graph(graph.nodes, [Edge("a", "r"), ErrorEdge("a", "r", on=OverloadedError)])
    assert code_of(other.ask("go"))[0] == "InvalidRequestError"


def test_a_cycle_ends_with_its_condition_or_with_max_steps():
    order: Order = []
    drafts = iter(["bad", "bad", "good"])
    writer = make_agent(lambda request: Reply(text=next(drafts)))
    seen: list[Any] = []

    def again(state: Any) -> bool:
        seen.append((state.step, state.current, state.previous, state.result("write").output))
        return state.result("write").output == "bad"

    nodes = {"write": writer, "review": says("review", order), "end": says("end", order)}
    edges = [Edge("write", "review"), Edge("review", "write", when=again), Edge("review", "end")]
    assert make_graph(nodes, edges).ask("go").response == "end"
    assert seen == [
        (2, "review", "write", "bad"),
        (4, "review", "write", "bad"),
        (6, "review", "write", "good"),
    ]  # fmt: skip
    assert "From review:\nreview" in asked(writer)
    nodes["write"] = says("bad", order)
    order.clear()
    kind, detail = code_of(make_graph(nodes, edges, max_steps=5).ask("go"))
    assert (kind, "5 times" in detail) == ("AssemblyLimitError", True)
    assert order == ["bad", "review", "bad", "review", "bad"]


def test_at_a_fork_only_as_many_branches_start_as_steps_remain():
    order: Order = []
    names = {name: says(name, order) for name in ("s", "a", "b", "c", "j")}
    graph = make_graph(names, [Edge("s", ["a", "b", "c"]), Edge(["a", "b", "c"], "j")], max_steps=3)
    run = graph.ask("go")
    assert code_of(run)[0] == "AssemblyLimitError"
    assert sorted(order) == ["a", "b", "s"]
    assert composite(run).count("assembly_step_stop") == 3
    for steps, kind in ((4, "AssemblyLimitError"), (5, "")):
        graph.max_steps, graph._plan, graph._fingerprint = steps, None, None
        run = graph.ask("go")
        assert (run.error.type if run.error else "") == kind


def test_a_branch_that_may_not_go_on_lets_the_others_end_first():
    order: Order = []
    names = {name: says(name, order) for name in ("s", "a", "b", "b2", "b3", "c", "c2", "j")}
    edges = [
        Edge("s", ["a", "b", "c"]), Edge("b", "b2"), Edge("b2", "b3"), Edge("c", "c2"),
        Edge(["a", "b3", "c2"], "j"),
    ]  # fmt: skip
    run = make_graph(names, edges, max_steps=5).ask("go")
    assert code_of(run)[0] == "AssemblyLimitError"
    assert len(order) == 5
    assert composite(run).count("assembly_step_stop") == 5
    assert make_graph(names, edges, max_steps=8).ask("go").response == "j"


def test_cancelling_reaches_every_branch():
    gate = Gate()

    def wait(request: Any) -> Reply:
        gate.enter()
        return Reply(text="late")

    graph = make_graph(
        {"s": says("s"), "a": make_agent(wait), "b": make_agent(wait), "j": says("j")},
        [Edge("s", ["a", "b"]), Edge(["a", "b"], "j")],
    )
    run = graph.enqueue("go")
    gate.wait_for(2)
    run.cancel("enough")
    gate.open()
    assert run.wait(20).is_cancelled
    assert not graph.nodes["j"].brain.requests
    assert terminals(run) == ["run_cancel"]


def test_mappers_go_before_nodes_before_the_usual_input():
    agents = {name: says(name) for name in ("a", "b", "c", "d")}
    nodes = {
        "a": Node(agents["a"], input=lambda state: f"start: {state.input.text}"),
        "b": Node(agents["b"], input=lambda state: "by node"),
        "c": Node(agents["c"], input=lambda state: Message("user", (Text("a message"),))),
        "d": agents["d"],
    }
    edges = [
        Edge("a", "b", input=lambda state: f"by edge after {state.previous_result.text}"),
        Edge("b", "c"), Edge("c", "d"),
    ]  # fmt: skip
    assert make_graph(nodes, edges).ask("go").response == "d"
    assert [asked(agent) for agent in agents.values()] == [
        "start: go", "by edge after a", "a message",
        "Original Task:\ngo\n\nInputs from previous nodes:\n\nFrom c:\nc",
    ]  # fmt: skip


def test_code_that_raises_fails_the_graph_with_a_clear_error():
    nodes = {"a": says("a"), "b": says("b"), "c": says("c")}

    def bad(state: Any) -> Any:
        raise ValueError("broken code")

    for edges, said in (
        ([Edge("a", "b", when=bad), Edge("a", "c"), Edge("b", "c")], "condition of the edge from"),
        ([Edge("a", "b", input=bad), Edge("b", "c")], "input of node 'b' could not be made"),
        ([Edge("a", "b", input=lambda state: None), Edge("b", "c")], "input of node 'b'"),
    ):
        _, detail = code_of(make_graph(nodes, edges).ask("go"))
        assert said in detail
    fork = [
        Edge("a", ["b", "d"], input=bad), Edge("r", "b2"), Edge("b", "b2"), Edge(["b2", "d"], "c"),
        ErrorEdge("b", "r", on=ValueError),
    ]  # fmt: skip
    more = {name: says(name) for name in ("r", "b2", "d")}
    body = {"a": nodes["a"], "b": nodes["b"], **more, "c": nodes["c"]}
    run = make_graph(body, fork).ask("go")
    assert "input of node 'd' could not be made: ValueError: broken code" in code_of(run)[1]
    fork[-1] = ErrorEdge("b", "r", on=ZeroDivisionError)
    fork[0] = Edge("a", ["b", "d"], input=lambda s: str(1 / (s.current != "b")))
    run = make_graph(body, fork).ask("go")
    assert run.response == "c", run.error
    assert asked(more["r"]).endswith("From b:\nFailed with ZeroDivisionError.")


def test_nodes_see_history_and_context_only_when_they_ask_for_it():
    seen: dict[str, Any] = {}

    def reader(name: str) -> type[Any]:
        def prompt(self: Any) -> str:
            seen[name] = dict(self.invocation.context)
            return ""

        return make_agent(lambda request: Reply(text=name), system_prompt=prompt)

    plain, open_ = reader("plain"), reader("open")
    conditions: list[Any] = []

    def note(state: Any) -> bool:
        conditions.append(([message.text for message in state.history], dict(state.context)))
        with pytest.raises(TypeError):
            state.context["x"] = 1
        with pytest.raises(TypeError):
            state.input.metadata["tags"].append("x")
        with pytest.raises(TypeError):
            state.results["plain"] = None
        return True

    graph = make_graph(
        {"plain": plain, "open": Node(open_, history=True, context=True)},
        [Edge("plain", "open", when=note)],
    )
    image = Image(b"png", "image/png")
    message = Message("user", (Text("go"), image), {"tags": ["a"]})
    run = graph.ask(message, history=["before"], context={"tenant": 7})
    assert run.is_completed, run.error
    assert seen == {"plain": {}, "open": {"tenant": 7}}
    assert conditions == [(["before"], {"tenant": 7})]
    assert [item.text for item in plain.brain.requests[0].messages][:1] == ["go"]
    first, second = open_.brain.requests[0].messages[:2]
    assert first.text == "before"
    assert image in second.content
    assert second.metadata == {"tags": ["a"]}


def test_a_step_that_takes_too_long_is_cancelled_and_may_take_an_error_edge():
    gate = Gate()

    def wait(request: Any) -> Reply:
        gate.enter()
        return Reply(text="late")

    graph = make_graph(
        {"a": Node(make_agent(wait), timeout_s=0.2), "r": says("rescued")},
        [Edge("a", "r"), ErrorEdge("a", "r", on=AssemblyStepTimeoutError)],
    )
    run = graph.ask("go")
    gate.open()
    assert run.response == "rescued"


def test_a_graph_is_a_node_of_a_graph():
    inner = make_graph({"x": says("x"), "y": says("deep")}, [Edge("x", "y")])
    outer = make_graph({"s": says("s"), "g": inner, "end": says("end")},
                       [Edge("s", "g"), Edge("g", "end")])  # fmt: skip
    run = outer.ask("go")
    assert run.response == "end", run.error
    assert asked(outer.nodes["end"]).endswith("From g:\ndeep")
    assert asked(inner.nodes["x"]).startswith("Original Task:\ngo")
    bad = make_graph({"x": breaks(InvalidRequestError("no")), "y": says("y")}, [Edge("x", "y")])
    broken = make_graph({"s": bad, "end": says("end")},
                        [Edge("s", "end"), ErrorEdge("s", "end", on=ProviderError)])  # fmt: skip
    assert broken.ask("go").response == "end"


def test_the_value_of_the_finish_node_is_the_graphs():
    body = {"perform": lambda self: {"n": [1]}, "__module__": __name__}
    gives = type("ValueWorkflow", (Workflow,), body)
    inner = make_graph({"x": says("x"), "y": gives}, [Edge("x", "y")])
    run = make_graph({"s": says("s"), "g": inner}, [Edge("s", "g")]).ask("go")
    assert run.result is not None, run.error
    assert (run.result.output, run.response) == ({"n": [1]}, '{"n":[1]}')


@pytest.mark.parametrize("attempts", [1, 2])
def test_what_could_not_be_closed_is_neither_tried_again_nor_taken_by_an_error_edge(attempts: int):
    order: Order = []

    @tool(idempotent=True)
    def leave_open() -> str:
        """Leave something open."""
        order.append("CleanupError")
        raise CleanupError("open")

    leaving = make_agent([calls("leave_open")] * 2, leave_open)
    node = Node(leaving, retries=attempts - 1, retry_on=Exception)
    graph = make_graph(
        {"a": node, "r": says("r", order)}, [Edge("a", "r"), ErrorEdge("a", "r", on=Exception)]
    )
    assert code_of(graph.ask("go"))[0] == "CleanupError"
    assert order == ["CleanupError"]


def test_a_session_keeps_question_and_answer():
    graph = make_graph({"a": says("a"), "b": Node(says("b"), history=True)}, [Edge("a", "b")])
    assert graph.ask("one", session_id="graph-session").response == "b"
    assert graph.ask("two", session_id="graph-session").response == "b"
    messages = graph.nodes["b"].assembly.brain.requests[-1].messages
    assert [message.text for message in messages][1:3] == ["one", "b"]
    assert asked(graph.nodes["b"].assembly).startswith("Original Task:\ntwo")


def test_wrong_nodes_are_refused_at_the_call_and_all_of_them_are_told():
    class Wrong(Agent):
        model = 3  # type: ignore[assignment]

    graph = make_graph({"a": Wrong, "b": says("b"), "c": Wrong}, [Edge("a", "b"), Edge("b", "c")])
    for _ in range(2):
        with pytest.raises(DefinitionError) as caught:
            graph.ask("go")
        for name in ("a", "c"):
            assert re.search(rf"Graph.nodes\['{name}'\]: .*Wrong.model is 3", str(caught.value))
    assert len({make_graph({"a": says("a")}, []).fingerprint() for _ in range(2)}) == 2
