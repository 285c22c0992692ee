"""Gemini over real HTTP: the case, cuts at every byte, addresses, keys and errors."""

import json

import pytest
from gemini_checks import USAGE, call, candidate, sse
from provider_checks import ask
from wire_server import case_chunks, load_case, replay, three_ways

from littleghost.errors import (
    AuthenticationError,
    CancelledError,
    ContextWindowOverflowError,
    CredentialError,
    InvalidRequestError,
    OverloadedError,
    ProviderTimeoutError,
    RateLimitedError,
    StreamError,
)
from littleghost.messages import Message, ToolResult, user
from littleghost.providers import CallControl, ModelRequest
from littleghost.providers.gemini import Gemini
from littleghost.providers.profiles import PROFILES

ANSWER = [
    sse(candidate({"text": "Hello "})),
    sse(candidate({"text": "w\u00f6rld", "thoughtSignature": "s"})),
    sse(candidate(call("f", {"n": 1}, "t"), finish="STOP", usageMetadata=USAGE)),
]


@pytest.fixture
def connect():
    """Make providers for a server that are closed with the test."""
    made = []

    def make(server, profile="gemini", **options):
        options.setdefault("api_key", "AIzaTestKey")
        made.append(Gemini(PROFILES[profile], base_url=server.url, **options))
        return made[-1]

    yield make
    for provider in made:
        provider.close()


@pytest.mark.parametrize("form", ["object", "list", "events"])
@pytest.mark.parametrize("way", ["given", "one", "bytes"])
def test_calls_without_ids_are_told_apart_and_answered_in_their_order(serve, connect, way, form):
    case = load_case("gemini-calls-without-id")
    body = b"".join(case_chunks(case))
    body = {"object": body, "list": b"[" + body + b"]", "events": b"data: " + body + b"\n\n"}[form]
    server = serve(replay(three_ways([body])[way]))
    provider = connect(server)
    response = ask(provider).response
    uses = response.message.tool_uses
    outputs = case["input"]["tool_outputs"]
    by_key = {use.input.get("city", use.name): use for use in uses}
    results = [
        Message("tool", (ToolResult(by_key[key].id, outputs[key]),))
        for key in case["input"]["finish_order"]
    ]
    ask(
        provider, ModelRequest(model="test-model", messages=[user("q"), response.message, *results])
    )
    _, model, answers = server.exchanges[-1].json["contents"]
    received = json.loads(b"".join(case_chunks(case)))["candidates"][0]["content"]["parts"]

    assert response.finish == "tool_calls"
    assert len({use.id for use in uses}) == 3
    assert response.usage.to_json() == {"input": 8, "output": 9}
    assert model["parts"] == received
    assert [part["functionResponse"] for part in answers["parts"]] == [
        {
            "name": p["functionResponse"]["name"],
            "response": {"output": p["functionResponse"]["response"]},
        }
        for p in case["expected"]["next_request_parts"]
    ]


@pytest.mark.parametrize("way", ["given", "one", "bytes"])
def test_a_stream_however_the_network_cuts_it(serve, connect, way):
    outcome = ask(connect(serve(replay(three_ways(ANSWER)[way]))))

    assert outcome.text == outcome.response.message.text == "Hello w\u00f6rld"
    assert outcome.response.finish == "tool_calls"


@pytest.mark.parametrize("end", ["end", "hang_up"])
def test_an_answer_cut_at_any_byte_is_an_error_or_the_whole_answer(serve, connect, end):
    body, cut = b"".join(ANSWER), 0

    def answer(exchange):
        exchange.head()
        if cut:
            exchange.chunk(body[:cut])
        getattr(exchange, end)()

    provider = connect(serve(answer))
    good = 0
    for cut in range(len(body) + 1):
        outcome = ask(provider)
        if outcome.error is None:
            good += 1
            assert cut >= len(body) - len(b"\r\n\r\n"), "a cut answer was taken for a whole one"
            assert outcome.response.message.text == "Hello w\u00f6rld"
            assert [(u.name, u.input) for u in outcome.response.message.tool_uses] == [
                ("f", {"n": 1})
            ]
            assert outcome.response.usage is not None
        else:
            assert isinstance(outcome.error, StreamError)
            assert outcome.error.is_retryable
    assert good >= 1


def test_a_whole_body_cut_at_any_byte_is_an_error(serve, connect):
    body = json.dumps(candidate({"text": "hi"}, finish="STOP")).encode()
    for cut in range(0, len(body), 7):
        outcome = ask(connect(serve(replay([body[:cut]] if cut else []))))
        assert isinstance(outcome.error, StreamError)


@pytest.mark.parametrize(
    ("options", "model", "path"),
    [
        ({}, "gemini-3-pro", "/models/gemini-3-pro"),
        ({}, "models/gemini-3-pro", "/models/gemini-3-pro"),
        ({}, "tunedModels/mine", "/tunedModels/mine"),
        ({}, "odd?x=1#y z", "/models/odd%3Fx%3D1%23y%20z"),
        (
            {"profile": "vertex", "root": "/projects/p/locations/l"},
            "gemini-3-pro",
            "/projects/p/locations/l/publishers/google/models/gemini-3-pro",
        ),
        (
            {"profile": "vertex", "root": "/projects/p/locations/l"},
            "endpoints/123",
            "/projects/p/locations/l/endpoints/123",
        ),
        (
            {"profile": "vertex", "root": "/projects/p/locations/l"},
            "projects/q/locations/l/endpoints/1",
            "/projects/q/locations/l/endpoints/1",
        ),
    ],
)
def test_where_a_model_is_asked(serve, connect, options, model, path):
    server = serve(replay(ANSWER))
    ask(connect(server, **options), ModelRequest(model=model, messages=[user("q")]))

    assert server.exchanges[0].path == f"/v1{path}:streamGenerateContent?alt=sse"


