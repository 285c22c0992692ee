"""Anthropic's wire cases and cut answers over real HTTP."""

import json

import pytest
from anthropic_wire import assert_valid_request, begin, block, call, end, sse, text
from provider_checks import ask
from wire_server import case_chunks, load_case, replay, three_ways

from littleghost.errors import CredentialError, StreamError
from littleghost.messages import Message, ToolResult, user
from littleghost.providers import ModelRequest, Models, ToolSpec
from littleghost.providers.answer_reader import read_answer
from littleghost.providers.anthropic import Anthropic
from littleghost.providers.anthropic_request import build_request
from littleghost.providers.anthropic_stream import MessageStream
from littleghost.providers.profiles import PROFILES
from littleghost.providers.tool_names import wire_name

WAYS = ["given", "one", "bytes"]
HELLO = [begin(input_tokens=3, output_tokens=1), text(0, "hello"), end(output_tokens=2)]


def run(serve, connect, chunks, request=None):
    provider = connect(serve(replay(chunks)), "anthropic", api_key="k")
    return ask(provider, request)


@pytest.mark.parametrize("way", WAYS)
def test_thinking_is_replayed_block_by_block(serve, connect, way):
    case = load_case("anthropic-thinking-replay")
    wanted = case["expected"]
    request = ModelRequest(model="syn", messages=[user("q")])
    response = run(serve, connect, three_ways(case_chunks(case))[way], request).response

    assert response.message.text == wanted["text"]
    assert response.finish == wanted["finish"]
    assert response.usage.to_json() == wanted["usage"]
    assert [(use.id, use.name, dict(use.input)) for use in response.message.tool_uses] == [
        (told["id"], told["name"], told["arguments"]) for told in wanted["tool_calls"]
    ]
    # Through the store: the JSON form and back.
    stored = Message.from_json(json.loads(json.dumps(response.message.to_json())))
    results = [Message("tool", (ToolResult(use.id, "r"),)) for use in stored.tool_uses]
    messages = [user("q"), stored, *results]
    body = build_request(ModelRequest(model="syn", messages=messages), PROFILES["anthropic"])
    assert body["messages"][1]["content"] == wanted["next_request_assistant_content"]
    assert_valid_request(body)


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_error_after_the_first_text_is_an_error(serve, connect, way, is_first):
    case = load_case("anthropic-overloaded-mid-stream")
    wanted = case["expected"]
    chunks = case_chunks(case)
    if is_first:
        chunks = [b"event: error" + b"".join(chunks).partition(b"event: error")[2]]
    outcome = run(serve, connect, three_ways(chunks)[way])

    assert outcome.text == ("" if is_first else wanted["text"])
    assert outcome.error is not None
    assert outcome.error.code == wanted["error"]["class"]
    assert outcome.error.is_retryable
    assert wanted["error"]["message_contains"] in str(outcome.error)


def full_answer():
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm — 🦀"},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    parts = [
        begin(input_tokens=3, output_tokens=1),
        thinking,
        text(1, "né", "🦀"),
        sse("ping"),
        call(2, "toolu_1", "f", '{"n":', ' "é"}'),
        end("tool_use", output_tokens=9),
    ]
    return b"".join(parts).replace(b"\\u00e9", "é".encode()).replace(b"\\u2014", "—".encode())


class Body:
    """An answer's body without a network, cut where a test says."""

    def __init__(self, *chunks):
        self._chunks = chunks

    def chunks(self):
        yield from self._chunks

    def expect_end(self):
        pass


def test_an_answer_cut_at_any_byte_is_no_answer_and_split_there_is_the_same():
    data = full_answer()

    def read(*chunks):
        stream = MessageStream(origin="o")
        events = [*read_answer(Body(*chunks), stream), *stream.finish()]
        return events[-1].response

    whole = read(data)
    assert [item.to_json()["type"] for item in whole.message.content] == [
        "reasoning",
        "text",
        "tool_use",
    ]
    # All but the blank line after the last event, which says nothing new.
    last = len(data.rstrip(b"\n"))
    for cut in range(len(data) + 1):
        assert read(data[:cut], data[cut:]) == whole
        if cut >= last:
            assert read(data[:cut]) == whole
            continue
        with pytest.raises(StreamError):
            read(data[:cut])


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_connection_that_ends_early_is_a_stream_error(serve, connect, is_clean):
    def answer(exchange):
        exchange.head()
        exchange.chunk(HELLO[0] + HELLO[1])
        if is_clean:
            exchange.end()
        else:
            exchange.hang_up()

    outcome = ask(connect(serve(answer), "anthropic", api_key="k"))

    assert outcome.text == "hello"
    assert outcome.error.code == "stream_incomplete"
    assert outcome.error.is_retryable


