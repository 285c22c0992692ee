from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import math
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from littleghost.context import Binding, RunContext
from littleghost.errors import (
    CancelledError,
    CleanupError,
    DeadlineExceededError,
    DefinitionError,
    ToolError,
    ToolTimeoutError,
)
from littleghost.providers.base import CallControl
from littleghost.state import State
from littleghost.tool import Tool
from littleghost.tool_output import ToolOutcome, cut_middle

CASES = Path(__file__).parent.parent / "cases"


def case(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


class OrderStatusTool(Tool):
    """Look up an order
    for the current account.

    Not shown to the model.
    """

    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"order_number": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["order_number"],
        "additionalProperties": False,
    }

    def call(self, input: Any) -> Any:
        return {"order": input["order_number"]}


class EchoTool(Tool):
    description = "Give back what `make` makes."

    def __init__(self, make: Any, binding: Binding | None = None) -> None:
        super().__init__(binding)
        self.make = make

    def call(self, input: Any) -> Any:
        return self.make()


def returning(value: Any, **options: Any) -> ToolOutcome:
    return EchoTool(lambda: value).execute({}, **options)


def raising(error: BaseException) -> ToolOutcome:
    def fail() -> None:
        raise error

    return EchoTool(fail).execute({})


def test_names_and_descriptions_come_from_the_class() -> None:
    class HTTPPing(OrderStatusTool):
        pass

    class OrderV2Tool(Tool):
        description = "Own."

    class Named(OrderStatusTool):
        """Named docs."""

        name = "lookup"

    class Child(Named):
        """Child docs."""

    class Described(OrderV2Tool):
        """Docs do not replace an inherited description."""

    assert OrderStatusTool.name == "order_status_tool"
    assert OrderStatusTool.description == "Look up an order for the current account."
    assert (HTTPPing.name, HTTPPing.description) == ("httpping", OrderStatusTool.description)
    assert OrderV2Tool.name == "order_v2_tool"
    assert (Named.name, Child.name) == ("lookup", "lookup")
    assert Child.description == "Child docs."
    assert Described.description == "Own."


def test_the_specification_is_what_a_model_is_told() -> None:
    spec = OrderStatusTool.specification()

    assert (spec.name, spec.description) == ("order_status_tool", OrderStatusTool.description)
    assert spec.input_schema == OrderStatusTool.input_schema
    assert OrderStatusTool.specification() is spec
    assert EchoTool.specification().input_schema == {"type": "object"}
    with pytest.raises(TypeError):
        spec.input_schema["x"] = 1  # type: ignore[index]


def test_a_subclass_has_its_own_schema() -> None:
    OrderStatusTool.specification()

    class Other(OrderStatusTool):
        input_schema = {"type": "object", "required": ["x"]}  # noqa: RUF012

    assert Other().execute({}).content == "Invalid tool input: $.x is required"


def test_all_errors_of_the_input_are_one_result_and_nothing_is_called() -> None:
    called: list[Any] = []

    class Probe(OrderStatusTool):
        def call(self, input: Any) -> None:
            called.append(input)

    outcome = Probe().execute({"days": "x", "extra": 1})

    assert outcome.status == "error"
    assert outcome.content == (
        "Invalid tool input: $.days must be integer; $.order_number is required; "
        "$.extra is not allowed"
    )
    assert isinstance(outcome.error, ToolError)
    assert called == []
    for bad in (
        [],
        None,
        "text",
        7,
        {"order_number": "x", "days": math.nan},
        {"order_number": {1}},
    ):
        assert Probe().execute(bad).status == "error"
    assert called == []


def test_the_tool_gets_a_copy_of_the_input() -> None:
    class Changing(OrderStatusTool):
        def call(self, input: Any) -> str:
            input["order_number"] = "changed"
            return "ok"

    given = {"order_number": "1"}
    Changing().execute(given)

    assert given == {"order_number": "1"}


class Answer(BaseModel):
    city: str
    days: list[int] = []


class Weather(Tool):
    """Say the weather."""

    input_schema = Answer

    def call(self, input: Answer) -> Answer:
        return Answer(city=input.city, days=[*input.days, 1])


def test_a_pydantic_model_may_describe_input_and_result() -> None:
    assert Weather().execute({"city": "Bonn"}).content == '{"city":"Bonn","days":[1]}'
    assert Weather().execute({"days": "[2]"}).content == "Invalid tool input: $.city is required"


