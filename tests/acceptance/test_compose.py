"""The structure of compose.yaml and of what it refers to."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml

from littleghost.celery.roles import ROLES
from tests.acceptance.processes import ROOT, environment, littleghost


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_services_and_their_processes(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"redis", "turns", "tools", "caller"}
    for role in ("turns", "tools"):
        service = services[role]
        assert service["command"][:2] == ["worker", role]
        assert role in ROLES
        assert service["healthcheck"]["test"][-2:] == ["workers.health", "ready"]
        assert service["restart"] == "unless-stopped"
        assert service["read_only"] is True
    for service in services.values():
        assert isinstance(service["command"], list), "the exec form, so that signals arrive"
    assert "ports" not in services["redis"]
    assert services["caller"]["profiles"] == ["example"]


def test_commands_are_understood_by_the_command_line(compose: dict[str, Any]) -> None:
    env = environment(LITTLEGHOST_REDIS_URL="redis://127.0.0.1:1/0")
    for role in ("turns", "tools"):
        done = littleghost(*compose["services"][role]["command"], "--print", env=env)
        assert done.returncode == 0, done.stderr
        assert "-A workers.app worker" in done.stdout


def test_files_it_mounts_and_builds_exist(compose: dict[str, Any]) -> None:
    build = compose["services"]["turns"]["build"]
    dockerfile = (ROOT / build["dockerfile"]).read_text()
    assert re.search(rf"^FROM .* AS {build['target']}$", dockerfile, re.MULTILINE)
    for volume in compose["services"]["redis"]["volumes"]:
        source = volume.partition(":")[0]
        if source.startswith("."):
            assert (ROOT / source).exists()
        else:
            assert source in compose["volumes"]


def test_the_image_runs_as_nobody_special_and_copies_what_exists() -> None:
    text = (ROOT / "deploy/Dockerfile").read_text()
    assert re.search(r"^USER \d+$", text, re.MULTILINE)
    assert re.search(r"^ENTRYPOINT \[", text, re.MULTILINE)
    for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE):
        *sources, _ = shlex.split(line)
        for source in sources:
            assert (ROOT / source).exists(), source


def test_the_redis_of_the_fleet_is_safe() -> None:
    lines = (ROOT / "deploy/redis.conf").read_text().splitlines()
    options = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    assert options["appendonly"] == "yes"
    assert options["appendfsync"] == "everysec"
    assert options["maxmemory-policy"] == "noeviction"
