"""Builders declare what classes declare, say all that is wrong, and survive as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from littleghost import (
    Agent,
    AgentBuilder,
    Edge,
    ErrorEdge,
    Graph,
    GraphBuilder,
    Limits,
    Member,
    Node,
    Swarm,
    SwarmBuilder,
    Tool,
    Workflow,
    WorkflowBuilder,
    registry,
    tool,
)
from littleghost.builders.definition import MAX_BYTES, name_of_text
from littleghost.errors import (
    DefinitionError,
    OverloadedError,
    ProviderError,
    ToolError,
    UnknownAssemblyError,
)


class OwnError(ToolError):
    """An error of this module."""


class LookupTool(Tool):
    """Look something up."""

    def call(self, input: Any) -> str:
        return ""


@tool(idempotent=True)
def help_center(topic: Literal["refunds", "shipping"]) -> str:
    """Look up a help center entry by topic."""
    return topic


class Shelf:
    """Provides tools."""

    @classmethod
    def tools(cls, binding: Any) -> list[Any]:
        return [help_center]


def be_called(call: Any) -> str:
    return ""


defined = Tool.define(name="defined-tool", description="Be defined.", call=be_called)


def plain(order: str) -> str:
    """Look up an order.

    Args:
        order: Its number.
    """
    return order


def is_there(binding: Any) -> bool:
    return True


def choose(agent: Any) -> str:
    return "words:chosen"


def prompt(agent: Any) -> str:
    return "Written."


def is_billing(state: Any) -> bool:
    return state.result("triage").output == "billing"


def ask(state: Any) -> str:
    return "Asked."


def report(workflow: Any) -> str:
    return "Reported."


class TriageAgent(Agent):
    model = "words:billing"
    tools = [help_center]  # noqa: RUF012


class BillingAgent(Agent):
    description = "Corrects bills."
    system_prompt = "Bill."

    def model(self) -> str:
        return "words:x"


class TeamAgent(Agent, abstract=True):
    system_prompt = "We are a team."


class FlowGraph(Graph):
    nodes = {"triage": TriageAgent, "billing": BillingAgent, "end": TriageAgent}  # noqa: RUF012
    start, finish = "triage", "end"
    edges = [  # noqa: RUF012
        Edge("triage", "billing", when=lambda state: True),
        Edge("triage", "end"),
        Edge("billing", "end"),
    ]


class HelpSwarm(Swarm):
    members = [TriageAgent, BillingAgent]  # noqa: RUF012
    start = TriageAgent


class ReportWorkflow(Workflow):
    def perform(self) -> str:
        return "declared"


def agent_builder() -> AgentBuilder:
    return (
        AgentBuilder("support", description="Helps.")
        .model(choose)
        .system_prompt(prompt)
        .limits(max_turns=7, model_settings={"temperature": 0.5})
        .tools(LookupTool, help_center, defined, Shelf, BillingAgent.as_tool(name="bills"))
        .tool(plain, name="order", idempotent=True, timeout_s=3, available_if=is_there)
        .tool(AgentBuilder("inner").model("words:inner"), description="Ask inside.")
        .tool(FlowGraph)
    )


def swarm_builder() -> SwarmBuilder:
    inner = AgentBuilder("inner", description="Inside.").model("words:inner")
    return (
        SwarmBuilder("help")
        .member(TriageAgent, history=True)
        .member(Member(BillingAgent, context=True, retries=1, retry_on=OwnError))
        .member(inner, name="third", timeout_s=2.5)
        .start(TriageAgent)
        .handoff("triage", [BillingAgent, inner])
        .handoff(inner, BillingAgent)
        .max_steps(9)
        .max_handoff_repeats(2)
    )


def graph_builder() -> GraphBuilder:
    return (
        GraphBuilder("support")
        .node("triage", TriageAgent, history=True, retries=2, retry_on=[ProviderError, OwnError])
        .node("billing", AgentBuilder("billing").model("words:bill"), input=ask)
        .node("left", FlowGraph)
        .node("right", Node(TriageAgent, context=True))
        .node("repair", WorkflowBuilder("repair").perform(report))
        .node("respond", swarm_builder())
        .start("triage")
        .edge("triage", "billing", when=is_billing)
        .edge("triage", ["left", "right"], max_concurrency=1)
        .edge(["left", "right"], "respond", input=ask)
        .edge("billing", "respond")
        .error_edge("triage", "repair", on=(OverloadedError, TimeoutError), input=ask)
        .edge("repair", "respond")
        .finish("respond")
        .max_steps(11)
        .max_concurrency(3)
        .limits(Limits(max_turns=2))
    )


BUILDERS: dict[str, Any] = {
    "agent": agent_builder,
    "workflow": lambda: WorkflowBuilder("report").perform(report),
    "swarm": swarm_builder,
    "graph": graph_builder,
    "agent of a class": lambda: BillingAgent.to_builder().tool(LookupTool),
    "agent of an abstract class": lambda: AgentBuilder("team", base=TeamAgent),
    "workflow of a class": lambda: ReportWorkflow.to_builder(),
    "swarm of a class": lambda: (
        HelpSwarm.to_builder().member(TriageAgent, name="more").handoff("more", "billing")
    ),
    "graph of a class": lambda: FlowGraph.to_builder().node("billing", TriageAgent).max_steps(4),
    "agent of a built class": lambda: agent_builder().build().to_builder().system_prompt("Other."),
}


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    forget()


def forget() -> None:
    """Be a process that has built nothing."""
    registry._built.clear()
    registry._recent.clear()


class Kept:
    """What a run keeps, and how often it was read."""

    def __init__(self, *classes: Any) -> None:
        self.texts: dict[str, str] = {}
        self.reads: list[list[str]] = []
        for cls in classes:
            self.texts |= {name: built.text for name, built in cls.definitions().items()}

    def add(self, text: str) -> str:
        name = name_of_text(text)
        self.texts[name] = text
        return name

    def read(self, names: Any) -> dict[str, str]:
        self.reads.append(list(names))
        return {name: self.texts[name] for name in names if name in self.texts}

    def learn(self, name: str) -> Any:
        forget()
        registry.learn(name, self.read)
        return registry.lookup(name)


def edited(change: Any, builder: Any = None) -> tuple[Kept, str]:
    """Forge a definition: another content under a name that fits it."""
    cls = (builder or agent_builder()).build()
    kept = Kept(cls)
    document = json.loads(cls.built.text)
    change(document)
    return kept, kept.add(json.dumps(document))


# Round trips.


@pytest.mark.parametrize("kind", BUILDERS)
def test_a_definition_gives_the_same_class_elsewhere(kind: str) -> None:
    made = BUILDERS[kind]().build()
    name, fingerprint, definition = registry.name_of(made), made.fingerprint(), made.definition()
    kept = Kept(made)
    learned = kept.learn(name)
    assert learned is not made
    assert learned.definition() == definition
    assert learned.fingerprint() == fingerprint
    assert learned.parts() == learned.parts()
    assert len(kept.reads) <= 2
    assert registry.lookup(name) is learned


def test_the_same_is_declared_as_by_classes() -> None:
    made = graph_builder().build()

    class Same(Graph):
        nodes = made.nodes
        start, finish = "triage", "respond"
        edges = [  # noqa: RUF012
            Edge("triage", "billing", when=is_billing),
            Edge("triage", ["left", "right"], max_concurrency=1),
            Edge(["left", "right"], "respond", input=ask),
            Edge("billing", "respond"),
            ErrorEdge("triage", "repair", on=(OverloadedError, TimeoutError), input=ask),
            Edge("repair", "respond"),
        ]
        max_steps, max_concurrency = 11, 3

    for part in ("nodes", "routes", "errors", "bounds"):
        assert made.definition()[part] == Same.definition()[part]
    assert graph_builder().to_mermaid() == Same.to_mermaid()


def test_what_an_agent_is_told_is_what_it_has() -> None:
    made = agent_builder().build()
    assert (made.kind, made.id(), made.description) == ("agent", "support", "Helps.")
    assert (made.limits.max_turns, made.limits.model_settings) == (7, {"temperature": 0.5})
    assert made().model_selection() == "words:chosen"
    assert made().prompt_text() == "Written."
    names = [getattr(entry, "name", entry) for entry in made.declarations().entries]
    assert names == [
        "lookup_tool",
        "help_center",
        "defined-tool",
        Shelf,
        "bills",
        "order",
        "inner",
        "flow",
    ]
    order = made.declarations().entries[5]
    assert (order.idempotent, order.timeout_s, order.available_if) == (True, 3, is_there)
    assert order.specification().input_schema["properties"]["order"]["description"]


def test_a_builder_of_a_class_adds_to_it() -> None:
    made = FlowGraph.to_builder().node("billing", TriageAgent).build()
    assert (made.id(), made.start) == ("flow", "triage")
    assert made.nodes["billing"].assembly is TriageAgent
    assert FlowGraph.nodes["billing"] is BillingAgent
    assert made.edges == FlowGraph.edges
    assert BillingAgent.to_builder().build()().model_selection() == "words:x"
    assert ReportWorkflow.to_builder().build()().perform() == "declared"


def test_equal_definitions_have_one_name_and_changed_ones_another() -> None:
    builder = graph_builder()
    first = builder.build()
    assert registry.is_built(registry.name_of(first))
    assert registry.name_of(graph_builder().build()) == registry.name_of(first)
    assert builder.build() is first
    builder.max_steps(12)
    assert builder.build().max_steps == 12
    assert first.max_steps == 11
    assert registry.name_of(builder.build()) != registry.name_of(first)


def test_a_change_of_an_inner_builder_counts() -> None:
    inner = AgentBuilder("inner").model("words:a")
    outer = AgentBuilder("outer").tool(inner)
    first = outer.build()
    inner.model("words:b")
    assert registry.name_of(outer.build()) != registry.name_of(first)


def test_what_is_given_may_be_changed_afterwards() -> None:
    model = {"provider": "words", "model": "a"}
    names = ["left", "right"]
    builder = AgentBuilder("one").model(model)
    graph = graph_builder().edge(names, "respond")
    model["model"] = "b"
    names.clear()
    assert builder.build().model == {"provider": "words", "model": "a"}
    assert graph._declared["edges"][-1].source == ("left", "right")


def test_no_registered_name_is_taken_and_what_is_not_used_is_forgotten() -> None:
    import gc

    before = registry.names()
    made = [AgentBuilder(f"agent{number}").build() for number in range(registry.MAX_BUILT + 5)]
    assert registry.names() == before
    names = [registry.name_of(cls) for cls in made]
    held = made[0]
    del made
    gc.collect()
    assert registry.find_built(names[0]) is held
    assert registry.find_built(names[1]) is None
    assert len(registry._recent) == registry.MAX_BUILT


def test_a_subclass_of_a_built_class_is_an_ordinary_class() -> None:
    class MoreAgent(agent_builder().build()):
        assembly_id = "more"

    assert registry.name_of(MoreAgent).endswith("MoreAgent")
    assert len(MoreAgent.definitions()) == 2


def test_a_class_that_uses_a_built_tool_keeps_its_definition() -> None:
    inner = AgentBuilder("inner").build()

    class OuterAgent(Agent):
        tools = [inner.as_tool()]  # noqa: RUF012

    assert list(OuterAgent.definitions()) == [registry.name_of(inner)]
    assert TriageAgent.definitions() == {}


# Refusals.


class Thing:
    def method(self, state: Any) -> bool:
        return True


def local() -> Any:
    def inside(state: Any) -> bool:
        return True

    return inside


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda state: True, "is a lambda"),
        (local(), "is local to a function"),
        (Thing().method, "is a method of an object"),
        (len, "use a function that a module defines"),
        (Thing, "use a function that a module defines"),
    ],
)
def test_code_that_no_worker_finds_is_refused_with_the_cure(wrong: Any, said: str) -> None:
    builder = GraphBuilder("support").node("a", TriageAgent).node("b", TriageAgent)
    builder.start("a").finish("b").edge("a", "b", when=wrong).edge("a", "b")
    with pytest.raises(DefinitionError) as refused:
        builder.validate()
    assert "GraphBuilder('support'): edges[0]: when is " in str(refused.value)
    assert said in str(refused.value)
    assert "module" in str(refused.value)


def test_everything_wrong_is_said_at_once() -> None:
    broken = AgentBuilder("inner").system_prompt(lambda agent: "").model(5)
    builder = (
        GraphBuilder("support", description="x")
        .node("a", broken, retries=1)
        .node("a", TriageAgent, retry_on=local().__class__)
        .node("b", "nothing", input=lambda state: "")
        .edge("a", "c", when=lambda state: True)
        .start("z")
        .max_steps(0)
        .limits("many")  # type: ignore[arg-type]
    )
    with pytest.raises(DefinitionError) as refused:
        builder.ask("Hello")
    told = str(refused.value)
    for text in (
        "node 'a' is declared twice",
        "nodes['b']: input is a lambda",
        "edges[0]: when is a lambda",
        "limits is 'many'",
    ):
        assert text in told, told
    assert told.startswith("GraphBuilder('support'): ")

    builder = GraphBuilder("support").node("a", broken).node("b", "nothing").start("z").max_steps(0)
    with pytest.raises(DefinitionError) as refused:
        builder.validate()
    told = str(refused.value)
    for text in (
        "nodes['a']: AgentBuilder('inner'): system_prompt is a lambda",
        "model is 5",
        "nodes['b'] is 'nothing'",
        "start is 'z'",
        "finish is ''",
        "max_steps is 0",
    ):
        assert text in told, told


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: AgentBuilder(""), "a builder's id is ''"),
        (lambda: AgentBuilder("x", base=FlowGraph), "use a Agent class"),
        (lambda: AgentBuilder("Big One").validate(), "assembly_id is 'Big One'"),
        (lambda: AgentBuilder("x").limits(max_turns=0), "max_turns is 0"),
        (lambda: AgentBuilder("x").limits(turns=3), "turns"),
        (lambda: AgentBuilder("x").tool(plain, colour="red"), "unknown option 'colour'"),
        (lambda: AgentBuilder("x").tool(LookupTool, name="y"), "leave out name"),
        (lambda: AgentBuilder("x").tool(TriageAgent, exclusive=True), "has no exclusive"),
        (lambda: AgentBuilder("x").tool(Shelf()).validate(), "use its class"),
        (lambda: GraphBuilder("x").node([], TriageAgent), "node is []"),  # type: ignore[arg-type]
        (lambda: GraphBuilder("x").start([]).validate(), "start is []"),  # type: ignore[arg-type]
        (lambda: AgentBuilder("x").tool(7).validate(), "is no tool"),
        (lambda: AgentBuilder("x").model({"a": object()}).validate(), "use plain data"),
        (lambda: AgentBuilder("x").system_prompt("x" * MAX_BYTES).validate(), "are allowed"),
        (lambda: WorkflowBuilder("x").validate(), "perform is missing"),
        (lambda: WorkflowBuilder("x").perform(3).validate(), "perform is 3"),  # type: ignore[arg-type]
        (lambda: SwarmBuilder("x").member(TriageAgent, colour=1), "no option colour"),
        (lambda: SwarmBuilder("x").member(TriageAgent).start("y").validate(), "at least two"),
        (lambda: GraphBuilder("x").node("a", TriageAgent, colour=1), "no option colour"),
        (lambda: SwarmBuilder("x").handoff("a", "b").handoff("a", "c").validate(), "twice"),
    ],
)
def test_what_is_refused(make: Any, said: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        make()
    assert said in str(refused.value)


def test_a_builder_that_holds_itself_is_refused() -> None:
    builder = AgentBuilder("snake")
    builder.tool(WorkflowBuilder("between").perform(report)).tool(builder)
    with pytest.raises(DefinitionError, match="holds itself"):
        builder.validate()


def test_more_definitions_than_a_run_may_keep_are_refused() -> None:
    builder = AgentBuilder("wide")
    for number in range(registry.MAX_DEFINITIONS):
        builder.tool(AgentBuilder(f"inner{number}"))
    with pytest.raises(DefinitionError, match=r"65 built assemblies; 64 are allowed"):
        builder.build().definitions()


def test_what_only_this_process_has_is_noted_for_the_door() -> None:
    class HereAgent(Agent):
        pass

    made = AgentBuilder("x").tool(HereAgent).tool(agent_builder()).build()
    assert len(made.built.local) == 1
    assert "HereAgent" in made.built.local[0]
    assert agent_builder().build().built.local == ()


# Definitions that were changed in Redis.


def test_only_what_is_unknown_is_read() -> None:
    made = graph_builder().build()
    kept = Kept(made)
    registry.learn(registry.name_of(made), kept.read)
    registry.learn(f"{__name__}:TriageAgent", kept.read)
    registry.learn("built:../../etc/passwd", kept.read)
    assert kept.reads == []


def test_another_content_than_the_name_says_is_refused() -> None:
    made = agent_builder().build()
    name = registry.name_of(made)
    kept = Kept(made)
    kept.texts[name] = kept.texts[name].replace("Helps.", "Steals.")
    with pytest.raises(DefinitionError, match="changed in Redis"):
        kept.learn(name)


def test_a_definition_that_is_not_there_is_an_unknown_assembly() -> None:
    made = graph_builder().build()
    kept = Kept(made)
    for name in list(kept.texts):
        if name != registry.name_of(made):
            del kept.texts[name]
    with pytest.raises(UnknownAssemblyError, match="keeps no definition"):
        kept.learn(registry.name_of(made))
    with pytest.raises(UnknownAssemblyError):
        registry.lookup(registry.name_of(made))


@pytest.mark.parametrize(
    "reference",
    [
        "os:system",
        "posix:system",
        "shutil:rmtree",
        "json:loads",
        "subprocess:Popen",
        "builtins:eval",
        "sys:modules",
        "littleghost.registry:learn",
        "littleghost.functions:tool",
        "littleghost:__getattr__",
        f"{__name__}:Thing.method.__globals__",
        f"{__name__}:Thing.__init__",
        f"{__name__}:json.loads",
        f"{__name__}:pytest",
        f"{__name__}:TriageAgent",
        f"{__name__}:",
        f"{__name__}:missing",
        "no.such.module:function",
        "",
        ":",
    ],
)
def test_a_reference_reaches_only_functions_that_an_open_module_defines(reference: str) -> None:
    def put(document: Any) -> None:
        document["fields"]["perform"] = reference

    kept, name = edited(put, WorkflowBuilder("report").perform(report))
    with pytest.raises(UnknownAssemblyError, match="is known here"):
        kept.learn(name)


@pytest.mark.parametrize(
    ("field", "reference"),
    [
        ({"tool": "subprocess:Popen"}, "tool"),
        ({"tool": "littleghost.tool:Tool"}, "tool"),
        ({"tool": f"{__name__}:Thing"}, "tool"),
        ({"tool": f"{__name__}:Agent"}, "tool"),
        ({"assembly": "os:system", "name": None, "description": None}, "assembly"),
        ({"function": "os:system", "options": {}}, "function"),
        ({"function": f"{__name__}:plain", "options": {"queue": {"function": "os:system"}}}, "f"),
    ],
)
def test_a_tool_is_one_that_an_open_module_defines(field: Any, reference: str) -> None:
    kept, name = edited(lambda document: document["fields"].update(tools=[field]))
    with pytest.raises(UnknownAssemblyError, match="is known here"):
        kept.learn(name)


@pytest.mark.parametrize(
    "reference", ["subprocess:CalledProcessError", "builtins:eval", "os:error"]
)
def test_an_exception_is_one_that_an_open_module_defines(reference: str) -> None:
    def put(document: Any) -> None:
        document["fields"]["members"][0]["retry_on"] = [reference]

    kept, name = edited(put, swarm_builder())
    with pytest.raises(UnknownAssemblyError, match="is known here"):
        kept.learn(name)


def test_a_missing_module_is_named() -> None:
    def put(document: Any) -> None:
        document["fields"]["perform"] = "shop.flows:report"

    kept, name = edited(put, WorkflowBuilder("report").perform(report))
    with pytest.raises(UnknownAssemblyError, match=r"import the module 'shop\.flows'"):
        kept.learn(name)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("v"),
        lambda document: document.update(v=99),
        lambda document: document.update(kind="planet"),
        lambda document: document.update(kind=["agent"]),
        lambda document: document.update(id=7),
        lambda document: document.update(id="x" * 1000),
        lambda document: document.update(id="No Id"),
        lambda document: document.update(needs=5),
        lambda document: document.update(fields=[]),
        lambda document: document.update(fields={"tools": 5}),
        lambda document: document.update(fields={"tools": [{}]}),
        lambda document: document.update(fields={"tools": [{"tool": 5}]}),
        lambda document: document.update(fields={"model": {"is": 5}}),
        lambda document: document.update(fields={"system_prompt": {"is": None}}),
        lambda document: document.update(limits={"max_turns": -1}),
        lambda document: document.update(limits=5),
        lambda document: document.update(description=5),
        lambda document: document.update(base=f"{__name__}:FlowGraph"),
        lambda document: document.update(kind="graph", fields={"start": []}),
        lambda document: document.update(kind="swarm", fields={"start": {"id": []}}),
        lambda document: document.update(kind="swarm", fields={"handoffs": [[{"id": []}, []]]}),
        lambda document: document.update(needs=[f"built:{n:032x}" for n in range(99)]),
    ],
)
def test_a_malformed_definition_is_refused(change: Any) -> None:
    kept, name = edited(change)
    with pytest.raises(DefinitionError):
        kept.learn(name)
    with pytest.raises(UnknownAssemblyError):
        registry.lookup(name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        '{"v":NaN}',
        '{"v":1,"kind":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"v":1,"kind":' + "[" * 80 + "]" * 80 + "}",
        '{"v":1,"pad":"' + "x" * MAX_BYTES + '"}',
        '{"v":1,"pad":[' + "0," * 30_000 + "0]}",
        '{"v":' + "9" * 5_000 + "}",
    ],
    ids=range(10),
)
def test_a_text_that_is_no_definition_is_refused(text: str) -> None:
    kept = Kept()
    with pytest.raises(DefinitionError):
        kept.learn(kept.add(text))


def test_definitions_inside_definitions_are_bounded() -> None:
    kept = Kept()
    inner = {"v": 1, "kind": "agent", "id": "inner", "needs": [], "fields": {}}
    name = kept.add(json.dumps(inner))
    for number in range(20):
        part = {"assembly": name, "name": f"t{number}", "description": "d"}
        outer = {**inner, "id": f"a{number}", "fields": {"tools": [part]}}
        name = kept.add(json.dumps(outer))
    with pytest.raises(DefinitionError, match="nest less"):
        kept.learn(name)