class SaysItself:
    def __str__(self) -> str:
        return "Order \ud83e\udd80 481\0"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text ö", "text ö"),
        (None, ""),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([], "[]"),
        ((1, "x"), '[1,"x"]'),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        (Answer(city="Bonn"), '{"city":"Bonn","days":[]}'),
        (SaysItself(), "Order \U0001f980 481\ufffd"),
        ("ok \ud83d", "ok \ufffd"),
        (b"\xff", '{"base64":"/w=="}'),
        (ToolOutcome(content="as it is", status="error"), "as it is"),
    ],
)
def test_results_are_rendered_for_the_model(value: Any, content: str) -> None:
    outcome = returning(value)
    outcome.content.encode("utf-8")

    assert outcome.content == content


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"nan": math.nan}, "$.nan is NaN"),
        (math.inf, "$ is infinite"),
        ({"keys": {(1, 2): 1}}, "$.keys is an object with a key of type tuple"),
        (object(), "$ is of type object"),
        (ValueError("secret"), "$ is of type ValueError"),
        (OrderStatusTool, "$ is of type the class OrderStatusTool"),
        ((n for n in [1]), "$ is of type generator"),
        ({"x": SaysItself()}, "$.x is of type SaysItself"),
    ],
)
def test_a_result_without_a_json_form_is_one_clear_error(value: Any, place: str) -> None:
    outcome = returning(value)

    assert outcome.status == "error"
    assert outcome.content.startswith(f"The tool ran, but its result cannot be shown: {place}")
    assert "secret" not in outcome.content
    assert isinstance(outcome.error, ToolError)


def test_the_value_is_kept_whole_as_json_data() -> None:
    outcome = returning({"text": ("x" * 100,)}, max_result_tokens=10)

    assert outcome.value == {"text": ["x" * 100]}
    assert len(outcome.content) == 40


@pytest.mark.parametrize(
    ("error", "content"),
    [
        (ToolError("No such order."), "No such order."),
        (ToolTimeoutError("Too slow\ud83d."), "Too slow\ufffd."),
        (ToolError(""), "Tool failed (ToolError)"),
        (RuntimeError("password=hunter2 /srv/app"), "Tool failed (RuntimeError)"),
        (KeyError("secret"), "Tool failed (KeyError)"),
        (RecursionError("deep"), "Tool failed (RecursionError)"),
        (DefinitionError("inner"), "Tool failed (DefinitionError)"),
    ],
)
def test_only_a_tool_error_speaks_to_the_model(error: Exception, content: str) -> None:
    outcome = raising(error)

    assert (outcome.status, outcome.content) == ("error", content)
    assert outcome.error is error
    assert "secret" not in repr(outcome)


def test_a_tool_errors_text_is_bounded() -> None:
    assert len(raising(ToolError("x" * 100_000)).content) == 40_000


@pytest.mark.parametrize(
    "kind", [CancelledError, DeadlineExceededError, CleanupError, KeyboardInterrupt]
)
def test_what_stops_the_run_passes_through(kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        raising(kind("stop"))


def test_a_call_of_a_stopped_run_never_starts() -> None:
    called: list[int] = []
    tool = EchoTool(lambda: called.append(1))
    tool.cancellation.cut()
    with pytest.raises(CancelledError):
        tool.execute({})
    with pytest.raises(DeadlineExceededError):
        tool.execute({}, Binding(control=CallControl(deadline_s=0)))
    assert called == []


def test_a_wrong_schema_is_the_developers_error() -> None:
    class Wrong(Tool):
        """Wrong."""

        input_schema = {"type": "object", "properties": 5}  # noqa: RUF012

        def call(self, input: Any) -> None: ...

    with pytest.raises(DefinitionError, match=r"Wrong\.input_schema is not a valid JSON Schema"):
        Wrong().execute({})


def test_a_tool_without_call_fails_clearly() -> None:
    class Empty(Tool):
        """Empty."""

    outcome = Empty().execute({})

    assert outcome.content == "Tool failed (NotImplementedError)"
    assert "Empty must implement call" in str(outcome.error)


class Request:
    actor_id = "u1"


class FakeRun:
    invocation = Request()


def test_the_binding_gives_the_collaborators() -> None:
    seen: dict[str, Any] = {}

    class Probe(Tool):
        """Probe."""

        def call(self, input: Any) -> None:
            self.check()
            seen.update(
                agent=self.agent,
                run=self.run,
                actor=self.invocation.actor_id,
                key=self.idempotency_key,
                left=self.remaining_s(1),
            )
            self.state.increment("calls")
            self.context.state["last"] = input

    run = FakeRun()
    binding = Binding(agent="agent", run=run, idempotency_key="run:3")
    Probe().execute({"a": 1}, binding)

    assert seen == {"agent": "agent", "run": run, "actor": "u1", "key": "run:3", "left": 1}
    assert binding.state.operations == [{"op": "increment", "key": "calls", "by": 1}]
    assert binding.context.state.to_json() == {"last": {"a": 1}}
    assert Probe().binding.run is None
    assert Probe().invocation is None


def test_calls_of_one_instance_do_not_share_a_binding() -> None:
    barrier = threading.Barrier(2, timeout=10)

    class Meeting(Tool):
        """Meet."""

        def call(self, input: Any) -> str:
            barrier.wait()
            return self.idempotency_key

    tool = Meeting()
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda key=key: found.append(
                tool.execute({}, Binding(idempotency_key=key)).content
            )
        )
        for key in ("a", "b")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(found) == ["a", "b"]
    assert tool.idempotency_key == ""


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


