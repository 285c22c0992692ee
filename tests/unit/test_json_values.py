from __future__ import annotations

import json
import math
import os
import string
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from littleghost.errors import InvocationError
from littleghost.frozen_json import freeze, thaw
from littleghost.json_values import (
    JsonLimits,
    check_json,
    check_json_mapping,
    clean_text,
    dumps,
    loads,
    to_json_value,
    utf8_size,
)

CASES = Path(__file__).parent.parent / "cases"


def case(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    y: Any


class Order(BaseModel):
    number: str
    total: Decimal


class Broken(BaseModel):
    inner: Any = None

    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise RuntimeError("secret")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def strict_loads(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"not strict JSON: {name}")

    text.encode("utf-8")
    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("10.10"), "10.10"),
        (datetime(2026, 1, 15, 10, 0, tzinfo=UTC), "2026-01-15T10:00:00+00:00"),
        (datetime(2026, 1, 15, 10, 0), "2026-01-15T10:00:00"),  # noqa: DTZ001
        (date(2026, 1, 15), "2026-01-15"),
        (time(10, 30), "10:30:00"),
        (timedelta(minutes=1), 60.0),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Path("/x"), "/x"),
        (Fraction(1, 3), "1/3"),
        (Color.RED, "red"),
        (Level.HIGH, 3),
        (Point(1, (2, 3)), {"x": 1, "y": [2, 3]}),
        (Order(number="1", total=Decimal("1.50")), {"number": "1", "total": "1.50"}),
        (b"\xff\x00", {"base64": "/wA="}),
        ({3, 1, 2, 10}, [1, 2, 3, 10]),
        (frozenset({"b", "a", 1}), [1, "a", "b"]),
        ((1, (2,)), [1, [2]]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        (2**70, 2**70),
        (MappingProxyType({"a": OrderedDict(b=1)}), {"a": {"b": 1}}),
        (
            {2: "a", None: "b", True: "c", 1.5: "d"},
            {"2": "a", "true": "c", "null": "b", "1.5": "d"},
        ),
        ({Color.RED: 1, date(2026, 1, 1): 2}, {"red": 1, "2026-01-01": 2}),
        (True, True),
        (None, None),
        (-0.0, -0.0),
    ],
)
def test_python_values_get_the_json_form_that_is_documented(value: Any, expected: Any) -> None:
    result = to_json_value(value)

    assert result == expected
    assert strict_loads(dumps(result)) == expected
    assert type(result) in (dict, list, str, int, float, bool, type(None))


def cycle() -> list[Any]:
    value: dict[str, Any] = {"name": "x"}
    value["self"] = [value]
    return [value]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"nan": math.nan}, "$.nan is NaN"),
        ({"a": [1, -math.inf]}, "$.a[1] is infinite"),
        (cycle(), "$[0].self[0] is an object or list that contains itself"),
        ({"keys": {(1, 2): "c"}}, "$.keys is an object with a key of type tuple"),
        ({1: "a", "1": "b"}, '$ is an object in which two keys become "1"'),
        ({"f": {"a b": object()}}, '$.f["a b"] is of type object'),
        ([Color], "$[0] is of type the class Color"),
        ((n for n in [1]), "$ is of type generator"),
        ({"big": 10**5000}, "$.big is an integer of more than"),
        ({"model": Broken()}, "$.model is a Broken that cannot be written as JSON (RuntimeError)"),
        (nested(65), "is nested more than 64 levels deep"),
        (nested(5000), "is nested more than 64 levels deep"),
        ([0] * 100_000, "$ is more than 100000 values"),
    ],
)
def test_what_has_no_json_form_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        to_json_value(value)

    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_the_limits_count_levels_values_and_bytes() -> None:
    assert to_json_value(nested(64)) == nested(64)
    assert to_json_value([0] * 3, limits=JsonLimits(nodes=4)) == [0, 0, 0]
    assert to_json_value("é" * 5, limits=JsonLimits(size=10)) == "é" * 5
    with pytest.raises(ValueError, match="more than 4 values"):
        to_json_value([0] * 4, limits=JsonLimits(nodes=4))
    with pytest.raises(ValueError, match="more than 10 bytes"):
        to_json_value(["é" * 6], limits=JsonLimits(size=10))
    with pytest.raises(ValueError, match="depth 201 must be from 1 to 200"):
        JsonLimits(depth=201)


