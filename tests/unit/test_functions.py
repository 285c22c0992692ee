from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from littleghost.context import Binding
from littleghost.errors import DefinitionError, ToolError
from littleghost.functions import ToolFunction, tool
from littleghost.tool import Tool

if TYPE_CHECKING:
    from array import array


@tool(idempotent=True)
def help_center_lookup(topic: Literal["refunds", "shipping"]) -> str:
    """Look up a help center
    entry by topic.

    More that only people read.
    """
    return f"About {topic}."


class Color(Enum):
    RED = "red"


@tool
def search(
    text: Annotated[str, Field(description="Own words.", min_length=1)],
    tags: list[str],
    *,
    limit: int = 10,
    since: date | None = None,
    where: Where | None = None,
    color: Color = Color.RED,
) -> dict[str, Any]:
    """Search the shop.

    Args:
        text: Not used, since the annotation says more.
        tags (list[str]): All of these
            must be there.
        limit: How many:
            at most.

        since: The first day.

    Returns:
        Something that is not a parameter.
    """
    return {
        "text": text,
        "tags": tags,
        "limit": limit,
        "since": since,
        "where": where,
        "color": color,
    }


class Where(BaseModel):
    """A place."""

    city: str
    radius: Decimal = Decimal(5)


def test_a_tool_function_is_still_the_function() -> None:
    assert help_center_lookup(topic="refunds") == "About refunds."
    assert help_center_lookup("shipping") == "About shipping."
    assert isinstance(help_center_lookup, ToolFunction)
    assert help_center_lookup.__name__ == "help_center_lookup"
    assert help_center_lookup.__doc__ is not None
    assert repr(help_center_lookup) == (
        f"<tool 'help_center_lookup' from {__name__}.help_center_lookup>"
    )


def test_a_tool_function_is_a_tool() -> None:
    kind = help_center_lookup.tool_class

    assert issubclass(kind, Tool)
    assert (kind.__module__, kind.__qualname__) == (__name__, "help_center_lookup")
    assert (kind.idempotent, kind.exclusive) == (True, False)
    assert help_center_lookup.name == "help_center_lookup"
    assert help_center_lookup.description == "Look up a help center entry by topic."
    assert help_center_lookup.execute({"topic": "refunds"}).content == "About refunds."
    assert help_center_lookup.execute({"topic": "x", "y": 1}).content == (
        'Invalid tool input: $.y is not allowed; $.topic must be one of "refunds", "shipping"'
    )
    assert help_center_lookup.specification().input_schema == {
        "type": "object",
        "properties": {"topic": {"enum": ["refunds", "shipping"], "type": "string"}},
        "required": ["topic"],
        "additionalProperties": False,
    }


def test_the_signature_gives_the_schema() -> None:
    schema = search.specification().input_schema

    assert schema["required"] == ["text", "tags"]
    assert list(schema["properties"]) == ["text", "tags", "limit", "since", "where", "color"]
    assert schema["properties"]["text"] == {
        "description": "Own words.",
        "minLength": 1,
        "type": "string",
    }
    assert schema["properties"]["tags"]["description"] == "All of these must be there."
    assert schema["properties"]["limit"] == {
        "default": 10,
        "description": "How many: at most.",
        "type": "integer",
    }
    assert schema["properties"]["since"]["description"] == "The first day."
    assert schema["$defs"]["Where"]["required"] == ["city"]


def test_arguments_arrive_as_the_annotated_types() -> None:
    value = search.tool_class().call(
        search.tool_class.schema().read(
            {"text": "x", "tags": '["a"]', "since": "2026-01-15", "where": {"city": "Bonn"}}
        )
    )

    assert value == {
        "text": "x",
        "tags": ["a"],
        "limit": 10,
        "since": date(2026, 1, 15),
        "where": Where(city="Bonn"),
        "color": Color.RED,
    }


def test_bound_parameters_are_given_and_hidden() -> None:
    @tool
    def one(tool: Any, n: int) -> str:
        """One."""
        return f"{tool.idempotency_key}{n}"

    @tool
    def two(n: int, bound: Tool) -> str:
        """Two."""
        bound.state.increment("calls")
        return bound.idempotency_key

    @tool
    def three(binding: Binding) -> str:
        """Three."""
        return binding.idempotency_key

    @tool
    def four(tool: str) -> str:
        """Four: a name like any other, since its type says so."""
        return tool

    @tool
    def five(tool) -> str:  # type: ignore[no-untyped-def]
        """Five."""
        return type(tool).name

    binding = Binding(idempotency_key="k")

    assert one.execute({"n": 1}, binding).content == "k1"
    assert two.execute({"n": 1}, binding).content == "k"
    assert binding.state["calls"] == 1
    assert three.execute({}, binding).content == "k"
    assert list(one.specification().input_schema["properties"]) == ["n"]
    assert three.specification().input_schema["properties"] == {}
    assert four.execute({"tool": "hammer"}).content == "hammer"
    assert five.execute({}).content == "five"


def test_parameter_names_cannot_collide_with_pydantics() -> None:
    @tool
    def odd(model_config: int, schema: int, json: int, copy: int, field_0: int, self: int) -> int:
        """Odd."""
        return model_config + schema + json + copy + field_0 + self

    names = ["model_config", "schema", "json", "copy", "field_0", "self"]

    assert odd.execute(dict.fromkeys(names, 1)).content == "6"
    assert odd.specification().input_schema["required"] == names


def test_async_functions_and_tool_errors_work() -> None:
    @tool(name="wait-for", description="Wait.")
    async def wait(n: int) -> int:
        if n < 0:
            raise ToolError("n must not be negative")
        return n

    assert wait.name == "wait-for"
    assert wait.description == "Wait."
    assert wait.execute({"n": 2}).content == "2"
    assert wait.execute({"n": -1}).content == "n must not be negative"


def test_signatures_without_names_are_refused_at_once() -> None:
    with pytest.raises(DefinitionError, match="parameter 'args' cannot be given by name"):

        @tool
        def one(*args: int) -> None: ...

    with pytest.raises(DefinitionError, match="parameter 'rest' cannot be given by name"):

        @tool
        def two(**rest: int) -> None: ...

    with pytest.raises(DefinitionError, match="parameter 'n' cannot"):

        @tool
        def three(n: int, /) -> None: ...

    with pytest.raises(DefinitionError, match="unknown option 'retries'"):

        @tool(retries=3)
        def four() -> None: ...

    with pytest.raises(DefinitionError, match="@tool is for functions"):
        tool(Color)


def test_annotations_without_a_schema_are_refused_when_the_tool_is_registered() -> None:
    @tool
    def one(n) -> None:  # type: ignore[no-untyped-def]
        """One."""

    @tool
    def two(thing: Tool | object) -> None:
        """Two."""

    @tool
    def three(n: array[int]) -> None:
        """Three."""

    @tool
    def four(n: int = Field(default=3)) -> None:
        """Four."""

    @tool
    def five(n: pytest.MonkeyPatch) -> None:
        """Five."""

    for function, message in [
        (one, "parameter 'n' has no type; annotate it"),
        (two, "a parameter's type has no schema"),
        (three, "an annotation names 'array'"),
        (four, "has a Field as its default"),
        (five, "a parameter's type has no schema"),
    ]:
        with pytest.raises(DefinitionError, match=message) as caught:
            function.specification()

        assert f"{function.tool_class.__qualname__}" in str(caught.value)