class AsyncTool(Tool):
    """Wait."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.error = error

    async def call(self, input: Any) -> Any:
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return VARIABLE.get()


def test_an_async_call_runs_with_and_without_a_loop_around_it() -> None:
    async def inside() -> str:
        VARIABLE.set("inherited")
        return AsyncTool().execute({}).content

    assert AsyncTool().execute({}).content == "unset"
    assert asyncio.run(inside()) == "inherited"


def test_an_async_calls_errors_are_treated_alike() -> None:
    async def inside() -> ToolOutcome:
        return AsyncTool(ToolError("no")).execute({})

    assert asyncio.run(inside()).content == "no"
    assert AsyncTool(ValueError("x")).execute({}).content == "Tool failed (ValueError)"
    assert AsyncTool(asyncio.CancelledError()).execute({}).content == "Tool failed (RuntimeError)"
    with pytest.raises(CancelledError):
        AsyncTool(CancelledError("stop")).execute({})


def test_a_tool_is_defined_from_a_function() -> None:
    double = Tool.define(
        name="double",
        description="Double it.",
        input_schema={"type": "object", "required": ["n"]},
        call=lambda given: given["n"] * 2,
        idempotent=True,
    )
    keyed = Tool.define(
        name="key", description="Key.", call=lambda given, tool: tool.idempotency_key
    )

    assert double().execute({"n": 2}).content == "4"
    assert (double.name, double.idempotent, double.exclusive) == ("double", True, False)
    assert double.specification().description == "Double it."
    assert keyed(Binding(idempotency_key="k")).execute({}).content == "k"


def test_a_definition_refuses_unknown_options() -> None:
    with pytest.raises(
        DefinitionError, match="tool 'x': unknown option 'retries'; use approval_timeout_s"
    ):
        Tool.define(name="x", description="x", call=print, retries=3)
    with pytest.raises(DefinitionError, match="call must be a function"):
        Tool.define(name="x", description="x", call=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("piece", ["a", "é", "€", "\U0001f980"])
def test_text_is_cut_in_the_middle_between_characters(piece: str) -> None:
    text = "BEGIN" + piece * 5000 + "END"
    cut = cut_middle(text, 100)

    assert len(cut.encode()) <= 400
    assert len(cut.encode()) > 390
    assert cut.startswith("BEGIN" + piece)
    assert cut.endswith(piece + "END")
    assert f"the whole result has {len(text.encode())} bytes" in cut
    removed = int(cut.split("[... ")[1].split()[0])
    marker = len(cut[cut.index("\n[...") : cut.index("...]\n") + 5])
    assert removed * 4 >= len(text.encode()) - (len(cut.encode()) - marker) - 12
    assert "\ufffd" not in cut


def test_text_that_fits_is_left_alone() -> None:
    assert cut_middle("a" * 400, 100) == "a" * 400
    assert cut_middle("€" * 133, 100) == "€" * 133
    assert cut_middle("€" * 134, 100) != "€" * 134
    assert cut_middle("x\ud83d", 100) == "x\ufffd"


@pytest.mark.parametrize("tokens", [1, 5, 19, 20, 21])
def test_tiny_budgets_hold(tokens: int) -> None:
    assert 0 < len(cut_middle("é" * 1000, tokens).encode()) <= tokens * 4


def test_a_budget_must_be_positive() -> None:
    with pytest.raises(ValueError, match="max_tokens 0 must be 1 or more"):
        cut_middle("x", 0)


@given(st.text(st.characters(codec=None)), st.integers(1, 60))
def test_a_cut_text_always_fits_and_is_utf8(text: str, tokens: int) -> None:
    text *= 20

    assert len(cut_middle(text, tokens).encode("utf-8")) <= tokens * 4


@pytest.mark.parametrize("text", ["a" * (64 << 20), "é" * (32 << 20)], ids=["ascii", "utf8"])
def test_64_mib_of_text_are_cut_in_bounded_memory(text: str) -> None:
    """One line of 64 MiB costs a few megabytes and no copies of itself."""
    tool = EchoTool(lambda: text)
    gc.collect()
    tracemalloc.start()
    try:
        outcome = tool.execute({})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert outcome.status == "success"
    assert 39_990 <= len(outcome.content.encode()) <= 40_000
    assert "the whole result has 67108864 bytes" in outcome.content
    assert peak < 8 << 20


def test_deep_and_huge_results_are_errors_or_previews() -> None:
    assert case("payload-deep-and-huge")["firmness"] == "must"
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    outcome = returning(deep)

    assert outcome.content.startswith("The tool ran, but its result cannot be shown: $[0][0]")
    assert len(outcome.content) < 300
    assert Weather().execute({"city": deep}).content.startswith("Invalid tool input: $.city[0]")
    binary = returning(b"\0" * (20 << 20))

    assert binary.status == "success"
    assert len(binary.content) == 40_000
    many = returning(list(range(200_000)))

    assert many.content.endswith("$ is more than 100000 values")


def test_state_and_context_exist_outside_of_a_run() -> None:
    tool = OrderStatusTool()

    assert isinstance(tool.state, State)
    assert isinstance(tool.context, RunContext)
    assert tool.remaining_s() is None
    tool.close()
