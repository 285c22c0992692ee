"""Plans: commands become small JSON, with texts as arguments of their own."""

import json
import math

import pytest

from littleghost.engine import commands as c
from littleghost.journal import keys
from littleghost.journal.plan import Plan, dumps
from littleghost.journal.scripts import PIPELINED, constants, source
from littleghost.usage import Usage


def plan_of(*items: c.Command) -> tuple[dict, list[str]]:
    plan = Plan("0", 10)
    plan.add_all(items)
    document, *payloads = plan.arguments()
    return json.loads(document), payloads


def test_texts_are_arguments_and_the_plan_names_them() -> None:
    fields, payloads = plan_of(
        c.Append(("one", "two"), (1, 2)), c.SetText("said"), c.RecordResult("result")
    )
    assert fields == {"m": [10, 11], "x": 12, "r": 13}
    assert payloads == ["one", "two", "said", "result"]


def test_each_operation_on_state_has_its_operand() -> None:
    fields, payloads = plan_of(
        c.ChangeState(
            [
                {"op": "set", "key": "a", "value": None},
                {"op": "increment", "key": "b", "by": -2.5},
                {"op": "append", "key": "c", "value": [1]},
                {"op": "delete", "key": "d"},
            ]
        )
    )
    assert [row[:2] for row in fields["o"]] == [
        ["set", "a"], ["increment", "b"], ["append", "c"], ["delete", "d"],
    ]  # fmt: skip
    assert payloads == ["null", "-2.5", "[1]", "null"]


def test_odd_counts_are_left_out() -> None:
    usage = Usage(input=-1, output=2, cache_read=math.nan, reasoning=10**30)  # type: ignore[arg-type]
    assert plan_of(c.AddUsage(usage))[0] == {"u": {"output": 2}}


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [math.nan]}])
def test_what_is_no_json_is_refused_before_it_is_sent(value: object) -> None:
    with pytest.raises(ValueError):
        dumps(value)


@pytest.mark.parametrize("delay", [0, 1e-9, 0.0004])
def test_a_retry_waits_at_least_a_moment(delay: float) -> None:
    assert plan_of(c.TryAgain(delay, 1))[0]["again"] == {"delay": 1, "h": {"f": 1}}


def test_keys_of_a_partition_share_a_slot() -> None:
    names = [keys.prefix(7), keys.run(7, "07-x"), keys.session(7, "s", "a")]
    assert all(name.startswith("lg:{07}:") for name in names)


def test_scripts_name_one_key_and_depend_on_the_settings_alone() -> None:
    header = constants(envelope="{}", push_prefix="", grace_ms=1, retention_s=2, session_s=3)
    same = constants(envelope="{}", push_prefix="", grace_ms=1, retention_s=2, session_s=3)
    for name in ("create", "claim", "commit", "release", "stop", "audit", "lead", *PIPELINED):
        assert source(name, header) == source(name, same)
