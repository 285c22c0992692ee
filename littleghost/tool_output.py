"""What a tool call gives: one outcome, and the text of it that the model reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from littleghost.errors import ToolError
from littleghost.json_values import JsonValue, clean_text, dumps, to_json_value, utf8_size

# The estimate used for every budget of tokens, in bytes of UTF-8.
BYTES_PER_TOKEN: Final = 4
MAX_RESULT_TOKENS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """How a tool call ended.

    Attributes:
        content: The text for the model: bounded, clean, safe to show.
        status: "success" or "error".
        error: The exception behind an error, for the application only, never for the model.
        value: The whole result as JSON data, for callers in this process. It is as large as the
            tool made it, so it must not be stored.
    """

    content: str
    status: Literal["success", "error"] = "success"
    error: BaseException | None = field(default=None, repr=False)
    value: JsonValue = field(default=None, repr=False)

    @classmethod
    def success(cls, result: Any, *, max_tokens: int | None = MAX_RESULT_TOKENS) -> ToolOutcome:
        """Record what a tool returned.

        Text stays as it is, None is empty text, other JSON data is written as JSON; see
        `json_values.to_json_value` for what counts as data. Anything else that can say itself
        with `str()` does so.

        Args:
            result: What the tool returned.
            max_tokens: Where the text for the model is cut; None for nowhere.

        Returns:
            A success, or an error that names the place when the result has no JSON form.
        """
        try:
            # Text has no limit here: it is cut, and the rest of it costs nothing.
            value = clean_text(result) if type(result) is str else to_json_value(result)
        except ValueError as error:
            if not _says_itself(result):
                refused = ToolError(f"The tool ran, but its result cannot be shown: {error}")
                return cls.failure(str(refused), refused)
            value = clean_text(str(result))
        content = value if isinstance(value, str) else "" if value is None else dumps(value)
        if max_tokens is not None:
            content = cut_middle(content, max_tokens)
        return cls(content=content, value=value)

    @classmethod
    def failure(
        cls, text: str, error: BaseException, *, max_tokens: int | None = MAX_RESULT_TOKENS
    ) -> ToolOutcome:
        """Record that a tool failed.

        Args:
            text: What the model is told.
            error: What happened.
            max_tokens: Where the text is cut; None for nowhere.
        """
        text = clean_text(text)
        content = text if max_tokens is None else cut_middle(text, max_tokens)
        return cls(content=content, status="error", error=error)

    def cut(self, max_tokens: int | None) -> ToolOutcome:
        """Give the same outcome with its text cut; None for nowhere."""
        content = (
            clean_text(self.content) if max_tokens is None else cut_middle(self.content, max_tokens)
        )
        return replace(self, content=content)


def _says_itself(result: Any) -> bool:
    """Whether `str()` of an object that is no data says something; object's own is an address."""
    if isinstance(result, BaseException | type) or hasattr(result, "__iter__"):
        return False
    kind = type(result)
    if hasattr(kind, "__dataclass_fields__") or hasattr(kind, "model_dump"):
        return False
    return kind.__module__ != "builtins" and kind.__str__ is not object.__str__


def cut_middle(text: str, max_tokens: int) -> str:
    """Shorten text in the middle, so that its beginning and its end stay.

    Args:
        text: Text of any length; what is kept of it is cleaned.
        max_tokens: The budget in tokens of 4 bytes, 1 or more; the marker counts in it.

    Returns:
        The text itself when it fits. Otherwise its beginning, a marker that names the tokens
        removed and the full size, and its end, cut between characters.

    Cost: time grows with the text, memory with the budget.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens {max_tokens!r} must be 1 or more")
    budget = max_tokens * BYTES_PER_TOKEN
    if len(text) <= budget:
        text = clean_text(text)
        if len(text) * 4 <= budget or utf8_size(text) <= budget:
            return text
    size = utf8_size(text)
    marker = _marker(_tokens(size), size)
    kept = budget - len(marker)
    if kept < 2:
        return _head(text, budget)
    marker = _marker(_tokens(size - kept), size)
    first = kept - kept // 2
    return _head(text, first) + marker + _tail(text, kept - first)


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _marker(removed: int, size: int) -> str:
    return f"\n[... {removed} tokens removed here; the whole result has {size} bytes ...]\n"


def _head(text: str, size: int) -> str:
    # A character takes a byte at least, so `size` characters always hold enough.
    return clean_text(text[:size]).encode()[:size].decode("utf-8", "ignore")


def _tail(text: str, size: int) -> str:
    return clean_text(text[-size:]).encode()[-size:].decode("utf-8", "ignore") if size else ""
