from __future__ import annotations

from typing import Any

import pytest

from littleghost.context import Binding
from littleghost.errors import DefinitionError, ToolError
from littleghost.functions import tool
from littleghost.tool import Tool
from littleghost.toolset import Declarations, Toolset, validate_declarations


class PingTool(Tool):
    """Ping."""

    def call(self, input: Any) -> str:
        return "pong"


class AdminTool(PingTool):
    """Only for administrators."""

    asked: list[Any] = []  # noqa: RUF012

    @staticmethod
    def available_if(binding: Binding) -> bool:
        AdminTool.asked.append(binding)
        return binding.agent == "admin"


class NightTool(PingTool):
    available_if = lambda binding: binding.agent == "night"  # noqa: E731


class ClassTool(PingTool):
    @classmethod
    def available_if(cls, binding: Binding) -> bool:
        return binding.agent == cls.name


@tool
def lookup(topic: str) -> str:
    """Look it up."""
    return topic


class MailTools:
    """A provider: its tools share one connection."""

    log: list[str] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.log.append("open")

    def tools(self, binding: Binding) -> Any:
        send = Tool.define(
            name="send", description="Send.", call=lambda given: self.log.append("send")
        )
        return [send, [None, [lookup]], AdminTool]

    def close(self) -> None:
        self.log.append("close")


class NestedTools:
    @classmethod
    def tools(cls, binding: Binding) -> Any:
        return (item for item in (PingTool, NoTools))


class NoTools:
    @staticmethod
    def tools(binding: Binding) -> None:
        return None


def test_tools_are_found_by_name_in_order() -> None:
    toolset = Toolset([PingTool, [lookup, None]])

    assert toolset.names == ("ping_tool", "lookup")
    assert toolset.get("ping_tool") is PingTool
    assert toolset.get("lookup") is lookup.tool_class
    assert [spec.name for spec in toolset.specifications()] == ["ping_tool", "lookup"]
    assert Toolset(None).names == ()


def test_fixed_tools_are_resolved_once() -> None:
    declared = validate_declarations([PingTool, lookup], "A.tools")
    one, two = Toolset(declared), Toolset(declared, Binding(agent="x"))

    assert one.specifications() is two.specifications()
    assert isinstance(declared, Declarations)
    assert validate_declarations([PingTool, MailTools], "A.tools").fixed is None


def test_an_unknown_name_is_answered_with_the_names_there_are() -> None:
    toolset = Toolset([PingTool, lookup])
    with pytest.raises(ToolError) as caught:
        toolset.get("get_US_A PresidentialInfo")

    assert str(caught.value) == (
        "Unknown tool: get_US_A PresidentialInfo. Available tools: ping_tool, lookup"
    )
    with pytest.raises(ToolError) as caught:
        toolset.build("x\ud83d" * 1000)

    assert len(str(caught.value)) < 150
    str(caught.value).encode()
    with pytest.raises(ToolError, match=r"Unknown tool: x\. There are none"):
        Toolset([]).get("x")
    many = [Tool.define(name=f"t{n}", description="x", call=lambda given: 1) for n in range(60)]
    with pytest.raises(ToolError, match=r"t49 and 10 more$"):
        Toolset(many).get("x")


def test_availability_is_asked_with_the_binding_before_anything_is_made() -> None:
    AdminTool.asked.clear()
    declared = validate_declarations([AdminTool, NightTool, ClassTool, PingTool], "A.tools")

    assert AdminTool.asked == []
    assert Toolset(declared).names == ("ping_tool",)
    admin = Binding(agent="admin")
    assert Toolset(declared, admin).names == ("admin_tool", "ping_tool")
    assert AdminTool.asked[1] is admin
    assert Toolset(declared, Binding(agent="night")).names == ("night_tool", "ping_tool")
    assert Toolset(declared, Binding(agent="class_tool")).names == ("class_tool", "ping_tool")
    with pytest.raises(ToolError, match="Unknown tool: admin_tool"):
        Toolset(declared).get("admin_tool")


def test_providers_are_asked_per_binding_and_closed() -> None:
    MailTools.log.clear()
    declared = validate_declarations([MailTools, NestedTools], "A.tools")

    assert MailTools.log == []
    with Toolset(declared, Binding(agent="admin")) as toolset:
        assert toolset.names == ("send", "lookup", "admin_tool", "ping_tool")
        toolset.build("send").execute({})
    toolset.close()

    assert MailTools.log == ["open", "send", "close"]


def test_a_provider_may_be_an_object() -> None:
    provider = MailTools()
    MailTools.log.clear()
    with Toolset([provider]) as toolset:
        assert toolset.names == ("send", "lookup")

    assert MailTools.log == []


def test_what_a_provider_opened_is_closed_when_a_later_one_fails() -> None:
    class Failing:
        def __init__(self) -> None:
            raise RuntimeError("no connection")

        def tools(self, binding: Binding) -> None: ...

    MailTools.log.clear()
    with pytest.raises(RuntimeError, match="no connection"):
        Toolset([MailTools, Failing])

    assert MailTools.log == ["open", "close"]


