"""What a cluster's URL means, and which of its errors pass by themselves."""

from __future__ import annotations

import pytest
from redis.exceptions import (
    AskError,
    ClusterDownError,
    ClusterError,
    MovedError,
    RedisClusterException,
    ResponseError,
    SlotNotCoveredError,
    TryAgainError,
)

from littleghost.errors import ConfigurationError, JournalError, JournalUnavailableError
from littleghost.journal.cluster import split_url
from littleghost.journal.scripts import translate
from littleghost.settings import Settings, is_cluster


@pytest.mark.parametrize(
    ("url", "first", "others"),
    [
        ("redis+cluster://a:7000", "redis://a:7000", []),
        ("redis+cluster://a/", "redis://a", []),
        ("redis+cluster://a:7000,b:7001/0", "redis://a:7000", [("b", 7001)]),
        ("redis+cluster://a,b", "redis://a", [("b", 6379)]),
        (
            "rediss+cluster://me:p%40ss@a:1,[::1]:2/?ssl_cert_reqs=none",
            "rediss://me:p%40ss@a:1?ssl_cert_reqs=none",
            [("::1", 2)],
        ),
    ],
)
def test_a_url_names_nodes(url: str, first: str, others: list[tuple[str, int]]) -> None:
    assert is_cluster(url)
    assert split_url(url) == (first, others)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis+cluster://", "host:port"),
        ("redis+cluster://a:1,", "host:port"),
        ("redis+cluster://a:x", "'a:x'"),
        ("redis+cluster://a:1/3", "database '3'"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused(url: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        split_url(url)


@pytest.mark.parametrize("url", [None, "redis://a", "unix:///a", "amqp://a"])
def test_other_urls_name_no_cluster(url: str | None) -> None:
    assert not is_cluster(url)


def test_a_cluster_needs_a_broker_of_its_own() -> None:
    url = "redis+cluster://a:7000"
    with pytest.raises(ConfigurationError, match="LITTLEGHOST_BROKER_URL"):
        Settings(redis_url=url)
    with pytest.raises(ConfigurationError, match="broker_url"):
        Settings(redis_url="redis://a", broker_url=url)
    assert not Settings(redis_url=url, broker_url="redis://b").same_redis


@pytest.mark.parametrize(
    "error",
    [
        MovedError("12 127.0.0.1:7001"),
        AskError("12 127.0.0.1:7001"),
        ClusterDownError("The cluster is down"),
        ClusterError("TTL exhausted."),
        TryAgainError("Multiple keys request during rehashing of slot"),
        SlotNotCoveredError("Slot 3 is not covered"),
        RedisClusterException("Redis Cluster cannot be connected."),
        ResponseError("Script attempted to access a non local key in a cluster node script: ab"),
        ResponseError("UNBLOCKED force unblock from blocking operation"),
    ],
)
def test_what_a_changing_cluster_says_passes(error: Exception) -> None:
    assert isinstance(translate(error), JournalUnavailableError)


def test_a_refused_command_does_not_pass() -> None:
    refused = translate(ResponseError("WRONGTYPE Operation against a key"))
    assert isinstance(refused, JournalError)
    assert not isinstance(refused, JournalUnavailableError)
