import random
import re

import pytest
from wire_server import load_case

from littleghost.errors import InvalidRequestError
from littleghost.providers.tool_names import WireNames, wire_name

CASE = load_case("tool-name-mapping")
LEGAL = re.compile(CASE["input"]["patterns"]["openai"])


def test_every_name_becomes_legal_and_stays_different_from_the_others():
    names = CASE["input"]["tool_names"]
    wire = [wire_name(name) for name in names]

    assert all(LEGAL.fullmatch(name) for name in wire)
    assert len(set(wire)) == len(names)


def test_a_legal_name_is_sent_as_it_is():
    assert wire_name("files-read_2") == "files-read_2"


def test_the_wire_name_does_not_depend_on_the_other_tools():
    names = CASE["input"]["tool_names"]
    shuffled = names.copy()
    random.Random(7).shuffle(shuffled)
    first, second = WireNames(names), WireNames(shuffled)

    for name in names:
        assert first.original(wire_name(name)) == second.original(wire_name(name)) == name


def test_a_name_that_was_not_offered_stays():
    assert WireNames(["a"]).original("get_US_A PresidentialInfo") == "get_US_A PresidentialInfo"


def test_two_tools_with_one_wire_name_are_refused():
    with pytest.raises(InvalidRequestError, match="need different names"):
        WireNames(["files read", wire_name("files read")])
