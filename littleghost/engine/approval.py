"""Calls that a person must allow: who is asked, and what the answer means for the call."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from littleghost.context import Binding
from littleghost.errors import ControlError, ToolError
from littleghost.json_values import dumps
from littleghost.messages import ToolUse
from littleghost.tool import Tool
from littleghost.toolset import Toolset

logger = logging.getLogger("littleghost.engine")


def asks_s(tool: type[Tool], use: ToolUse, toolset: Toolset, binding: Binding) -> float | None:
    """Give the seconds that a person has to allow a call; None when nobody is asked.

    A call whose input is refused asks nobody: it says what is wrong. A method that fails to decide
    asks, since that is the safe side.
    """
    if tool.requires_approval is False or use.error is not None:
        return None
    try:
        is_asked = toolset.build(use.name, binding).is_asked(use.input)
    except ControlError:
        raise
    except ToolError:
        return None
    except Exception:
        logger.exception("tool %r could not say whether it needs approval; asking", use.name)
        is_asked = True
    return tool.approval_timeout_s if is_asked else None


def refusal(answer: Mapping[str, Any] | None) -> str | None:
    """Give what the model is told of a call that a person did not allow; None when it may run."""
    verdict = None if answer is None else answer.get("verdict")
    if answer is None or verdict == "approved":
        return None
    if verdict == "expired":
        return "This call was not made: it needs a person's approval, and nobody answered in time."
    reason = str(answer.get("reason") or "").strip()
    return "This call was rejected by a person, and was not made." + (
        f" The reason given: {reason}" if reason else ""
    )


def with_note(content: str, answer: Mapping[str, Any] | None, use: ToolUse) -> str:
    """Tell the model when a person changed what it had asked for."""
    if answer is None or not answer.get("edited"):
        return content
    given = dumps(use.to_json()["input"])
    return f"(A person changed the input of this call to {given}.)\n{content}"