@pytest.mark.parametrize("model", ["", "a//b", "../files/x", "models/.."])
def test_what_is_no_model_s_name_is_not_asked(serve, connect, model):
    server = serve(replay(ANSWER))
    outcome = ask(connect(server), ModelRequest(model=model, messages=[user("q")]))

    assert isinstance(outcome.error, InvalidRequestError)
    assert server.exchanges == []


def test_the_key_travels_in_a_header_and_is_fetched_for_each_request(serve, connect):
    server = serve(replay(ANSWER))
    keys = iter(["one", "two"])
    provider = connect(server, api_key=lambda: next(keys), headers={"x-more": "m"})
    ask(provider)
    ask(provider)
    vertex = connect(server, "vertex", api_key="ya29.token", root="/projects/p/locations/l")
    ask(vertex)

    sent = [exchange.headers for exchange in server.exchanges]
    assert [headers["x-goog-api-key"] for headers in sent] == ["one", "two", None]
    assert sent[0]["x-more"] == "m"
    assert sent[2]["authorization"] == "Bearer ya29.token"
    assert "AIza" not in repr(connect(server))


def test_a_missing_key_is_told_before_anything_is_sent(serve, connect):
    server = serve(replay(ANSWER))
    outcome = ask(connect(server, api_key=None))

    assert isinstance(outcome.error, CredentialError)
    assert "GEMINI_API_KEY" in str(outcome.error)
    assert server.exchanges == []


def error(code, status, message="m", *details):
    return {"error": {"code": code, "status": status, "message": message, "details": details}}


def google(kind, **fields):
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


RETRY = google("RetryInfo", retryDelay="34.07s")
QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("body", "kind", "is_retryable", "wait_s"),
    [
        (error(429, "RESOURCE_EXHAUSTED", QUOTA, RETRY), RateLimitedError, True, 34.07),
        (error(429, "RESOURCE_EXHAUSTED", QUOTA), RateLimitedError, False, None),
        (
            error(
                429,
                "RESOURCE_EXHAUSTED",
                QUOTA,
                RETRY,
                google("QuotaFailure", violations=[{"quotaId": "RequestsPerDayPerProject"}]),
            ),
            RateLimitedError,
            False,
            None,
        ),
        (error(429, "RESOURCE_EXHAUSTED", "Resource exhausted"), RateLimitedError, True, None),
        (error(503, "UNAVAILABLE", "overloaded", RETRY), OverloadedError, True, 34.07),
        (error(504, "DEADLINE_EXCEEDED"), ProviderTimeoutError, True, None),
        (error(400, "INVALID_ARGUMENT", "bad schema"), InvalidRequestError, False, None),
        (
            error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed.",
            ),
            ContextWindowOverflowError,
            False,
            None,
        ),
        (
            error(400, "INVALID_ARGUMENT", "bad", google("ErrorInfo", reason="API_KEY_INVALID")),
            AuthenticationError,
            False,
            None,
        ),
        (error(403, "PERMISSION_DENIED"), AuthenticationError, False, None),
        (error(404, "NOT_FOUND"), InvalidRequestError, False, None),
    ],
)
@pytest.mark.parametrize("is_list", [False, True])
def test_an_error_gets_its_class(serve, connect, body, kind, is_retryable, wait_s, is_list):
    data = json.dumps([body] if is_list else body).encode()
    outcome = ask(connect(serve(lambda exchange: exchange.whole(body["error"]["code"], data))))

    assert type(outcome.error) is kind
    assert outcome.error.is_retryable == is_retryable
    assert outcome.error.retry_after_s == wait_s
    assert outcome.error.status == body["error"]["code"]
    assert body["error"]["message"] in str(outcome.error)


@pytest.mark.parametrize(
    ("quota", "is_retryable"), [("PerMinutePerProject", True), ("PerDayPerProject", False)]
)
def test_a_quota_error_that_is_cut_off_is_read_as_far_as_it_goes(
    serve, connect, quota, is_retryable
):
    violations = [{"quotaId": f"Requests{quota}", "n": "x" * 400} for _ in range(20)]
    details = google("QuotaFailure", violations=violations)
    body = error(429, "RESOURCE_EXHAUSTED", f"{QUOTA} Please retry in 1m2.5s.", details)
    data = json.dumps(body).encode()
    assert len(data) > 4096
    outcome = ask(connect(serve(lambda exchange: exchange.whole(429, data))))

    assert type(outcome.error) is RateLimitedError
    assert outcome.error.is_retryable == is_retryable
    assert outcome.error.retry_after_s == (62.5 if is_retryable else None)


def test_the_key_is_in_no_message(serve, connect):
    data = json.dumps(error(400, "X", "key k-1 and AIzaSyA0123456789abcdefghijk")).encode()
    outcome = ask(connect(serve(lambda e: e.whole(400, data)), api_key="k-1"))

    assert "k-1" not in str(outcome.error)
    assert "AIza" not in str(outcome.error)


def test_a_request_is_cut_while_it_answers(serve, connect):
    control = CallControl()

    def answer(exchange):
        exchange.head()
        exchange.chunk(ANSWER[0])
        control.cut()
        exchange.wait_for_hang_up()

    assert isinstance(ask(connect(serve(answer)), control=control).error, CancelledError)
