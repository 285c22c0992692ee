"""The Responses provider over real HTTP: every cut of the bytes, errors, rounds of tools."""

import json

import pytest
from provider_checks import ask
from responses_checks import assert_valid_input
from responses_wire import USAGE, answer, call, message, reasoning, sse, stream
from wire_server import load_case, replay, three_ways

from littleghost.errors import CredentialError, StreamError
from littleghost.messages import Message, ToolResult, user
from littleghost.providers import ModelRequest, Models, ToolSpec
from littleghost.providers.openai_responses import OpenAIResponses
from littleghost.providers.responses_stream import ResponsesStream
from littleghost.providers.sse import SseParser

# Characters of two, three and four bytes, so that a cut may fall inside one.
ITEMS = (
    reasoning("rs_1", "c2Vj", "Höhe?"),
    message("Grüße \u2028 🦀 done"),
    call("call_1", "stock", '{"sku":"Ä-17"}'),
)


def two_round_case():
    case = load_case("responses-stateless-reasoning")
    return case["input"]["first_response"], case["expected"]


@pytest.mark.parametrize("way", ["given", "one", "bytes"])
def test_an_answer_is_the_same_however_its_bytes_come(serve, connect_responses, way):
    chunks = three_ways(stream(*ITEMS, usage=USAGE))[way]
    outcome = ask(connect_responses(serve(replay(chunks))))

    assert outcome.text == outcome.response.message.text == "Grüße \u2028 🦀 done"
    assert outcome.response.message.tool_uses[0].input == {"sku": "Ä-17"}
    assert outcome.response.usage.to_json()["reasoning"] == 20


def test_a_stream_may_be_split_anywhere():
    whole = b"".join(stream(*ITEMS, usage=USAGE))

    def collect(*chunks):
        collected, parser = ResponsesStream(), SseParser()
        for chunk in chunks:
            for event in parser.feed(chunk):
                collected.feed(event.data, event.event)
        return collected.finish()[-1].response

    wanted = collect(whole)
    for at in range(1, len(whole)):
        assert collect(whole[:at], whole[at:]) == wanted


def test_a_stream_cut_at_any_byte_is_an_error_or_the_whole_answer(serve, connect_responses):
    whole = b"".join(stream(message("Grüße 🦀"), call("c", "f", '{"n":1}')))
    server = serve(replay([whole]))
    provider = connect_responses(server)
    wanted = ask(provider).response
    # From here on all that was to be said has come, only the event's end is missing.
    last_brace = whole.rindex(b"}") + 1
    for at in range(len(whole)):
        server.answer = replay([whole[:at]] if at else [])
        outcome = ask(provider)
        if at >= last_brace:
            assert outcome.response == wanted
        else:
            assert isinstance(outcome.error, StreamError), at
            assert outcome.error.is_retryable


def test_a_connection_that_breaks_is_a_stream_error(serve, connect_responses):
    blocks = stream(*ITEMS)

    def hang_up(exchange):
        exchange.head()
        for block in blocks[:-1]:
            exchange.chunk(block)
        exchange.hang_up()

    assert isinstance(ask(connect_responses(serve(hang_up))).error, StreamError)


def test_an_answer_in_one_object_is_understood(serve, connect_responses):
    body = json.dumps(answer(*ITEMS)).encode()
    provider = connect_responses(serve(lambda exchange: exchange.whole(200, body)))

    assert ask(provider).response.message.text == "Grüße \u2028 🦀 done"


def test_reasoning_travels_with_the_run_and_nothing_is_kept_at_the_service(
    serve, connect_responses
):
    first, expected = two_round_case()
    items = first["output"]
    server = serve(replay(stream(*items, usage=first["usage"])))
    provider = connect_responses(server)
    tools = [ToolSpec("stock", "Look up.", {})]
    history = [user("How many A-17?")]
    for round_ in range(2):
        request = ModelRequest(model="o4-mini", messages=history, tools=tools)
        response = ask(provider, request).response
        (use,) = response.message.tool_uses
        # As the journal keeps it.
        stored = Message.from_json(json.loads(json.dumps(response.message.to_json())))
        history += [stored, Message("tool", (ToolResult(use.id, str(round_)),))]
        renamed = [{**item, "id": f"{item['id']}_{round_}"} for item in items]
        server.answer = replay(stream(*renamed, usage=first["usage"]))
    server.answer = replay(stream(message("Seven.")))
    ask(provider, ModelRequest(model="o4-mini", messages=history, tools=tools))
    bodies = [exchange.json for exchange in server.exchanges]

    for body in bodies:
        assert body["store"] is expected["request_1"]["store"]
        assert expected["request_1"]["include_contains"] in body["include"]
        assert "previous_response_id" not in body
        assert_valid_input(body["input"])
        assert all(item["type"] != "item_reference" for item in body["input"])
    # What was sent once stays as it was: a prompt cache depends on it.
    assert bodies[2]["input"][: len(bodies[1]["input"])] == bodies[1]["input"]
    kinds = ["reasoning", "message", "function_call", "function_call_output"]
    assert [item["type"] for item in bodies[2]["input"]] == ["message", *kinds, *kinds]
    assert bodies[1]["input"][1] == items[0]
    assert bodies[2]["input"][5]["id"] == "rs_1_0"
    usage = response.usage
    assert (usage.input, usage.output, usage.reasoning) == (12, 10, 20)


