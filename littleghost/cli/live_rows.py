"""Draws a run's participants as rows that fit a height. Pure; the rows' texts are safe to print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from littleghost.cli.escape import visible
from littleghost.cli.live_tree import Tree
from littleghost.cli.output import duration
from littleghost.cli.participants import Call, Participant
from littleghost.usage import Usage

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_S = 10
# Lines of streaming text that are shown of a lone agent.
TEXT_LINES = 8
MARKS = {"done": "✓", "failed": "✗", "stopped": "-", "again": "!", "running": "…"}
STYLES = {"done": "green", "failed": "red", "stopped": "dim", "again": "yellow", "running": "cyan"}
_ARGUMENT_CHARS = 60


@dataclass(frozen=True, slots=True)
class Row:
    """A row; one that is too wide is cut.

    Attributes:
        parts: Pieces of text and their styles.
        newest: Text behind them whose end matters: it is cut at its beginning.
        lines: How many lines of `newest` are shown.
    """

    parts: tuple[tuple[str, str], ...]
    newest: str = ""
    lines: int = 1

    @property
    def text(self) -> str:
        """All of it, without styles."""
        return "".join(text for text, _ in self.parts) + self.newest


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is shown.

    Attributes:
        calls: Whether the calls of participants that have ended are.
        ended: How many of its ended children each participant shows; None is all that are kept.
        text: Whether streaming text is.
    """

    calls: bool = False
    ended: int | None = None
    text: bool = True


LEVELS = (
    Detail(calls=True),
    Detail(),
    Detail(ended=3),
    Detail(ended=0),
    Detail(ended=0, text=False),
)


def fit(tree: Tree, now: float | None, height: int, level: int = 0) -> tuple[list[Row], int]:
    """Draw a composite's tree with as much detail as fits.

    Args:
        now: The watcher's clock, in seconds; None draws it standing still.
        height: How many rows there may be, at least 2.
        level: Where in `LEVELS` to begin: pass on what came back, and the picture does not jump.

    Returns:
        The rows, and the level they are of.
    """
    last = len(LEVELS) - 1
    for number in range(min(level, last), last):
        drawn = list(islice(_rows(tree.root, "", "", now, LEVELS[number]), height + 1))
        if len(drawn) <= height:
            return drawn, number
    rows = list(_rows(tree.root, "", "", now, LEVELS[last]))
    if len(rows) > height:
        hidden = len(rows) - height + 1
        rows = [*rows[: height - 1], Row(((f"… and {hidden} more", "dim"),))]
    return rows, last


