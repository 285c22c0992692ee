"""The private Redis of a process: found, started, used by nobody else, gone with it."""

import stat
import subprocess
from pathlib import Path

import pytest
import redis

from littleghost import embedded
from littleghost.embedded import PrivateRedis, find_server
from littleghost.errors import ConfigurationError

pytestmark = pytest.mark.redis


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_it_answers_and_goes_with_its_data() -> None:
    server = PrivateRedis()
    try:
        assert server.url == f"unix://{server.directory}/redis.sock"
        mode = (server.directory / "redis.sock").stat().st_mode
        assert stat.S_IMODE(mode) & 0o077 == 0, "nobody else may connect"
        assert stat.S_IMODE(server.directory.stat().st_mode) & 0o077 == 0
        with redis.Redis.from_url(server.url, decode_responses=True) as client:
            assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
            assert client.config_get("appendonly")["appendonly"] == "yes"
            assert client.config_get("port")["port"] == "0"
    finally:
        server.stop()
    assert not server.directory.exists()
    server.stop()


def test_a_directory_of_ones_own_is_kept_with_its_data(tmp_path: Path) -> None:
    for expected in (None, "kept"):
        server = PrivateRedis(tmp_path)
        with redis.Redis.from_url(server.url, decode_responses=True) as client:
            assert client.get("key") == expected
            client.set("key", "kept")
        server.stop()
    assert tmp_path.exists()


def test_a_server_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = '[ "$1" = --version ] && echo "Redis server v=7.2.4" && exit; echo "no room" > redis.log'
    script(tmp_path / "redis-server", f"cd {tmp_path}; {says}; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ConfigurationError, match="did not start: no room"):
        PrivateRedis(tmp_path)


class TestFinding:
    def test_a_server_on_the_path_is_taken_when_it_is_new_enough(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new = script(tmp_path / "redis-server", "echo 'Redis server v=7.2.4 sha=0'")
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        assert find_server() == str(new)

    @pytest.mark.parametrize("says", ["echo 'Redis server v=5.0.7'", "echo what", "exit 3"])
    def test_an_old_or_broken_one_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
    ) -> None:
        script(tmp_path / "redis-server", says)
        new = script(tmp_path / "valkey-server", "echo 'Valkey server v=8.0.1'")
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        assert find_server() == str(new)

    def test_without_any_the_error_names_the_three_ways_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(ConfigurationError) as caught:
            find_server()
        for way in ("LITTLEGHOST_REDIS_URL", "littleghost[embedded]", "PATH"):
            assert way in str(caught.value)


def test_what_is_found_here_runs() -> None:
    text = subprocess.run([find_server(), "--version"], capture_output=True, text=True, check=True)
    assert "v=" in text.stdout
