from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from littleghost.context import Binding, RunContext
from littleghost.errors import CancelledError, DeadlineExceededError
from littleghost.providers.base import CallControl
from littleghost.state import State, apply_operations
from littleghost.tool import Tool


def test_changes_are_recorded_as_operations() -> None:
    state = State({"gone": 1, "count": 2, "list": ["a"]})
    state["city"] = {"name": "Bonn"}
    del state["gone"]
    state.increment("count")
    state.increment("new", 2.5)
    state.append("list", {"b": 1})
    state.append("other", None)

    assert state.operations == [
        {"op": "set", "key": "city", "value": {"name": "Bonn"}},
        {"op": "delete", "key": "gone"},
        {"op": "increment", "key": "count", "by": 1},
        {"op": "increment", "key": "new", "by": 2.5},
        {"op": "append", "key": "list", "value": {"b": 1}},
        {"op": "append", "key": "other", "value": None},
    ]
    assert state.to_json() == {
        "count": 3, "list": ["a", {"b": 1}], "city": {"name": "Bonn"}, "new": 2.5, "other": [None],
    }  # fmt: skip
    assert json.loads(json.dumps(state.operations)) == state.operations


def test_an_assignment_makes_earlier_changes_of_its_key_void() -> None:
    state = State()
    for number in range(1000):
        state["progress"] = number
        state.increment("steps")
    state.append("log", 1)
    del state["log"]

    assert state.operations == [
        {"op": "set", "key": "progress", "value": 999},
        {"op": "increment", "key": "steps", "by": 1000},
        {"op": "delete", "key": "log"},
    ]


def test_it_is_a_mapping() -> None:
    state = State({"a": 1})
    state.update(b=2)

    assert state.setdefault("a", 5) == 1
    assert state.pop("b") == 2
    assert state.get("b") is None
    assert "a" in state
    assert dict(state) == {"a": 1}
    assert len(state) == 1
    assert repr(state) == "State({'a': 1})"
    with pytest.raises(KeyError):
        del state["b"]
    state.clear()

    assert state.to_json() == {}


def test_a_nested_value_cannot_be_changed_unnoticed() -> None:
    state = State({"old": {"items": [1]}})
    state["new"] = {"items": [1]}
    for key in ("old", "new"):
        with pytest.raises(TypeError, match="read-only"):
            state[key]["items"].append(2)
        changed = copy.deepcopy(state[key])
        changed["items"].append(2)
        state[key] = changed

        assert state[key] == {"items": [1, 2]}


def test_what_it_is_given_is_not_shared() -> None:
    data: dict[str, Any] = {"a": 1}
    state = State(data)
    value = [1]
    state["b"] = value
    value.append(2)
    data["c"] = 3

    assert state.to_json() == {"a": 1, "b": [1]}
    assert state.operations == [{"op": "set", "key": "b", "value": [1]}]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"when": object()}, r"state\['k'\]\.when is of type object"),
        ([math.nan], r"state\['k'\]\[0\] is NaN"),
        ({1, 2}, r"state\['k'\] is of type set"),
        ("x" * ((1 << 20) + 1), "more than 1048576 bytes"),
    ],
)
def test_values_must_be_json(value: Any, message: str) -> None:
    state = State()
    for change in (state.__setitem__, state.append):
        with pytest.raises(ValueError, match=message):
            change("k", value)

    assert state.operations == []


@pytest.mark.parametrize("key", ["", "x" * 257, 1, None])
def test_keys_are_bounded_text(key: Any) -> None:
    with pytest.raises(ValueError, match="a state key must be text of 1 to 256 characters"):
        State()[key] = 1


def test_wrong_kinds_are_refused_and_change_nothing() -> None:
    state = State({"text": "x", "flag": True, "n": 1})
    for call in (
        lambda: state.increment("text"),
        lambda: state.increment("flag"),
        lambda: state.increment("n", "1"),  # type: ignore[arg-type]
        lambda: state.append("n", 1),
    ):
        with pytest.raises(TypeError, match="state"):
            call()
    with pytest.raises(ValueError, match="infinite"):
        state.increment("n", math.inf)

    assert state.operations == []
    assert state["n"] == 1


def test_operations_of_two_tools_lose_nothing() -> None:
    base = {"count": 1, "log": ["start"]}
    one, two = State(base), State(base)
    one.increment("count", 2)
    two.increment("count", 3)
    one.append("log", "one")
    two.append("log", "two")

    merged = apply_operations(apply_operations(base, two.operations), one.operations)

    assert merged == {"count": 6, "log": ["start", "two", "one"]}
    assert base == {"count": 1, "log": ["start"]}


def test_applying_never_fails_when_another_tool_changed_the_kind() -> None:
    operations: Any = [
        {"op": "increment", "key": "text", "by": 2},
        {"op": "append", "key": "number", "value": 1},
        {"op": "delete", "key": "gone"},
    ]

    assert apply_operations({"text": "x", "number": 5}, operations) == {"text": 2, "number": [1]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.tuples(st.just("set"), KEYS, JSON)
    | st.tuples(st.just("delete"), KEYS, st.none())
    | st.tuples(st.just("increment"), KEYS, st.integers())
    | st.tuples(st.just("append"), KEYS, JSON),
    max_size=12,
)


@given(st.dictionaries(KEYS, JSON), STEPS)
def test_operations_give_what_the_tool_saw(base: dict[str, Any], steps: list[Any]) -> None:
    before = copy.deepcopy(base)
    state = State(base)
    for name, key, value in steps:
        try:
            if name == "set":
                state[key] = value
            elif name == "delete":
                del state[key]
            else:
                getattr(state, name)(key, value)
        except (KeyError, TypeError):
            continue

    assert apply_operations(base, state.operations) == state.to_json()
    assert base == before


class PingTool(Tool):
    """Ping."""

    closed: list[str] = []  # noqa: RUF012

    def call(self, input: Any) -> str:
        return "pong"

    def close(self) -> None:
        self.closed.append("ping")


class BrokenTool(PingTool):
    def __init__(self, binding: Binding) -> None:
        raise RuntimeError("no")


def test_a_binding_brings_a_context_with_the_same_control() -> None:
    control = CallControl(deadline_s=60)
    binding = Binding(control=control, idempotency_key="k")

    assert binding.context.control is control
    assert binding.context.state.to_json() == {}
    assert 0 < (binding.context.remaining_s() or 0) <= 60
    assert binding.context.remaining_s(5) == 5
    assert Binding().context.remaining_s() is None


def test_a_changed_binding_keeps_the_rest() -> None:
    context = RunContext(state=State({"a": 1}), metadata={"m": 1})
    binding = Binding(context=context, agent="agent")
    control = CallControl(deadline_s=0)
    changed = binding.with_(control=control, run="run")

    assert (changed.agent, changed.run, changed.context.state["a"]) == ("agent", "run", 1)
    assert changed.context.state is context.state
    with pytest.raises(DeadlineExceededError):
        changed.context.check()
    binding.context.check()
    binding.control.cut()
    with pytest.raises(TypeError):
        binding.with_(unknown=1)


def test_a_cut_control_stops_the_context() -> None:
    binding = Binding()
    binding.control.cut()
    with pytest.raises(CancelledError):
        binding.context.check()


def test_a_binding_builds_tools_and_closes_them_when_one_fails() -> None:
    binding = Binding()
    PingTool.closed.clear()
    built = binding.build(PingTool, PingTool)

    assert [tool.binding for tool in built] == [binding, binding]
    with pytest.raises(RuntimeError, match="no"):
        binding.build(PingTool, PingTool, BrokenTool)
    assert PingTool.closed == ["ping", "ping"]
