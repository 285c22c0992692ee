"""A call's values in normal form: checked, copied, cleaned, never changed afterwards."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from littleghost import Image, Invocation, Message, Text
from littleghost.errors import InvocationError
from littleghost.invocation import read_deadline, read_invocation
from littleghost.messages import ToolUse

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def read(message: Any = "Hi", **values: Any) -> Invocation:
    return read_invocation(message, values, NOW)


def test_defaults() -> None:
    invocation = read()
    assert invocation.message == Message("user", (Text("Hi"),))
    assert invocation.history == ()
    assert invocation.context == invocation.metadata == invocation.settings == {}
    assert invocation.run_id == invocation.session_id == ""
    assert invocation.actor_id is None
    assert invocation.deadline_at is None
    assert invocation.include_agent_events is True


def test_the_json_form_reads_back_without_the_history() -> None:
    invocation = read(
        history=["before"],
        context={"a": [1, {"b": None}]},
        metadata={"m": 1},
        settings={"temperature": 0},
        run_id="r1",
        session_id="s1",
        actor_id=7,
        deadline_at=NOW + timedelta(hours=1),
        include_agent_events=False,
        interface="web",
    )
    again = Invocation.from_json(json.loads(json.dumps(invocation.to_json())))
    assert again.history == ()
    for name in ("message", "context", "metadata", "settings", "run_id", "session_id", "fields"):
        assert getattr(again, name) == getattr(invocation, name)
    assert again.actor_id == "7"
    assert again.deadline_at == invocation.deadline_at
    assert again.include_agent_events is False
    assert again.interface == "web"


def test_the_callers_containers_are_copied_and_cannot_be_changed() -> None:
    context = {"list": [1]}
    invocation = read(context=context)
    context["list"].append(2)
    assert invocation.context == {"list": [1]}
    with pytest.raises(TypeError):
        invocation.context["x"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        invocation.actor_id = "x"  # type: ignore[misc]


def test_unknown_names_become_fields_and_unknown_fields_are_named() -> None:
    invocation = read(interface="web")
    assert invocation.interface == "web"
    assert invocation.fields == {"interface": "web"}
    with pytest.raises(AttributeError, match="colour"):
        _ = invocation.colour


def test_text_is_cleaned_wherever_a_message_holds_it() -> None:
    bad, good = "a\ud800b\0", "a\ufffdb\ufffd"
    use = ToolUse(bad, bad, {bad: [bad]}, bad)
    invocation = read(
        {"content": [bad, {"type": "image", "data": "AAAA", "media_type": bad, "name": bad}]},
        history=[Message("assistant", (Text(bad), use), {"k": "v"})],
    )
    assert invocation.message.text == good
    image = invocation.message.content[1]
    assert isinstance(image, Image)
    assert (image.media_type, image.name, image.data) == (good, good, b"\0\0\0")
    [told] = invocation.history[0].tool_uses
    assert (told.id, told.name, dict(told.input)) == (good, good, {good: [good]})
    json.dumps(invocation.message.to_json(), ensure_ascii=False).encode()
    joined = read("\ud83e\udd80")
    assert joined.message.text == "🦀"


def test_only_attachments_make_a_message_without_text_one() -> None:
    image = {"type": "image", "data": "AAAA", "media_type": "image/png"}
    assert read({"content": [image]}).message.text == ""
    with pytest.raises(InvocationError, match="blank"):
        read({"content": ["  "]})


def test_a_message_that_code_built_wrongly_is_read_or_refused_never_passed_on() -> None:
    assert read(Message("user", "abc")).message.text == "abc"  # type: ignore[arg-type]
    with pytest.raises(InvocationError):
        read(Message("user", (object(),)))  # type: ignore[arg-type]
    with pytest.raises(InvocationError):
        read(Message("user", (Text("x"),), {"n": float("nan")}))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (timedelta(seconds=5), NOW + timedelta(seconds=5)),
        (NOW + timedelta(days=1), NOW + timedelta(days=1)),
        ("2026-05-01T13:00:00Z", NOW + timedelta(hours=1)),
        ("2026-05-01T15:00:00+02:00", NOW + timedelta(hours=1)),
        (datetime(2026, 5, 1, 15, tzinfo=timezone(timedelta(hours=2))), NOW + timedelta(hours=1)),
    ],
)
def test_a_deadline_may_be_a_time_a_text_or_a_duration(value: Any, expected: Any) -> None:
    assert read_deadline(value, NOW) == expected


@pytest.mark.parametrize(
    "bad",
    ["", "soon", 5, datetime(2030, 1, 1), "2030-01-01", NOW, timedelta(0), timedelta.max],  # noqa: DTZ001
)
def test_a_deadline_that_cannot_be_met_or_read_is_refused(bad: Any) -> None:
    with pytest.raises(InvocationError) as caught:
        read_deadline(bad, NOW)
    assert caught.value.field == "deadline_at"


def test_deadline_is_another_name_for_deadline_at() -> None:
    assert read(deadline=timedelta(seconds=1)).deadline_at == NOW + timedelta(seconds=1)
    with pytest.raises(InvocationError, match="not both"):
        read(deadline_at=timedelta(seconds=1), deadline=timedelta(seconds=1))


@pytest.mark.parametrize("name", ["session_id", "actor_id", "invocation_id"])
def test_ids_of_the_application_are_text_or_numbers_of_a_bounded_length(name: str) -> None:
    assert getattr(read(**{name: 481}), name) == "481"
    assert getattr(read(**{name: "x" * 256}), name) == "x" * 256
    for bad in ("", "x" * 257, True, 1.5, b"x", [], "\ud800", "a\0"):
        with pytest.raises(InvocationError) as caught:
            read(**{name: bad})
        assert caught.value.field == name