def test_equal_objects_next_to_each_other_are_no_cycle() -> None:
    shared = {"a": 1}

    assert to_json_value([shared, shared]) == [{"a": 1}, {"a": 1}]


def test_the_result_shares_nothing_with_the_value() -> None:
    value = {"a": [1]}
    result = to_json_value(value)
    value["a"].append(2)

    assert result == {"a": [1]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ok \ud83d end \udc00 ", "ok \ufffd end \ufffd "),
        ("\ud83e\udd80", "\U0001f980"),
        ("caf\u00e9 \U0001f980", "caf\u00e9 \U0001f980"),
        ("a\0b", "a\ufffdb"),
        ("\udc00\ud83e", "\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_text_is_cleaned(text: str, expected: str) -> None:
    assert clean_text(text) == expected
    assert clean_text(expected) == expected
    assert utf8_size(expected) == len(expected.encode())


def test_lone_surrogates_are_cleaned_wherever_data_enters() -> None:
    given = case("payload-lone-surrogates")["input"]
    output = eval(given["tool_output_python"])  # the case states it as a Python expression
    file_name = os.fsdecode(b"r\xe9sum\xe9.txt")
    for value in (to_json_value({output: file_name}), check_json({output: file_name})):
        written = dumps(value)

        assert strict_loads(written) == value
        assert written.startswith('{"ok \ufffd end \ufffd \U0001f980 caf\u00e9"')
        assert "r\ufffdsum\ufffd.txt" in written

    arguments = loads(given["tool_arguments_wire"])

    assert arguments == {"text": "\ufffd \u3131", "pair": "\U0001f980"}


def test_every_python_value_of_the_case_succeeds_or_is_named() -> None:
    expected = case("payload-non-json-values")["expected"]["values"]
    value: dict[str, Any] = {
        "dec": Decimal("10.10"),
        "when": datetime(2026, 1, 15, 10, 0, tzinfo=timezone.utc),  # noqa: UP017
        "uuid": UUID(int=5),
        "raw": b"\xff\x00",
        "set": {3, 1, 2},
        "tup": (1, 2),
        "big": 2**70,
        "enum": Color.RED,
        "dc": Point(1, 2),
        "path": Path("/x"),
    }
    written = dumps(to_json_value(value))

    assert set(expected) <= set(value)
    assert '"dec":"10.10"' in written
    assert '"when":"2026-01-15T10:00:00+00:00"' in written
    assert f'"big":{2**70}' in written
    assert '"set":[1,2,3]' in written
    for name, bad in {
        "nan": math.nan,
        "inf": -math.inf,
        "keys": {(1, 2): "c"},
        "self": value,
    }.items():
        with pytest.raises(ValueError, match=rf"^\$\.{name}"):
            to_json_value({**value, name: bad} if name != "self" else value | {"self": cycle()})


def test_numbers_in_text_are_read_strictly() -> None:
    assert loads('{"n":1e3,"big":1180591620717411303424}') == {"n": 1000.0, "big": 2**70}


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "{'n': 1}", '{"n": 1,}', '{"n": NaN}', "[Infinity]", "-Infinity", "1e999",
        '{"n": 1} {"n": 2}', "\ufeff{}", "[" * 5000 + "]" * 5000, "[" * 65 + "]" * 65, "1" * 5000,
        '{"a":' * 900 + "1" + "}" * 900, "[" * 100_000, "```json\n{}\n```",
        b"\xff", "[" + "0," * 100_000 + "0]",
    ],
    ids=lambda text: repr(text)[:30],
)  # fmt: skip
def test_text_that_is_not_strict_json_is_refused_without_quoting_it(text: str | bytes) -> None:
    with pytest.raises(ValueError) as caught:
        loads(text)

    assert len(str(caught.value)) < 200


def test_reading_is_bounded_by_bytes() -> None:
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        loads('"' + "é" * 5 + '"', limits=JsonLimits(size=10))


def test_the_last_of_repeated_keys_counts() -> None:
    assert loads(b'{"a":1,"a":2}') == {"a": 2}


def test_writing_is_compact_and_not_escaped() -> None:
    assert dumps({"a": ["é", 1.5, None, True]}) == '{"a":["é",1.5,null,true]}'


@pytest.mark.parametrize("value", [[math.nan], nested(100_000)], ids=["nan", "deep"])
def test_writing_refuses_what_is_not_json(value: Any) -> None:
    with pytest.raises(ValueError):
        dumps(value)
    # Taking apart 100,000 levels at once would recurse in the interpreter itself.
    while value and isinstance(value[0], list):
        value = value[0]


