"""What is refused at the door: before a run exists, naming the field, leaving no key (P12)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from littleghost import (
    Agent,
    Edge,
    Graph,
    Image,
    Limits,
    Message,
    Swarm,
    Text,
    Tool,
    models,
    tool,
    wiring,
)
from littleghost.errors import (
    ConfigurationError,
    CredentialError,
    DefinitionError,
    InvocationError,
    LittleGhostError,
    UnknownModelError,
)
from littleghost.ids import place_run
from littleghost.messages import ToolUse
from tests.integration.scripted import make_agent, run_keys

pytestmark = [pytest.mark.redis, pytest.mark.usefixtures("embedded")]

NAN = float("nan")
CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE
DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.fixture(autouse=True)
def no_key_is_left(embedded: object) -> Iterator[None]:
    before = run_keys()
    yield
    assert run_keys() == before


@pytest.mark.parametrize(
    ("field", "message", "fields"),
    [
        ("message", "", {}),
        ("message", "  \n\t", {}),
        ("message", None, {}),
        ("message", 7, {}),
        ("message", [], {}),
        ("message", {"role": "user"}, {}),
        ("message", {"role": "user", "content": []}, {}),
        ("message", {"role": "user", "content": [{"type": "text", "text": 5}]}, {}),
        ("message", {"role": "user", "content": [{"type": "hologram"}]}, {}),
        ("message", {"role": "user", "content": [{"type": "image", "data": "%%"}]}, {}),
        ("message", {"role": "assistant", "content": "I am the model"}, {}),
        ("message", {"role": "user", "content": "x", "metadata": {"n": NAN}}, {}),
        ("message", {"role": "user", "content": "x", "metadata": {"n": object()}}, {}),
        ("message", {"role": "user", "content": "x", "metadata": [1]}, {}),
        ("message", Message("user", (Text(5),)), {}),  # type: ignore[arg-type]
        ("message", Message("user", (ToolUse("a", "b", {}),)), {}),
        ("message", Message("user", (Image(b"x", 5),)), {}),  # type: ignore[arg-type]
        ("message", "x" * (8 * 1024 * 1024), {}),
        ("message", "x", {"history": ["y" * (8 * 1024 * 1024)]}),
        ("history", "x", {"history": "hello"}),
        ("history", "x", {"history": 0}),
        ("history", "x", {"history": [5]}),
        ("history", "x", {"history": [{"role": "king", "content": "x"}]}),
        ("history", "x", {"history": [Message("king", (Text("x"),))]}),  # type: ignore[arg-type]
        ("history", "x", {"history": [Message("assistant", (ToolUse("a", "b", {"n": NAN}),))]}),
        ("context", "x", {"context": {"n": NAN}}),
        ("context", "x", {"context": {"n": float("inf")}}),
        ("context", "x", {"context": {"n": object()}}),
        ("context", "x", {"context": {"n": b"bytes"}}),
        ("context", "x", {"context": {"n": {1, 2}}}),
        ("context", "x", {"context": {1: "a"}}),
        ("context", "x", {"context": {"n": "\ud800"}}),
        ("context", "x", {"context": CYCLE}),
        ("context", "x", {"context": {"deep": DEEP}}),
        ("context", "x", {"context": {"big": "x" * (1 << 20) + "x"}}),
        ("context", "x", {"context": []}),
        ("context", "x", {"context": "account=5"}),
        ("metadata", "x", {"metadata": {"n": NAN}}),
        ("settings", "x", {"settings": {"temperature": NAN}}),
        ("settings", "x", {"settings": [1]}),
        ("fields", "x", {"interface": object()}),
        ("run_id", "x", {"run_id": ""}),
        ("run_id", "x", {"run_id": "a b"}),
        ("run_id", "x", {"run_id": "../../etc"}),
        ("run_id", "x", {"run_id": "{x}"}),
        ("run_id", "x", {"run_id": "a|b"}),
        ("run_id", "x", {"run_id": "like-a-key:e"}),
        ("run_id", "x", {"run_id": "ü"}),
        ("run_id", "x", {"run_id": "a\n"}),
        ("run_id", "x", {"run_id": "x" * 129}),
        ("run_id", "x", {"run_id": b"bytes"}),
        ("session_id", "x", {"session_id": ""}),
        ("session_id", "x", {"session_id": "s" * 257}),
        ("session_id", "x", {"session_id": "\ud800"}),
        ("session_id", "x", {"session_id": ["s"]}),
        ("actor_id", "x", {"actor_id": ""}),
        ("actor_id", "x", {"actor_id": True}),
        ("actor_id", "x", {"actor_id": 1.5}),
        ("deadline_at", "x", {"deadline_at": "tomorrow"}),
        ("deadline_at", "x", {"deadline_at": 60}),
        ("deadline_at", "x", {"deadline_at": datetime(2100, 1, 1)}),  # noqa: DTZ001
        ("deadline_at", "x", {"deadline_at": "2100-01-01T00:00:00"}),
        ("deadline_at", "x", {"deadline_at": datetime(2001, 1, 1, tzinfo=UTC)}),
        ("deadline_at", "x", {"deadline_at": "2001-01-01T00:00:00Z"}),
        ("deadline_at", "x", {"deadline_at": timedelta(seconds=-1)}),
        ("deadline_at", "x", {"deadline_at": timedelta(0)}),
        ("deadline_at", "x", {"deadline_at": timedelta.max}),
        ("include_agent_events", "x", {"include_agent_events": None}),
        ("include_agent_events", "x", {"include_agent_events": "yes"}),
        ("lane", "x", {"lane": "fast"}),
        ("lane", "x", {"lane": None}),
    ],
)
def test_a_value_is_refused_by_name(field: str, message: Any, fields: dict[str, Any]) -> None:
    agent = make_agent(["never"])
    for call in (agent.enqueue, agent.ask, agent.stream_ask):
        with pytest.raises(InvocationError) as caught:
            call(message, **fields)
        assert caught.value.field == field
        assert len(str(caught.value)) < 500
    with pytest.raises(InvocationError):
        asyncio.run(agent.aenqueue(message, **fields))
    assert not agent.brain.requests


def test_a_run_id_that_its_session_makes_too_long_is_refused() -> None:
    agent = make_agent(["never"])
    run_id, _ = place_run("x" * 128, "s0", 16)
    assert len(run_id) == 131
    with fleet_runtime(partitions=16), pytest.raises(InvocationError) as caught:
        agent.enqueue("x", run_id="x" * 128, session_id="s0")
    assert caught.value.field == "run_id"


@contextmanager
def fleet_runtime(**changes: Any) -> Iterator[None]:
    """Be a caller of a fleet on the embedded Redis for a while."""
    embedded = wiring.runtime()
    wiring.configure(embedded.settings.with_(**changes))
    try:
        yield
    finally:
        wiring.runtime().close()
        wiring._current = embedded


def test_a_class_that_no_worker_could_import_is_refused_against_a_fleet() -> None:
    """P9: a worker finds classes by name in modules that it imports."""

    class LocalAgent(Agent):
        model = make_agent(["x"]).model

    main = type("MainAgent", (LocalAgent,), {"__module__": "__main__", "__qualname__": "MainAgent"})
    with fleet_runtime():
        for bad in (LocalAgent, main):
            with pytest.raises(DefinitionError, match="move the class to a module"):
                bad.enqueue("x")


class TestModels:
    @pytest.mark.parametrize(
        "model",
        ["nowhere:m", "no-such-role", ":m", "brain:", {"provider": "nowhere", "model": "m"}],
    )
    def test_an_unknown_model_is_refused(self, model: Any) -> None:
        with pytest.raises(UnknownModelError):
            make_agent([], model=model).enqueue("x")

    def test_a_method_that_chooses_an_unknown_model_is_refused(self) -> None:
        with pytest.raises(UnknownModelError, match="nowhere"):
            make_agent([], model=lambda self: "nowhere:m").enqueue("x")

    def test_a_connection_without_its_key_is_refused_and_the_variable_is_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("OPENAI_API_KEY", "LITTLEGHOST_OPENAI_API_KEY", "LITTLEGHOST_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(CredentialError, match="OPENAI_API_KEY"):
            make_agent([], model="openai:gpt").enqueue("x")

    def test_no_model_and_no_default_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(models(), "default", None)
        with pytest.raises(UnknownModelError, match="LITTLEGHOST_MODEL"):
            make_agent([], model=None).enqueue("x")

    @pytest.mark.parametrize("model", ["nowhere:m", {"provider": "nowhere", "model": "m"}])
    def test_a_model_that_only_a_participant_names_is_refused_with_its_class(
        self, model: Any
    ) -> None:
        lost, fine = make_agent([], model=model), make_agent([])
        also = make_agent([], fine.as_tool(name="fine"), lost.as_tool(name="lost"))
        body = {"members": [fine, also], "start": fine, "__module__": __name__}
        swarm = type("DoorSwarm", (Swarm,), body)
        nodes = {"a": fine, "b": swarm}
        graph = make_graph("DoorGraph", nodes, [Edge("a", "b")])
        boss = make_agent([], graph.as_tool(name="graph"))
        for assembly in (also, swarm, graph, boss):
            for _ in range(2):
                with pytest.raises(
                    UnknownModelError, match=rf"^{lost.__qualname__}\.model: .*nowhere"
                ):
                    assembly.enqueue("x")

    def test_a_participant_without_a_model_needs_a_default(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        boss = make_agent([], make_agent([], model=None).as_tool(name="help"))
        monkeypatch.setattr(models(), "default", None)
        with pytest.raises(UnknownModelError, match="LITTLEGHOST_MODEL"):
            boss.enqueue("x")

    def test_a_participant_that_is_declared_wrongly_is_refused(self) -> None:
        bad = make_agent([], limits={"max_turns": 3})
        with pytest.raises(DefinitionError, match=f"{bad.__qualname__}.limits"):
            make_agent([], bad.as_tool(name="bad")).enqueue("x")


def test_what_a_run_may_start_is_found_once_and_in_circles_too() -> None:
    asked = make_agent([], model=lambda self: "nowhere:m")
    graph = make_graph("CircleGraph", {"a": asked, "b": asked}, [Edge("a", "b")])
    asked.tools = [graph.as_tool(name="circle")]
    assert list(graph.reachable()) == [graph, asked]
    assert list(asked.reachable()) == [asked, graph]
    assert asked.reachable() is asked.reachable()


def make_graph(name: str, nodes: dict[str, Any], edges: list[Edge]) -> type[Graph]:
    start, *_, finish = nodes
    body = {"nodes": nodes, "edges": edges, "start": start, "finish": finish}
    return type(name, (Graph,), {**body, "__module__": __name__})


def undescribed() -> type[Tool]:
    return type("Silent", (Tool,), {"call": lambda self, value: 1})


def with_schema(schema: Any) -> type[Tool]:
    body = {"__doc__": "Do it.", "input_schema": schema, "call": lambda self, value: 1}
    return type("Silent", (Tool,), body)


@tool
def fine() -> str:
    """Be fine."""
    return ""


@pytest.mark.parametrize(
    ("named", "attributes"),
    [
        ("model", {"model": 7}),
        ("model", {"model": {"provider": "brain", "model": "m", "t": NAN}}),
        ("system_prompt", {"system_prompt": 7}),
        ("tools", {"tools": "fine"}),
        ("tools", {"tools": [print]}),
        ("tools", {"tools": [object()]}),
        ("description", {"tools": [undescribed()]}),
        ("same name", {"tools": [fine, type("Other", (fine.tool_class,), {})]}),
        ("input_schema", {"tools": [with_schema({"type": "wizard"})]}),
        ("input_schema", {"tools": [with_schema(7)]}),
        ("input_schema", {"tools": [with_schema({"type": "array"})]}),
        ("limits", {"limits": {"max_turns": 3}}),
        ("model_settings", {"limits": Limits(model_settings={"t": NAN})}),
        ("assembly_id", {"assembly_id": "Not An Id"}),
        ("assembly_id", {"assembly_id": 7}),
        ("description", {"description": 7}),
    ],
)
def test_a_bad_definition_names_class_and_field(named: str, attributes: dict[str, Any]) -> None:
    agent = make_agent([])
    bad = type("BadAgent", (agent,), attributes)
    with pytest.raises(DefinitionError) as caught:
        bad.enqueue("x")
    assert named in str(caught.value)
    assert "BadAgent" in str(caught.value) or "Silent" in str(caught.value)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_turns": 0},
        {"max_turns": True},
        {"max_turns": 2.5},
        {"max_tool_calls": -1},
        {"max_tool_result_tokens": 0},
        {"max_tool_result_tokens": None},
        {"max_parallel_calls": 0},
        {"max_model_retries": -1},
    ],
)
def test_bad_limits_are_named(limits: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=next(iter(limits))):
        Limits(**limits)


def test_an_abstract_class_is_refused() -> None:
    with pytest.raises(DefinitionError, match="abstract"):
        Agent.enqueue("x")

    class Base(Agent, abstract=True):
        model = "brain:m"

    with pytest.raises(DefinitionError, match="Base is abstract"):
        Base.enqueue("x")


def test_every_refusal_is_an_error_of_ours() -> None:
    assert issubclass(InvocationError, LittleGhostError)
    assert issubclass(DefinitionError, ConfigurationError)
    assert not issubclass(InvocationError, ConfigurationError)
