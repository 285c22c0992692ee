"""P1-P12 at once: a mixed load of every kind of run, while everything around it fails.

FIRE_SECONDS is how long each variant is under fire, FIRE_SEEDS which seeds it is fired with.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.under_fire.field import burn, field
from tests.integration.rabbit import find_script

SECONDS = float(os.environ.get("FIRE_SECONDS", "14"))
SEEDS = [int(seed) for seed in os.environ.get("FIRE_SEEDS", "20261130").split(",")]
WIDTH = int(os.environ.get("FIRE_WIDTH", "10"))

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(SECONDS + 400),
    pytest.mark.parametrize("seed", SEEDS),
]

WORKERS = ["kill", "kill_main", "term", "freeze", "child", "lead", "usurp", "midsweep"]


def fight(tmp_path: Path, seed: int, faults: list[str], thieves: int = 0, **parts: bool) -> None:
    chosen = {"rabbit": False, "proxy": False, "storm": False, **parts}
    with field(tmp_path, seed, **chosen) as made:
        try:
            print(burn(made, faults, SECONDS, thieves, WIDTH))
        finally:
            # Shown when the test fails, or with -s.
            print(f"seed {seed}", *made.report, sep="\n")


def test_redis_and_workers_die_and_the_broker_loses_repeats_and_delays(
    tmp_path: Path, seed: int
) -> None:
    fight(tmp_path, seed, [*WORKERS, "redis", "flush"], thieves=2)


@pytest.mark.skipif(
    find_script() is None and not os.environ.get("CI"), reason="RabbitMQ is not installed"
)
def test_rabbitmq_loses_repeats_and_delays(tmp_path: Path, seed: int) -> None:
    fight(tmp_path, seed, [*WORKERS, "flush", "rabbit"], thieves=2, rabbit=True)


def test_the_model_server_has_storms(tmp_path: Path, seed: int) -> None:
    fight(tmp_path, seed, ["storm", "storm", "storm", "kill", "freeze", "child"], storm=True)


def test_redis_refuses_stalls_and_cuts(tmp_path: Path, seed: int) -> None:
    fight(tmp_path, seed, ["proxy", "proxy", "proxy", "kill", "term"], proxy=True)