def test_writing_refuses_unknown_types() -> None:
    with pytest.raises(TypeError):
        dumps({"a": object()})


def test_a_callers_mapping_is_copied_as_it_is() -> None:
    given = {"a": (1, 2.5), "b": {"c": None, "d": "x\0"}, "e": True}

    assert check_json_mapping(given, "context") == {
        "a": [1, 2.5],
        "b": {"c": None, "d": "x\0"},
        "e": True,
    }
    assert check_json_mapping(None, "context") == {}
    assert check_json_mapping(freeze({"a": [1]}), "context") == {"a": [1]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "context must be a dict of plain JSON data, not list"),
        ("text", "not str"),
        ({"a": {"when": date(2026, 1, 1)}}, "context.a.when is of type date"),
        ({"a": {1}}, "context.a is of type set"),
        ({"a": b"x"}, "context.a is of type bytes"),
        ({"a": Point(1, 2)}, "context.a is of type Point"),
        ({"a": Order(number="1", total=Decimal(1))}, "context.a is of type Order"),
        ({1: "a"}, "context is an object with a key of type int; keys must be text"),
        ({"a": [math.nan]}, "context.a[0] is NaN"),
        ({"a": "\ud83d"}, "context.a is text with a lone surrogate"),
        ({"a": "x" * (1 << 20)}, "context is more than 1048576 bytes"),
        ({"a": nested(64)}, "nested more than 64 levels"),
        ({"a": nested(5000)}, "nested more than 64 levels"),
    ],
)
def test_a_callers_mapping_is_refused_with_field_and_path(value: Any, message: str) -> None:
    with pytest.raises(InvocationError) as caught:
        check_json_mapping(value, "context")

    assert message in str(caught.value)
    assert caught.value.field == "context"


def test_frozen_data_equals_plain_data_and_refuses_every_change() -> None:
    plain = {"a": [1, {"b": 2}], "c": (3,)}
    frozen = freeze(plain)

    assert frozen == {"a": [1, {"b": 2}], "c": [3]}
    assert freeze(frozen) is frozen
    assert json.dumps(frozen) == '{"a": [1, {"b": 2}], "c": [3]}'
    changes = [
        lambda: frozen.update(x=1), lambda: frozen.pop("a"), lambda: frozen.clear(),
        lambda: frozen.setdefault("x", 1), lambda: frozen.popitem(),
        lambda: frozen.__setitem__("a", 1), lambda: frozen.__ior__({}),
        lambda: frozen["a"].append(1), lambda: frozen["a"].sort(), lambda: frozen["a"].extend([1]),
        lambda: frozen["a"].insert(0, 1), lambda: frozen["a"].__delitem__(0),
        lambda: frozen["a"][1].__setitem__("b", 3), lambda: frozen["a"].__iadd__([1]),
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(TypeError, match="read-only"):
            change()
    copied = thaw(frozen)
    copied["a"].append(1)  # type: ignore[index,union-attr]
    frozen.copy()["x"] = 1

    assert frozen == {"a": [1, {"b": 2}], "c": [3]}


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=20)
    | st.decimals(allow_nan=False)
    | st.datetimes()
    | st.dates()
    | st.uuids()
    | st.binary(max_size=20)
    | st.sampled_from([Color.RED, Level.HIGH, Path("/x")])
)
KEYS = st.text(string.ascii_letters, max_size=5) | st.integers() | st.none() | st.booleans()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.builds(Point, st.integers(), inner)
        | st.frozensets(st.integers() | st.text(max_size=5), max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_whatever_is_accepted_round_trips_as_strict_json(value: Any) -> None:
    refusal = ""
    result = None
    try:
        result = to_json_value(value)
    except ValueError as error:
        refusal = str(error)
    written = dumps(result)

    assert not refusal or "two keys become" in refusal
    assert strict_loads(written) == result
    assert loads(written) == result
    assert loads(written.encode("utf-8")) == result
    assert to_json_value(result) == result
    assert check_json(result) == result
    assert refusal or dumps(to_json_value(value)) == written


@given(st.text(st.characters(codec=None)))
def test_cleaned_text_is_utf8_and_cleaning_again_changes_nothing(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")

    assert clean_text(cleaned) == cleaned
    assert "\0" not in cleaned
