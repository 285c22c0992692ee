"""The live tree: events in, rows out."""

from __future__ import annotations

import io
import random
import subprocess
import sys

import pytest
from rich.cells import cell_len
from rich.console import Console

from littleghost.cli.live import LiveView
from littleghost.cli.live_rows import fit, going_on
from littleghost.cli.live_tree import KEPT_ENDED, Tree
from littleghost.cli.participants import Participant
from littleghost.cli.progress import Progress
from littleghost.events import StreamEvent
from tests.acceptance.processes import without_styles
from tests.unit.cli.flow import Flow

SAID = {"role": "assistant", "content": [{"type": "text", "text": "billing"}]}
TURN = {"turn": 0, "usage": {"input": 7, "output": 2}, "response": {"message": SAID}}
USE = {"id": "c1", "name": "look", "input": {"order": "481"}}
FOUND = {"tool_use": USE, "result": {"status": "success", "content": "It left."}}
END = StreamEvent("9", "run_stop", {"outcome": "completed", "response": "Thanks."})


def _tree(*events: StreamEvent) -> Tree:
    tree = Tree()
    for number, event in enumerate(events):
        tree.feed(event, float(number))
    return tree


def _drawn(tree: Tree, now: float | None = None, height: int = 50, level: int = 0) -> list[str]:
    return [row.text for row in fit(tree, now, height, level)[0]]


def _support() -> tuple[Flow, list[StreamEvent]]:
    flow = Flow("graph")
    return flow, [
        StreamEvent("1", "run_start", {"run_id": "r"}),
        flow.start("triage"),
        flow.agent("triage", "invocation_start"),
        flow.agent("triage", "model_start", {"turn": 0}),
        flow.agent("triage", "text_delta", {"text": "bill"}),
        flow.agent("triage", "model_stop", TURN),
        flow.agent("triage", "invocation_stop"),
        flow.stop("triage", input=7, output=2),
        flow.fork("triage", "billing", "rules"),
        flow.start("billing"),
        flow.start("rules"),
        flow.agent("billing", "model_start", {"turn": 0}),
        flow.agent("billing", "model_stop", TURN),
        flow.agent("billing", "tool_start", {"tool_use": USE}),
    ]


def test_participants_appear_work_and_end() -> None:
    flow, events = _support()
    assert _drawn(_tree(*events), 14.0) == [
        "⠋ flow  graph · 14.0 s",
        "├─ ✓ triage  5.00 s · 7 in, 2 out  billing",
        "├─ ⠋ billing  5.00 s · 7 in, 2 out · after triage",
        '│     ⠋ look {"order":"481"} is running  1.00 s',
        "└─ ⠋ rules  waits for a worker · 4.00 s · after triage",
    ]
    more = [
        flow.agent("billing", "tool_stop", FOUND),
        flow.agent("billing", "model_start", {"turn": 1}),
        flow.agent("billing", "text_delta", {"text": "one\nIt le"}),
        flow.agent("billing", "text_delta", {"text": "ft."}),
    ]
    assert _drawn(_tree(*events, *more), 18.0)[2:5] == [
        "├─ ⠋ billing  turn 2 writes · 3.00 s · 7 in, 2 out · after triage",
        '│     → look {"order":"481"}  It left.',
        "│     It left.",
    ]
    end = [flow.stop("billing", input=20), flow.stop("rules"), END]
    assert _drawn(_tree(*events, *more, *end)) == [
        "✓ flow  graph · 20.0 s",
        "├─ ✓ triage  5.00 s · 7 in, 2 out  billing",
        "├─ ✓ billing  9.00 s · 20 in, 0 out · after triage  billing",
        '│     → look {"order":"481"}  It left.',
        "└─ ✓ rules  9.00 s · after triage",
    ]