def test_built_tools_are_closed_in_reverse_and_the_first_error_is_raised() -> None:
    log: list[str] = []

    def make(name: str, *, fails: bool) -> type[Tool]:
        class Closing(PingTool):
            def close(self) -> None:
                log.append(name)
                if fails:
                    raise RuntimeError(name)

        Closing.name = name
        return Closing

    toolset = Toolset([make("a", fails=True), make("b", fails=False), make("c", fails=True)])
    binding = Binding(idempotency_key="k")
    for name in "abc":
        assert toolset.build(name, binding).binding is binding
    with pytest.raises(RuntimeError, match=r"^c$"):
        toolset.close()

    assert log == ["c", "b", "a"]
    toolset.close()
    assert log == ["c", "b", "a"]
    with pytest.raises(RuntimeError, match="the toolset is closed"):
        toolset.build("a")


def make_bad(**fields: Any) -> type[Tool]:
    return type("BadTool", (PingTool,), {"__module__": "shop", "__qualname__": "BadTool", **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "has space"}, "shop.BadTool.name 'has space' must be 1 to 64 of the characters"),
        ({"name": "x" * 65}, "shop.BadTool.name"),
        ({"name": "ping\n"}, "shop.BadTool.name"),
        ({"name": ""}, "shop.BadTool.name ''"),
        ({"name": None}, "shop.BadTool.name None"),
        ({"description": " \n"}, "shop.BadTool.description is missing"),
        ({"description": None}, "shop.BadTool.description is missing"),
        ({"exclusive": 1}, "shop.BadTool.exclusive 1 must be True or False"),
        ({"idempotent": "yes"}, "shop.BadTool.idempotent 'yes' must be True or False"),
        ({"timeout_s": 0}, "shop.BadTool.timeout_s 0 must be a number of seconds above 0"),
        ({"timeout_s": True}, "shop.BadTool.timeout_s True"),
        ({"timeout_s": float("nan")}, "shop.BadTool.timeout_s nan"),
        ({"queue": "Big Queue"}, "shop.BadTool.queue 'Big Queue' must be 1 to 64"),
        ({"available_if": True}, "shop.BadTool.available_if must take one argument"),
        ({"available_if": lambda self, binding: True}, "shop.BadTool.available_if must take one"),
        ({"call": lambda self: 1}, "shop.BadTool.call must take (self, input)"),
        ({"call": Tool.call}, "shop.BadTool.call is missing"),
        ({"input_schema": {"type": "strng"}}, "shop: BadTool.input_schema must describe an object"),
        (
            {"input_schema": {"required": 1}},
            "shop: BadTool.input_schema is not a valid JSON Schema",
        ),
        ({"input_schema": None}, "shop: BadTool.input_schema must be a JSON Schema (a dict)"),
    ],
)
def test_a_wrong_declaration_names_class_and_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        validate_declarations([PingTool, make_bad(**fields)], "A.tools")

    assert str(caught.value).startswith(f"A.tools: {message}")


def test_good_limits_are_accepted() -> None:
    good = make_bad(timeout_s=1.5, queue="gpu.eu-1", exclusive=True, name="A-b_9" * 12)

    assert validate_declarations([good], "A.tools").entries == (good,)


def test_all_problems_of_all_tools_are_one_error() -> None:
    def plain(n: int) -> None: ...

    with pytest.raises(DefinitionError) as caught:
        validate_declarations(
            [
                make_bad(name="a b", queue="X"),
                make_bad(timeout_s=-1, input_schema={"required": 1}),
                PingTool(),
                plain,
                "ping",
                PingTool,
                PingTool,
                make_bad(name="ping_tool"),
            ],
            "Support.tools",
        )
    text = str(caught.value)
    for part in [
        "shop.BadTool.name 'a b'",
        "shop.BadTool.queue 'X'",
        "shop.BadTool.timeout_s -1",
        "BadTool.input_schema is not a valid JSON Schema",
        "PingTool is an instance; tools live for one call, so give the class",
        "plain is a plain function; decorate it with @tool",
        "builtins.str is no tool",
        "PingTool is declared twice",
        "shop.BadTool have the same name 'ping_tool'",
    ]:
        assert part in text


@pytest.mark.parametrize("declarations", [PingTool, "ping", {"a": PingTool}, {PingTool}, 5])
def test_tools_must_be_a_list(declarations: Any) -> None:
    with pytest.raises(DefinitionError, match=r"^A\.tools must be a list of tools"):
        validate_declarations(declarations, "A.tools")


class Looping:
    @staticmethod
    def tools(binding: Binding) -> Any:
        return [Looping]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([make_bad(name="a b")], "shop.BadTool.name 'a b'"),
        (["x"], "builtins.str is no tool"),
        ([PingTool()], "is an instance"),
        (PingTool, "PingTool is declared twice"),
        (Looping, "providers inside of providers without end"),
    ],
)
def test_what_a_provider_gives_is_checked(given: Any, message: str) -> None:
    class Providing:
        @staticmethod
        def tools(binding: Binding) -> Any:
            return given

    with pytest.raises(DefinitionError) as caught:
        Toolset([PingTool, Providing])

    assert message in str(caught.value)


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = [PingTool]
    endless.append(endless)
    with pytest.raises(DefinitionError, match="lists inside of lists without end"):
        validate_declarations(endless, "A.tools")