def test_another_model_or_service_does_not_get_the_reasoning(serve, connect_responses):
    first, _ = two_round_case()
    server = serve(replay(stream(*first["output"])))
    other = serve(replay(stream(message("x"))))
    stored = ask(connect_responses(server), ModelRequest(model="a", messages=[user("u")]))
    history = [user("u"), stored.response.message]
    ask(connect_responses(server), ModelRequest(model="b", messages=history))
    ask(connect_responses(other), ModelRequest(model="a", messages=history))

    for exchange in (server.exchanges[1], other.exchanges[0]):
        kinds = [item["type"] for item in exchange.json["input"]]
        assert kinds == ["message", "message", "function_call", "function_call_output"]


def test_the_error_statuses_of_the_overflow_case(serve, connect_responses):
    for row in load_case("overflow-classification")["input"]["rows"]:
        body = row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])
        server = serve(
            lambda exchange, row=row, body=body: exchange.whole(row["status"], body.encode())
        )
        error = ask(connect_responses(server)).error
        assert error is not None
        assert (error.code == "context_overflow") == row["class"].startswith("context_overflow"), (
            row
        )


def test_a_wait_that_the_service_asks_for_is_told(serve, connect_responses):
    body = b'{"error": {"code": "rate_limit_exceeded", "message": "slow down k-secret-key"}}'
    headers = {"retry-after": "7"}
    server = serve(lambda exchange: exchange.whole(429, body, headers))
    error = ask(connect_responses(server, api_key="k-secret-key")).error

    assert (error.code, error.retry_after_s, error.is_retryable) == ("rate_limited", 7, True)
    assert "secret" not in str(error)
    assert server.exchanges[0].headers["authorization"] == "Bearer k-secret-key"


def test_a_failure_after_good_pieces_is_no_answer(serve, connect_responses):
    failed = answer(status="failed", error={"code": "server_error", "message": "boom"})
    blocks = [*stream(*ITEMS)[:-1], sse("response.failed", response=failed)]
    error = ask(connect_responses(serve(replay(blocks)))).error

    assert (error.code, error.is_retryable) == ("provider_error", True)


def test_it_is_selected_by_its_name_and_shares_the_key_of_openai(serve):
    server = serve(replay(stream(message("hi"))))
    environ = {
        "OPENAI_API_KEY": "k",
        "LITTLEGHOST_MODEL": "openai_responses:gpt-5.6-luna",
        "LITTLEGHOST_BASE_URL": server.url,
    }
    models = Models.from_environment(environ)
    found = models.resolve()

    assert isinstance(found.provider, OpenAIResponses)
    assert ask(found.provider).text == "hi"
    models.close()
    assert type(Models(environ).resolve("openai:m").provider) is not OpenAIResponses
    with pytest.raises(CredentialError, match="OPENAI_API_KEY"):
        Models({}).check("openai_responses:m")


def test_a_connection_of_any_name_may_speak_it(serve):
    server = serve(replay(stream(message("hi"))))
    models = Models({})
    models.connect(
        "openai",
        "openai_responses",
        base_url=server.url,
        needs_key=False,
        encrypted_reasoning=False,
        headers={"x-a": "b"},
    )
    provider = models.resolve("openai:m").provider

    assert repr(provider) == f"OpenAIResponses('openai_responses', base_url='{server.url}')"
    assert ask(provider).text == "hi"
    assert server.exchanges[0].headers["x-a"] == "b"
    assert "include" not in server.exchanges[0].json
    models.close()