def test_attempts_are_counted_and_their_text_is_withdrawn() -> None:
    flow = Flow("workflow")
    events = [
        flow.start("a"),
        flow.agent("a", "model_start", {"turn": 0}),
        flow.agent("a", "text_delta", {"text": "wrong"}),
        flow.agent("a", "invocation_error"),
        flow.error("a", again=True),
        flow.retry("a", 3.0),
    ]
    tree = _tree(*events)
    assert _drawn(tree)[1:] == ["└─ ! a  waits for its next attempt · attempt 2 · OverloadedError"]
    tree.feed(flow.start("a"), 8.0)
    assert "wrong" not in "".join(_drawn(tree, 9.0))
    tree.feed(flow.error("a", 2), 10.0)
    assert _drawn(tree)[1:] == ["└─ ✗ a  10.0 s · 2 attempts · OverloadedError"]


def test_waits_for_people_and_signals_are_seen() -> None:
    flow = Flow("workflow")
    tree = _tree(flow.start("pay"), flow.agent("pay", "tool_start", {"tool_use": USE}))
    source = flow.agent("pay", "any").data["source"]
    asked = {"id": "0.0-c0.0", "tool_use": USE, "source": source}
    tree.feed(StreamEvent("1", "approval_requested", asked), 2.0)
    row = '      ? look {"order":"481"} waits for a person: 0.0-c0.0'
    assert _drawn(tree, 3.0)[2] == row
    answered = {"id": "0.0-c0.0", "answer": {"verdict": "approved"}, "source": source}
    tree.feed(StreamEvent("2", "approval_answered", answered), 4.0)
    assert _drawn(tree, 4.0)[2] == '      ⠋ look {"order":"481"} is running  3.00 s'
    root = {**source, "operation_id": "r:0", "parent_operation_id": None, "assembly_path": []}
    tree.feed(StreamEvent("3", "signal_awaited", {"name": "paid", "source": root}), 5.0)
    assert _drawn(tree, 5.0)[0] == "⠋ flow  workflow · waits for the signal paid"
    tree.feed(flow.start("ship"), 6.0)
    assert _drawn(tree, 6.0)[0] == "⠋ flow  workflow"


def test_composites_hold_their_own_and_stop_them() -> None:
    outer = Flow("graph")
    inner = Flow("workflow", "report", inside=(outer, "write"))
    events = [
        outer.start("write", "workflow"),
        inner.start("past"),
        inner.agent("past", "model_start", {"turn": 0}),
        inner.start("present"),
        inner.stop("present"),
    ]
    assert _drawn(_tree(*events), 5.0)[1:] == [
        "└─ ⠋ write  workflow · 5.00 s",
        "   ├─ ⠋ past  turn 1 waits for the model · 3.00 s",
        "   └─ ✓ present  1.00 s",
    ]
    tree = _tree(*events, outer.error("write"), inner.agent("past", "text_delta", {"text": "late"}))
    assert _drawn(tree)[2] == "   ├─ - past  4.00 s"
    tree.feed(inner.start("ghost"), 7.0)
    assert "ghost" not in "".join(_drawn(tree))


def test_events_from_the_middle_put_everybody_in_place_without_times() -> None:
    outer = Flow("swarm", "help")
    inner = Flow("graph", "support", inside=(outer, "triage"))
    events = [inner.agent("billing", "text_delta", {"text": "It left."}), inner.stop("rules")]
    assert _drawn(_tree(*events), 100.0) == [
        "⠋ help  swarm",
        "└─ ⠋ triage  graph",
        "   ├─ ⠋ billing  writes",
        "   │     It left.",
        "   └─ ✓ rules",
    ]


def test_whoever_has_no_place_of_its_own_stands_below_its_parent() -> None:
    tree = Tree()
    for operation, parent in (("r:0", None), ("r:0.1", "r:0")):
        source = {"agent_id": operation, "operation_id": operation, "parent_operation_id": parent}
        event = {"type": "model_start", "data": {"turn": 0}}
        tree.feed(StreamEvent("1", "agent_stream", {"source": source, "event": event}), 0.0)
    assert [child.name for child in tree.root.children.values()] == ["r:0.1"]
    assert not tree.is_composite
    assert [row.text for row in going_on(tree, 0.0, 10)] == [
        "⠋ turn 1 waits for the model  0.00 s",
        "  ⠋ r:0.1  turn 1 waits for the model · 0.00 s",
    ]


def _size(place: Participant) -> int:
    return 1 + sum(_size(child) for child in place.children.values())


