"""A server that breaks on purpose judges how the provider and a plain retry loop cope.

The loop does what the engine does: it retries what says that it is retryable, waits as long as
the service asked, and else backs off.
"""

import os
import random
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from littleghost.errors import InvalidRequestError, ProviderError
from littleghost.messages import Message, ToolResult, user
from littleghost.providers import CallControl, ModelRequest, ToolSpec
from littleghost.providers.anthropic import Anthropic
from littleghost.providers.gemini import Gemini
from littleghost.providers.http import HttpLimits
from littleghost.providers.openai_compatible import OpenAICompatible
from littleghost.providers.openai_responses import OpenAIResponses
from littleghost.providers.profiles import PROFILES

try:
    import llmock  # noqa: F401
except ImportError:
    if os.environ.get("CI"):
        raise
    pytest.skip("llmock is not installed", allow_module_level=True)

ATTEMPTS = 4
READ_TIMEOUT_S = 0.5
DIALECTS = {
    "openai": (OpenAICompatible, "/v1"),
    "openai_responses": (OpenAIResponses, "/v1"),
    "anthropic": (Anthropic, "/anthropic"),
    "gemini": (Gemini, "/gemini/v1beta"),
}
WEATHER = ToolSpec(
    "get.weather",
    "Look up the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Mock:
    """The breaking server, driven over its own HTTP interface."""

    def __init__(self, root, http):
        self.root = root
        self._http = http

    def script(self, *behaviors):
        answer = self._http.post("/_llmock/scenario", json={"behaviors": list(behaviors)})
        assert answer.status_code == 201, answer.text

    def reset(self):
        self._http.post("/_llmock/reset").raise_for_status()

    def assert_resilient(self, *, attempts):
        verdict = self._http.get("/_llmock/verdict").json()
        report = self._http.get("/_llmock/verdict", params={"format": "text"}).text
        assert verdict["findings"] == [], report
        assert verdict["attempts"] == attempts, report


@pytest.fixture(scope="module")
def server():
    port = free_port()
    command = [sys.executable, "-m", "llmock.cli", "serve", "--host", "127.0.0.1"]
    process = subprocess.Popen(
        # With a pause between pieces, as a model makes: else the whole answer is in the socket
        # before the client has seen the bad piece, and the judge thinks that it read on.
        [*command, "--port", str(port), "--log-level", "warning", "--stream-chunk-delay-ms", "5"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    transport = httpx.HTTPTransport(retries=10)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=transport) as http:
        try:
            yield Mock(f"http://127.0.0.1:{port}", http)
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture
def mock(server):
    server.reset()
    return server


@pytest.fixture(params=DIALECTS)
def provider(mock, request):
    make, path = DIALECTS[request.param]
    made = make(
        PROFILES[request.param],
        base_url=f"{mock.root}{path}",
        api_key="test-key",
        limits=HttpLimits(read_timeout_s=READ_TIMEOUT_S),
    )
    yield made
    made.close()


def ask(provider, *messages, tools=(), **settings):
    """Ask as the engine does; gives the response and the text of its deltas."""
    request = ModelRequest(model="gpt-4o", messages=messages, tools=tools, settings=settings)
    pause = threading.Event()
    for attempt in range(1, ATTEMPTS + 1):
        text = ""
        try:
            for event in provider.stream(request, CallControl(deadline_s=30)):
                text += event.data.get("text", "") if event.type == "text_delta" else ""
                if event.response is not None:
                    return event.response, text
        except ProviderError as error:
            if not error.is_retryable or attempt == ATTEMPTS:
                raise
            backoff = 0.1 * 2**attempt * random.Random(attempt).uniform(1, 1.2)
            pause.wait(error.retry_after_s or backoff)
    raise AssertionError("unreachable")


def test_a_plain_answer(mock, provider):
    response, text = ask(provider, user("plain"))

    assert text == response.message.text != ""
    assert response.usage is not None
    assert response.usage.output > 0
    mock.assert_resilient(attempts=1)


@pytest.mark.parametrize(
    "fault",
    [
        {"type": "fail", "status": 429, "retry_after": 0.7},
        {"type": "fail", "status": 429, "retry_after": 1, "times": 2},
        {"type": "fail", "status": 429},
        {"type": "fail", "status": 500, "times": 3},
        {"type": "fail", "status": 503, "times": 2},
        {"type": "fail", "status": 408},
        {"type": "fail", "status": 409},
        {"type": "stream_fault", "kind": "truncate", "after_chunks": 0},
        {"type": "stream_fault", "kind": "truncate", "after_chunks": 2},
        {"type": "stream_fault", "kind": "disconnect", "after_chunks": 0},
        {"type": "stream_fault", "kind": "disconnect", "after_chunks": 3, "times": 2},
        {"type": "stream_fault", "kind": "malformed", "after_chunks": 1},
        {"type": "stream_fault", "kind": "stall", "after_chunks": 2, "stall_seconds": 5},
        {"type": "slow_first_token", "seconds": 5},
    ],
    ids=lambda fault: "-".join(str(value) for value in fault.values()),
)
def test_a_fault_that_passes_is_survived(mock, provider, fault):
    whole, _ = ask(provider, user("what is whole"))
    mock.reset()
    mock.script(fault)
    response, text = ask(provider, user("what is whole"))

    assert text == response.message.text == whole.message.text
    mock.assert_resilient(attempts=fault.get("times", 1) + 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again(mock, provider, status):
    mock.script({"type": "fail", "status": status})

    with pytest.raises(ProviderError) as caught:
        ask(provider, user("refused"))

    assert caught.value.status == status
    mock.assert_resilient(attempts=1)


def test_a_fault_that_does_not_pass_ends_after_the_last_attempt(mock, provider):
    mock.script({"type": "fail", "status": 500, "times": None})

    with pytest.raises(ProviderError):
        ask(provider, user("down"))

    mock.assert_resilient(attempts=ATTEMPTS)


def test_tool_calls_travel_with_their_own_names(mock, provider):
    question = user("What is the weather in Bergen?")
    first, _ = ask(provider, question, tools=[WEATHER])
    (use,) = first.message.tool_uses
    answer = Message("tool", (ToolResult(use.id, "rain"),))
    second, _ = ask(provider, question, first.message, answer, tools=[WEATHER])

    assert first.finish == "tool_calls"
    assert use.name == "get.weather"
    assert "city" in use.input
    assert second.finish == "stop"
    mock.assert_resilient(attempts=2)


@pytest.mark.parametrize("kind", ["unknown_tool", "malformed_arguments"])
def test_a_broken_tool_call_is_reported_and_can_be_answered(mock, provider, kind):
    if kind == "malformed_arguments" and isinstance(provider, Gemini):
        pytest.skip("Gemini's arguments are an object: there is no text that could be broken")
    question = user("What is the weather in Oslo?")
    mock.script({"type": "tool_fault", "kind": kind})
    first, _ = ask(provider, question, tools=[WEATHER])
    (use,) = first.message.tool_uses
    answer = Message("tool", (ToolResult(use.id, "that did not work", "error"),))
    second, _ = ask(provider, question, first.message, answer, tools=[WEATHER])

    assert (use.error is not None) == (kind == "malformed_arguments")
    assert (use.name == "get.weather") == (kind == "malformed_arguments")
    assert second.message.text
    mock.assert_resilient(attempts=2)


def test_a_context_that_is_too_long_is_told_from_other_refusals(mock, provider):
    mock.script(
        {
            "type": "fail",
            "status": 400,
            "message": "This model's maximum context length is 10 tokens.",
            "code": "context_length_exceeded",
        },
        {"type": "fail", "status": 400, "message": "temperature must be at most 2"},
    )

    with pytest.raises(ProviderError) as overflow:
        ask(provider, user("long"))
    with pytest.raises(InvalidRequestError):
        ask(provider, user("hot"), temperature=9)

    assert overflow.value.code == "context_overflow"
    mock.assert_resilient(attempts=2)