def going_on(tree: Tree, now: float, height: int) -> list[Row]:
    """Draw what a lone agent and those it has asked are doing right now."""
    root, rows = tree.root, list[Row]()
    if root.turn is not None:
        doing, took = _doing(root, now)
        rows.append(Row(((f"{_frame(now)} {doing}", "cyan"), took)))
        if root.turn.text:
            rows.append(Row((("    ", ""),), root.turn.text, max(1, min(TEXT_LINES, height // 2))))
    rows += _calls(root, "  ", now, Detail())
    for child in list(root.children.values()):
        if not child.has_ended:
            rows += _rows(child, "  ", "  ", now, Detail(ended=0))
    hidden = sum(row.lines for row in rows) - height
    if hidden > 0:
        rows = [
            *rows[: max(1, len(rows) - hidden - 1)],
            Row(((f"… and {hidden + 1} more", "dim"),)),
        ]
    return rows


def tokens(usage: Usage) -> str:
    """Write token counts for people."""
    out = usage.output + usage.reasoning
    return f"{usage.total - out} in, {out} out"


def _rows(
    place: Participant, lead: str, stem: str, now: float | None, detail: Detail
) -> Iterator[Row]:
    yield _head(place, lead, now)
    children = list(place.children.values())
    ended = [child for child in children if child.has_ended]
    hidden = 0 if detail.ended is None else max(0, len(ended) - detail.ended)
    gone = {child.key for child in ended[:hidden]}
    shown = [child for child in children if child.key not in gone]
    hidden += place.folded
    rail = stem + ("│  " if shown or hidden else "   ")
    yield from _calls(place, rail, now, detail)
    if detail.text and place.turn is not None and place.turn.text.strip() and not place.has_ended:
        last = place.turn.text.strip().rsplit("\n", 1)[-1]
        yield Row(((rail, "dim"),), visible(last.replace("\t", " ")))
    if hidden:
        yield Row((((f"{stem}{'├' if shown else '└'}─ "), "dim"), (f"✓ {hidden} ended", "dim")))
    for number, child in enumerate(shown):
        is_last = number == len(shown) - 1
        lead, below = (f"{stem}└─ ", f"{stem}   ") if is_last else (f"{stem}├─ ", f"{stem}│  ")
        yield from _rows(child, lead, below, now, detail)


def _head(place: Participant, lead: str, now: float | None) -> Row:
    state = place.state
    style = STYLES[state]
    mark = MARKS[state]
    parts = [(lead, "dim")]
    is_live = now is not None and state == "running"
    if now is not None and is_live:
        mark = _frame(now)
    parts += [(f"{mark} ", style), (place.name or "run", "bold")]
    facts: list[str] = []
    if place.kind not in ("", "agent"):
        facts.append(place.kind)
    doing, took = _doing(place, now)
    if doing and not place.has_ended:
        facts.append(doing)
    facts += [fact for fact in (took[0].strip(), _tries(place), _spent(place)) if fact]
    if place.after:
        facts.append(f"after {place.after}")
    if place.why and state in ("failed", "again"):
        facts.append(place.why)
    parts.append((f"  {' · '.join(facts)}" if facts else "", "dim"))
    if place.state == "done" and place.said and not place.children:
        parts.append((f"  {place.said}", ""))
    return Row(tuple(parts))


def _doing(place: Participant, now: float | None) -> tuple[str, tuple[str, str]]:
    """Say what somebody is doing, and for how long."""
    turn, began, doing = place.turn, place.began, ""
    if place.state == "again":
        doing = "waits for its next attempt"
    elif place.waits:
        doing = f"waits for the signal {place.waits}"
    elif turn is not None:
        began = turn.began if turn.began is not None else began
        what = "writes" if turn.text else "thinks" if turn.reasoning else "waits for the model"
        doing = f"turn {turn.number} {what}" if turn.number else what
    elif not place.calls and not place.children and place.kind in ("", "agent"):
        doing = "waits for a worker"
    if place.has_ended:
        return doing, (f"  {duration(place.seconds)}" if place.seconds is not None else "", "dim")
    if now is None or began is None or place.state == "again":
        return doing, ("", "dim")
    return doing, (f"  {duration(now - began)}", "dim")


def _tries(place: Participant) -> str:
    if place.attempt == 1:
        return ""
    return f"{place.attempt} attempts" if place.has_ended else f"attempt {place.attempt}"


def _spent(place: Participant) -> str:
    return tokens(place.usage) if place.usage.total else ""


def _calls(place: Participant, rail: str, now: float | None, detail: Detail) -> Iterator[Row]:
    for call in list(place.calls.values()):
        has_ended = call.state in ("ok", "error")
        if not has_ended or (detail.calls and place.kind in ("", "agent")):
            yield _call_row(call, rail, now)


def _call_row(call: Call, rail: str, now: float | None) -> Row:
    arguments = call.arguments
    if len(arguments) > _ARGUMENT_CHARS:
        arguments = arguments[: _ARGUMENT_CHARS - 1] + "…"
    what = f"{call.name} {arguments}"
    if call.state == "asks":
        asks = f"? {what} waits for a person: {call.asked}"
        return Row(((rail, "dim"), (asks, "bold yellow")))
    if call.state == "running":
        took = (
            f"  {duration(now - call.began)}" if now is not None and call.began is not None else ""
        )
        mark = "…" if now is None else _frame(now)
        return Row(((rail, "dim"), (f"{mark} {what} is running", "yellow"), (took, "dim")))
    mark, style = ("→", "yellow") if call.state == "ok" else ("✗", "red")
    return Row(((rail, "dim"), (f"{mark} ", style), (what, ""), (f"  {call.result}", "dim")))


def _frame(now: float) -> str:
    return FRAMES[int(now * FRAMES_PER_S) % len(FRAMES)]
