"""Settings come from one place, and a wrong one is named."""

from dataclasses import FrozenInstanceError, fields

import pytest

from littleghost.errors import ConfigurationError
from littleghost.settings import PREFIX, Settings


def test_without_anything_the_embedded_default_is_meant() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings()
    assert settings.is_embedded
    assert settings.same_redis


def test_every_field_has_a_variable() -> None:
    samples = {"bool": "0", "int": "7", "float": "9.5", "tuple[str, ...]": "a.b, c ,,"}
    special = {"heartbeat_s": "0.5", "definition_mismatch": "refuse"}
    environment = {
        PREFIX + item.name.upper(): special.get(item.name, samples.get(str(item.type), "text"))
        for item in fields(Settings)
    }
    settings = Settings.from_environment(environment)
    assert settings.embedded is False
    assert settings.partitions == 7
    assert settings.lease_s == 9.5
    assert settings.imports == ("a.b", "c")
    assert settings.redis_url == settings.broker_url == "text"
    assert settings.definition_mismatch == "refuse"


@pytest.mark.parametrize("text", ["1", "true", "YES", " 1 "])
def test_a_flag_may_be_said_in_several_ways(text: str) -> None:
    assert Settings.from_environment({"LITTLEGHOST_EMBEDDED": text}).embedded


def test_a_blank_variable_counts_as_unset() -> None:
    assert Settings.from_environment({"LITTLEGHOST_REDIS_URL": "  "}).redis_url is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EMBEDDED", "perhaps"),
        ("PARTITIONS", "many"),
        ("LEASE_S", "soon"),
        ("PARTITIONS", "1.5"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"LITTLEGHOST_{name}.*{value}"):
        Settings.from_environment({PREFIX + name: value})


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("partitions", {"partitions": 0}),
        ("partitions", {"partitions": 101}),
        ("heartbeat_s", {"heartbeat_s": 2.0, "lease_s": 3.0}),
        ("definition_mismatch", {"definition_mismatch": "ignore"}),
    ],
)
def test_a_value_that_cannot_work_is_refused(field: str, changes: dict) -> None:
    with pytest.raises(ConfigurationError, match=field):
        Settings(**changes)


def test_queues_are_named_by_kind_and_lane() -> None:
    settings = Settings(queue_prefix="team")
    assert settings.queue("turns") == "team.turns"
    assert settings.queue("tools", "batch") == "team.tools.batch"


def test_scripts_push_messages_only_where_broker_and_journal_are_one() -> None:
    url = "redis://127.0.0.1/0"
    assert Settings(redis_url=url).same_redis
    assert Settings(redis_url=url, broker_url=url).same_redis
    assert not Settings(redis_url=url, broker_url="amqp://x").same_redis


def test_addresses_with_passwords_are_not_shown_and_nothing_changes() -> None:
    settings = Settings(redis_url="redis://:hunter2@h/0", broker_url="amqp://u:hunter2@h")
    assert "hunter2" not in repr(settings)
    with pytest.raises(FrozenInstanceError):
        settings.partitions = 3  # type: ignore[misc]
    assert settings.with_(partitions=3).partitions == 3
