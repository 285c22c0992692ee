"""What a provider gives is made fit for the journal."""

import pytest

from littleghost.engine.incoming import fit_message
from littleghost.messages import Message, Reasoning, Text

DETAILS = {"origin": "o", "items": [{"id": "r"}]}


def test_what_is_fit_stays_with_its_metadata():
    own = {"service": {"phases": ["commentary"]}}
    message = Message("assistant", (Reasoning("a", details=DETAILS), Text("b")), own)

    assert fit_message(message) == message
    cleaned = fit_message(Message("assistant", (Text("a\ud800"),), own))
    assert (cleaned.text, cleaned.metadata) == ("a\ufffd", own)


@pytest.mark.parametrize("bad", [{"a": object()}, {"a": float("nan")}])
def test_metadata_without_a_json_form_is_left_out(bad):
    assert fit_message(Message("assistant", (Text("a"),), bad)).metadata == {}
