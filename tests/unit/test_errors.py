"""One tree of errors, with stable codes and safe sentences."""

import pytest

from littleghost import errors
from littleghost.errors import (
    LittleGhostError,
    ProviderError,
    UnsupportedInputError,
    is_retryable,
)
from littleghost.failure import SAFE_SENTENCES, safe_message


def tree(kind: type[LittleGhostError]) -> list[type[LittleGhostError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in tree(child))]


OURS = [kind for kind in tree(LittleGhostError) if kind.__module__ == errors.__name__]


def test_every_error_has_a_code_of_its_own_and_is_described() -> None:
    codes = [kind.code for kind in OURS]
    assert len(set(codes)) == len(codes)
    assert all(code.replace("_", "").isalpha() and code.islower() for code in codes)
    assert all(kind.__doc__ and kind.__name__.endswith("Error") for kind in OURS)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    assert errors.__doc__ is not None
    for kind in OURS:
        assert kind.__name__ in errors.__doc__, kind


@pytest.mark.parametrize("kind", OURS)
def test_a_callers_sentence_never_holds_the_errors_own_text(kind: type[LittleGhostError]) -> None:
    """P8."""
    shown = safe_message(kind("token=hunter2"))
    if kind is UnsupportedInputError:
        assert shown == "token=hunter2"
    else:
        assert "hunter2" not in shown
        assert shown.endswith(".")


def test_an_error_of_anybody_else_gets_the_general_sentence() -> None:
    assert safe_message(ValueError("hunter2")) == safe_message(LittleGhostError())
    assert SAFE_SENTENCES[errors.CancelledError] == safe_message(errors.CancelledError("x"))


def test_subclasses_of_the_application_share_the_sentence_of_their_base() -> None:
    class OwnLimitError(errors.TurnLimitError):
        pass

    assert safe_message(OwnLimitError("x")) == SAFE_SENTENCES[errors.TurnLimitError]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.RateLimitedError("x"), True),
        (errors.OverloadedError("x"), True),
        (errors.StreamError("x"), True),
        (errors.ProviderTimeoutError("x"), True),
        (errors.JournalUnavailableError("x"), True),
        (errors.RateLimitedError("x", retryable=False), False),
        (ProviderError("x", retryable=True), True),
        (ProviderError("x"), False),
        (errors.AuthenticationError("x"), False),
        (errors.CancelledError("x"), False),
        (errors.ToolError("x"), False),
        (TimeoutError(), False),
    ],
)
def test_what_may_pass_by_itself_is_retryable(error: Exception, expected: bool) -> None:
    assert is_retryable(error) is expected


def test_control_errors_are_no_tool_errors() -> None:
    assert not issubclass(errors.ControlError, errors.ToolError)
    assert issubclass(errors.ToolTimeoutError, errors.ToolError)
