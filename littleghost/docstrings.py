"""Reading what a docstring says about parameters."""

from __future__ import annotations

import inspect
import re
from typing import Final

_SECTION: Final = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*")
# "name: text", "name (type): text" and "*name: text", as Google's style has it.
_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


def parameter_texts(docstring: str | None) -> dict[str, str]:
    """Give the descriptions in a Google-style `Args:` section.

    Args:
        docstring: A function's docstring; None has no descriptions.

    Returns:
        Texts by parameter name, each on one line.
    """
    lines = iter(inspect.cleandoc(docstring or "").splitlines())
    for line in lines:
        if _SECTION.fullmatch(line):
            break
    texts: dict[str, str] = {}
    indent, name = 0, ""
    for line in lines:
        text = line.strip()
        if not text:
            continue
        depth = len(line) - len(line.lstrip())
        if depth == 0:
            break
        indent = indent or depth
        entry = _ENTRY.fullmatch(text) if depth <= indent else None
        if entry:
            name = entry[1]
            texts[name] = entry[2]
        elif name:
            texts[name] = f"{texts[name]} {text}".strip()
    return {name: text for name, text in texts.items() if text}
