"""Limits have sensible defaults, and refuse what is none."""

import pytest

from littleghost import Limits
from littleghost.errors import DefinitionError


def test_the_documented_defaults() -> None:
    limits = Limits()
    assert limits.max_turns == 100
    assert limits.max_tool_calls == 1_000
    assert limits.max_tool_result_tokens == 10_000
    assert limits.max_parallel_calls == 8
    assert limits.model_settings == {}


@pytest.mark.parametrize("name", ["max_turns", "max_tool_calls"])
def test_none_removes_a_limit_that_may_be_removed(name: str) -> None:
    assert getattr(Limits(**{name: None}), name) is None


@pytest.mark.parametrize(
    "name",
    ["max_turns", "max_tool_calls", "max_tool_result_tokens", "max_parallel_calls"],
)
@pytest.mark.parametrize("bad", [0, -1, 1.0, "5", True, float("inf")])
def test_what_is_no_positive_count_is_refused_by_name(name: str, bad: object) -> None:
    with pytest.raises(DefinitionError, match=name):
        Limits(**{name: bad})


@pytest.mark.parametrize("name", ["max_tool_result_tokens", "max_parallel_calls"])
def test_some_limits_cannot_be_removed(name: str) -> None:
    with pytest.raises(DefinitionError, match=name):
        Limits(**{name: None})


def test_no_retries_may_be_wanted() -> None:
    assert Limits(max_model_retries=0).max_model_retries == 0
    with pytest.raises(DefinitionError, match="max_model_retries"):
        Limits(max_model_retries=-1)


def test_the_json_form_names_everything() -> None:
    assert Limits(max_turns=3).to_json() | {"model_settings": 0} == {
        "max_turns": 3,
        "max_tool_calls": 1_000,
        "max_tool_result_tokens": 10_000,
        "max_parallel_calls": 8,
        "max_model_retries": 4,
        "model_settings": 0,
    }