def test_line_ends_comments_and_unnamed_events_do_not_matter(serve, connect):
    data = b"".join(HELLO)
    bare = b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"event:"))

    for variant in (data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf: hi\n\n" + data, bare):
        response = run(serve, connect, three_ways([variant])["bytes"]).response
        assert response.message.text == "hello"
        assert response.usage.to_json() == {"input": 3, "output": 2}


def test_the_request_says_who_asks(serve, connect):
    server = serve(replay(HELLO))
    spec = ToolSpec("files.read", "d", {"type": "object"})
    more = {"anthropic-beta": "b"}
    provider = connect(server, "anthropic", api_key="sk-ant-key\n", headers=more)
    request = ModelRequest(model="claude-x", messages=[user("hi")], tools=[spec])
    ask(provider, request)
    exchange = server.exchanges[0]

    assert exchange.headers["x-api-key"] == "sk-ant-key"
    assert exchange.headers["anthropic-version"] == "2023-06-01"
    assert exchange.headers["anthropic-beta"] == "b"
    assert "authorization" not in exchange.headers
    assert exchange.json["tools"][0]["name"] == wire_name("files.read")
    assert_valid_request(exchange.json)
    assert "sk-ant" not in repr(provider)


@pytest.mark.parametrize(
    ("status", "kind", "headers", "code", "wait_s"),
    [
        (529, "overloaded_error", {}, "overloaded", None),
        (500, "overloaded_error", {"retry-after": "3"}, "overloaded", 3),
        (429, "rate_limit_error", {"retry-after": "7"}, "rate_limited", 7),
        (429, "rate_limit_error", {"anthropic-ratelimit-tokens-remaining": "0"}, None, None),
        (401, "authentication_error", {}, "auth", None),
        (413, "request_too_large", {}, "context_overflow", None),
        (400, "invalid_request_error", {}, "invalid_request", None),
        (504, "timeout_error", {}, "timeout", None),
    ],
)
def test_an_error_status_is_named(serve, connect, status, kind, headers, code, wait_s):
    error = {"type": "error", "error": {"type": kind, "message": "no"}, "request_id": "r"}
    body = json.dumps(error).encode()
    server = serve(lambda exchange: exchange.whole(status, body, headers))
    found = ask(connect(server, "anthropic", api_key="k")).error

    assert found.code == (code or "rate_limited")
    assert found.retry_after_s == wait_s


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
    ],
)
def test_a_context_that_is_too_long_is_told_from_other_refusals(serve, connect, message):
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    server = serve(lambda exchange: exchange.whole(400, json.dumps(error).encode()))

    assert ask(connect(server, "anthropic", api_key="k")).error.code == "context_overflow"


def test_the_environment_gives_the_connection_and_the_default():
    models = Models.from_environment({"ANTHROPIC_API_KEY": "k"})
    resolved = models.resolve("anthropic:claude-x")

    assert isinstance(resolved.provider, Anthropic)
    assert models.default.startswith("anthropic:claude-")
    models.check()
    both = Models.from_environment({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"})
    assert both.default.startswith("openai:")


def test_a_connection_of_ones_own():
    models = Models({})
    with pytest.raises(CredentialError, match="LITTLEGHOST_ANTHROPIC_API_KEY or ANTHROPIC_API_KEY"):
        models.check("anthropic:m")
    models.connect("anthropic", "anthropic", api_key="k", base_url="https://proxy.test/v1/")
    provider = models.resolve("anthropic:m").provider

    models.check("anthropic:m")
    assert repr(provider) == "Anthropic('anthropic', base_url='https://proxy.test/v1')"


@pytest.mark.parametrize("adapter", ["anthropic", "openai"])
def test_a_server_of_ones_own_may_need_no_key(serve, adapter):
    server = serve(replay(HELLO))
    models = Models({})
    models.connect("local", adapter, base_url=server.url, needs_key=False)
    models.check("local:m")
    if adapter == "anthropic":
        assert ask(models.resolve("local:m").provider).response.message.text == "hello"
        assert "x-api-key" not in server.exchanges[0].headers
        assert server.exchanges[0].path == "/v1/messages"
    models.close()
