"""What must hold of every Responses request."""

import json
import re


def assert_valid_input(items):
    """Every call is answered once and later, reasoning leads to something, nothing is empty."""
    calls, outputs, reasoned = [], [], []
    for position, item in enumerate(items):
        match item["type"]:
            case "function_call":
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["name"])
                assert 0 < len(item["call_id"]) <= 64
                assert isinstance(json.loads(item["arguments"]), dict)
                assert "id" not in item
                calls.append(item["call_id"])
            case "function_call_output":
                assert item["call_id"] in calls
                assert isinstance(item["output"], str)
                outputs.append(item["call_id"])
            case "reasoning":
                assert item["encrypted_content"] or item["content"]
                following = [later for later in items[position:] if later["type"] != "reasoning"]
                assert following[0]["type"] == "function_call" or (
                    following[0]["role"] == "assistant"
                )
                reasoned.append(item["id"])
            case kind:
                assert kind == "message"
                assert item["content"]
                assert "id" not in item
                # Calls and their outputs stay together.
                assert sorted(calls) == sorted(outputs) or item["role"] == "assistant"
    assert sorted(calls) == sorted(outputs)
    assert len(set(calls)) == len(calls)
    assert len(set(reasoned)) == len(reasoned)