def test_a_thousand_nodes_take_bounded_memory_and_few_rows() -> None:
    flow, tree = Flow("graph"), Tree()
    level = 0
    for number in range(1000):
        tree.feed(flow.transition(f"n{number - 1}", f"n{number}"), 0.0)
        tree.feed(flow.start(f"n{number}"), 0.0)
        tree.feed(flow.agent(f"n{number}", "tool_start", {"tool_use": USE}), 0.0)
        rows, level = fit(tree, 0.0, 20, level)
        assert len(rows) <= 20
        tree.feed(flow.stop(f"n{number}"), 0.0)
    assert _size(tree.root) == KEPT_ENDED + 1
    assert len(tree._known) == KEPT_ENDED
    assert not tree.root.ways
    assert _drawn(tree, height=5) == [
        "… flow  graph",
        "├─ ✓ 997 ended",
        "├─ ✓ n997  0.00 s · after n996",
        "├─ ✓ n998  0.00 s · after n997",
        "└─ ✓ n999  0.00 s · after n998",
    ]


def test_a_thousand_at_once_are_cut_to_the_height() -> None:
    flow = Flow("workflow")
    tree = _tree(*(flow.start(f"n{number}") for number in range(1000)))
    drawn = _drawn(tree, height=10)
    assert len(drawn) == 10
    assert drawn[-1] == "… and 992 more"


def test_nothing_that_anybody_writes_reaches_the_terminal() -> None:
    bad = "\x1b[2J\u202e"
    flow = Flow(bad, bad)
    use = {"id": bad, "name": bad, "input": {bad: bad}}
    events = [
        flow.transition(bad, bad),
        flow.start(bad, bad),
        flow.agent(bad, "model_start", {"turn": 0}),
        flow.agent(bad, "text_delta", {"text": bad}),
        flow.agent(bad, "tool_start", {"tool_use": use}),
        flow.error(bad),
    ]
    progress = Progress()
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=200)
    view = LiveView(console)
    view.watch(progress)
    for event in events:
        progress.feed(event, 0.0)
        console.print(view.region())
    written = console.file.getvalue()
    assert "\\x1b[2J" in written
    assert "\x1b" not in written
    assert "\u202e" not in written


@pytest.mark.parametrize("width", [8, 20, 40, 100])
def test_no_row_is_wider_than_the_terminal_nor_are_there_too_many(width: int) -> None:
    flow, events = _support()
    wide = "書" * 50
    progress = Progress()
    console = Console(file=io.StringIO(), force_terminal=True, width=width, height=8)
    view = LiveView(console)
    view.watch(progress)
    more = [
        flow.start(wide),
        flow.agent(wide, "model_start", {"turn": 0}),
        flow.agent(wide, "text_delta", {"text": wide + "end"}),
    ]
    for event in [*events, *more]:
        progress.feed(event, 0.0)
        with console.capture() as capture:
            console.print(view.region())
        plain = without_styles(capture.get()).splitlines()
        assert len(plain) <= 6
        assert all(cell_len(line) <= width for line in plain), plain


def test_the_end_of_streaming_text_is_what_is_seen() -> None:
    flow = Flow("graph")
    progress = Progress()
    console = Console(file=io.StringIO(), width=30)
    view = LiveView(console)
    view.watch(progress)
    progress.feed(flow.agent("a", "model_start", {"turn": 0}), 0.0)
    progress.feed(flow.agent("a", "text_delta", {"text": "x" * 100 + " the newest"}), 0.0)
    console.print(view.region())
    assert console.file.getvalue().rstrip().endswith("the newest")


def test_events_in_any_order_never_break_it() -> None:
    flow, events = _support()
    inner = Flow("swarm", "inner", inside=(flow, "rules"))
    events += [inner.start("x"), inner.agent("x", "tool_stop", FOUND), inner.error("x"), END]
    for seed in range(200):
        chosen = random.Random(seed)
        shuffled = [chosen.choice(events) for _ in events]
        progress = Progress()
        for event in shuffled:
            progress.feed(event, 0.0)
            assert len(fit(progress.tree, 0.0, 12)[0]) <= 12


def test_lines_need_no_rich() -> None:
    code = (
        "import sys, littleghost.cli.progress, littleghost.cli.plain; print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
