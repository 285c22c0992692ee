"""An error as data: everything that was known, bounded, and valid everywhere."""

import json

from littleghost import Failure
from littleghost.errors import DeadlineExceededError, RateLimitedError


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_an_error_of_ours_keeps_its_code_and_its_safe_sentence() -> None:
    failure = Failure.of(raised(DeadlineExceededError("after 5 s")))
    assert failure.code == "deadline_exceeded"
    assert failure.message == "The request ran out of time."
    assert failure.type == "DeadlineExceededError"
    assert failure.detail == "after 5 s"
    assert "raise error" in failure.traceback


def test_any_other_error_has_the_general_code_and_no_secret_in_its_message() -> None:
    failure = Failure.of(raised(KeyError("hunter2")))
    assert (failure.code, failure.type, failure.detail) == ("error", "KeyError", "'hunter2'")
    assert "hunter2" not in failure.message


def test_without_a_traceback_there_is_none() -> None:
    assert Failure.of(RateLimitedError("x")).traceback == ""


def test_causes_are_told_in_the_traceback_only() -> None:
    try:
        try:
            raise ValueError("the root")
        except ValueError as error:
            raise RuntimeError("the top") from error
    except RuntimeError as error:
        failure = Failure.of(error)
    assert failure.detail == "the top"
    assert "the root" in failure.traceback


def test_long_texts_are_cut_in_the_middle() -> None:
    failure = Failure.of(raised(ValueError("A" * 50_000 + "Z" * 50_000)))
    assert len(failure.detail) < 2_100
    assert failure.detail.startswith("AAA")
    assert failure.detail.endswith("ZZZ")
    assert len(failure.traceback) < 16_100


def test_text_that_no_store_takes_is_replaced() -> None:
    failure = Failure.of(raised(ValueError("lone \ud800 nul \0 café")))
    json.dumps(failure.to_json(), ensure_ascii=False).encode()
    assert "\0" not in failure.detail
    assert failure.detail.endswith("café")


def test_an_error_that_cannot_say_itself_is_described_all_the_same() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    failure = Failure.of(raised(SilentError()))
    assert failure.type == "SilentError"
    assert "RuntimeError" in failure.detail


def test_exceptions_that_are_no_errors_and_groups_are_described() -> None:
    assert Failure.of(raised(SystemExit(3))).type == "SystemExit"
    group = Failure.of(raised(ExceptionGroup("many", [ValueError("one"), KeyError("two")])))
    assert group.type == "ExceptionGroup"
    assert "one" in group.traceback


def test_the_json_form_reads_back() -> None:
    failure = Failure.of(raised(ValueError("x")))
    assert Failure.from_json(failure.to_json()) == failure
    assert Failure.from_json({"code": "x", "later": 1}) == Failure(code="x", message="")
    assert "traceback" not in Failure(code="x", message="y").to_json()
