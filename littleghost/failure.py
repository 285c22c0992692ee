"""An error as data, so that it outlives the process it was raised in."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from littleghost.errors import (
    CancelledError,
    CleanupError,
    DeadlineExceededError,
    LittleGhostError,
    MalformedToolCallError,
    OutputLimitError,
    ToolCallLimitError,
    TurnLimitError,
    UnsupportedInputError,
)

# Nothing inside a run goes on after one of these: no further attempt, no error edge.
NEVER_RECOVERED = (CancelledError, DeadlineExceededError, CleanupError)
_MAX_DETAIL = 2_000
_MAX_TRACEBACK = 16_000
_MAX_BASES = 12

SAFE_SENTENCES: dict[type[LittleGhostError], str] = {
    OutputLimitError: "The answer was cut at the model's output limit; please narrow the request.",
    MalformedToolCallError: "The model asked for a tool in an invalid way; please try again.",
    CleanupError: "The request could not be stopped cleanly.",
    CancelledError: "The request was cancelled.",
    DeadlineExceededError: "The request ran out of time.",
    TurnLimitError: "The request needed more steps than are allowed.",
    ToolCallLimitError: "The request needed more tool calls than are allowed.",
}


def safe_message(error: BaseException) -> str:
    """Give the sentence about an error that any caller may be shown.

    Returns:
        The error's own text for `UnsupportedInputError`; a fixed sentence otherwise.
    """
    if isinstance(error, UnsupportedInputError):
        return str(error)
    for kind in type(error).__mro__:
        sentence = SAFE_SENTENCES.get(kind)
        if sentence:
            return sentence
    return "The request could not be completed; please try again."


def _said(error: BaseException) -> str:
    """Give an exception's own message; the code that says it may fail as well."""
    try:
        return str(error)
    except Exception as trouble:  # noqa: BLE001 - an error about an error must not hide it
        return f"(its message cannot be read: {type(trouble).__name__})"


def _clean(text: str, limit: int) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    return text if len(text) <= limit else text[: limit // 2] + " … " + text[-limit // 2 :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run did not complete.

    JSON: the same names; `code` and `message` may be shown to anyone, the rest is for the
    application's developers and operators.

    Attributes:
        code: Stable, from the error tree; `error` for an exception of the application's own.
        message: One safe sentence.
        type: The exception's class name.
        detail: The exception's own message.
        traceback: The traceback's text, or empty.
        bases: Names of the exception's class and its bases, so that it can be matched elsewhere.
    """

    code: str
    message: str
    type: str = ""
    detail: str = ""
    traceback: str = ""
    bases: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe an exception."""
        lines = traceback.format_exception(error) if error.__traceback__ else []
        return cls(
            code=error.code if isinstance(error, LittleGhostError) else "error",
            message=safe_message(error),
            type=type(error).__name__,
            detail=_clean(_said(error), _MAX_DETAIL),
            traceback=_clean("".join(lines), _MAX_TRACEBACK),
            bases=tuple(map(name_of_class, type(error).__mro__))[:_MAX_BASES],
        )

    def is_one_of(self, classes: Iterable[type[BaseException]]) -> bool:
        """Say whether the exception was of one of some classes, by name, bases included."""
        return any(name_of_class(item) in self.bases for item in classes)

    def to_json(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        """Read a failure; unknown fields are ignored."""
        bases: Any = data.get("bases")
        return cls(
            **{
                name: str(data.get(name, ""))
                for name in ("code", "message", "type", "detail", "traceback")
            },
            bases=tuple(map(str, bases)) if isinstance(bases, list | tuple) else (),
        )


def name_of_class(cls: type) -> str:
    """Name a class so that another process can match it: classes themselves do not travel."""
    return f"{cls.__module__}.{cls.__qualname__}"
