"""The arithmetic of the benchmarks: how far goals are met, and what a fleet is foretold."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.peers import table
from benchmarks.scale_model import BUSY, Cost, busiest, foretold, model, nodes_for

COST = Cost(
    worker_ms=1.0, redis_ms=0.25, scripts=1.4, written_bytes=3000, held_bytes=2000, keys=0.1
)


@pytest.mark.parametrize(
    ("measured", "goal", "most", "margin"),
    [(0.25, 0.5, True, 2.0), (1.0, 0.5, True, 0.5), (4.0, 2.0, False, 2.0), (1.0, 2.0, False, 0.5)],
)
def test_a_margin_of_one_is_a_goal_just_met(
    measured: float, goal: float, most: bool, margin: float
) -> None:
    assert report.Figure("it", measured, "x", goal, most).margin == margin


def test_a_missed_goal_is_marked() -> None:
    rows = [
        (report.Figure("met", 1.0, "ms", 2.0), "a"),
        (report.Figure("late", 3.0, "ms", 2.0), "b"),
        (report.median_of("told", [1.0, 2.0, 30.0]), "c"),
    ]
    met, late, told = report.table(rows).splitlines()[2:]
    assert met == "| met | 1.00 ms | ≤ 2.00 ms | 2.00 | `a` |"
    assert late == "| late | 3.00 ms | ≤ 2.00 ms | 0.67 **missed** | `b` |"
    assert told == "| told | 2.00x (1.00 to 30.0, n=3) | - | - | `c` |"


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    figures = [report.median_of("it", [1.0, 2.0], "ms", least=1.5), report.Figure("that", 3.0)]
    options = report.parser_of("").parse_args(["--json", str(path)])
    report.write(options, figures)
    assert report.read(path) == figures


def test_the_scarcest_thing_sets_the_rate() -> None:
    assert foretold(COST, workers=1, cores=8) == 1000
    assert foretold(COST, workers=9, cores=32) == 4000
    assert foretold(COST, workers=9, cores=2) == 1600


def test_more_nodes_than_partitions_carry_nothing() -> None:
    assert busiest(1, 16, placed=False) == 1
    assert busiest(5, 16, placed=True) == 4 / 16
    assert busiest(5, 16, placed=False) >= busiest(5, 16, placed=True)
    assert nodes_for(100, 100, 16) == "1"
    assert nodes_for(1600, 100, 16).endswith("16")
    assert nodes_for(1700, 100, 16) == ">16"


def test_the_model_says_what_it_is_made_of() -> None:
    text = "\n".join(model(COST, audit_us=100))
    assert f"{4000 * BUSY:,.0f} tasks/s" in text
    assert "12 s of Redis CPU per hour" in text


def test_a_peer_that_is_missing_is_listed_with_the_reason() -> None:
    sizes = {"widths": [100], "turns": [10], "singles": 1, "many": 1, "repeat": 1}
    row = {
        "name": "Other",
        "stores": "all",
        "workers": "one",
        "versions": {"other": "1.0"},
        "missing": {"turns 10": "it keeps none"},
        "singles": {"median": 1.0, "p95": 2.0},
        "many": {"ms": 3.0, "cpu_ms": 4.0, "redis_cpu_ms": 0.0},
        "fan 100": {"s": 5.0, "cpu_ms": 6.0},
        "rss_mb": 70.0,
        "load": (1.0, 2.5),
    }
    text = table.write({"other": row, "gone": {"failed": "no wheel"}}, sizes, ["- Date: now"])
    assert "| Other | 1.00 (2.00) | 3.00 | 4.00 | 0.00 | 5.00 | 6.00 | 70.0 |" in text
    assert "| one | 1.0 to 2.5 |" in text
    assert "- gone: no wheel" in text
    assert "- Other, turns 10: it keeps none" in text
