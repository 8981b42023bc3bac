"""The API as the real `openai` client sees it: replies, streams, limits, errors."""

import json
import urllib.error
import urllib.request
from typing import Any

import openai
import pytest

from tests.model_stub.talk import TOOLS

MODEL = "countersign-rules"
HELLO: list[Any] = [{"role": "user", "content": "hello"}]
REFUND: list[Any] = [{"role": "user", "content": "refund 1042"}]
ANY_TOOLS: list[Any] = TOOLS


def test_a_text_reply_has_the_shape_of_a_chat_completion(client):
    reply = client.chat.completions.create(model=MODEL, messages=HELLO)

    assert reply.id.startswith("chatcmpl-")
    assert reply.object == "chat.completion"
    assert reply.model == MODEL
    assert reply.system_fingerprint.startswith("fp_")
    [choice] = reply.choices
    assert choice.finish_reason == "stop"
    assert choice.message.role == "assistant"
    assert choice.message.content.startswith("Hello! I can look up your orders")
    assert choice.message.tool_calls is None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert reply.usage.completion_tokens == -(-len(choice.message.content) // 4)


def test_a_tool_call_has_an_id_a_name_and_json_arguments(client):
    reply = client.chat.completions.create(model=MODEL, messages=REFUND, tools=ANY_TOOLS)

    [choice] = reply.choices
    [call] = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert call.id.startswith("call_")
    assert call.type == "function"
    assert call.function.name == "find_orders"
    assert json.loads(call.function.arguments) == {"order_id": "1042"}


def test_a_stream_of_text_brings_the_role_pieces_and_a_reason(client):
    chunks = list(client.chat.completions.create(model=MODEL, messages=HELLO, stream=True))
    whole = client.chat.completions.create(model=MODEL, messages=HELLO)

    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len(chunks) > 10
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    assert all(chunk.usage is None for chunk in chunks)


def test_a_streamed_call_comes_as_a_name_and_then_fragments_of_arguments(client):
    stream = client.chat.completions.create(
        model=MODEL, messages=REFUND, tools=ANY_TOOLS, stream=True
    )
    deltas = [chunk.choices[0].delta.tool_calls for chunk in stream]

    first, *rest = [delta[0] for delta in deltas if delta]
    assert (first.index, first.type, first.function.name) == (0, "function", "find_orders")
    assert first.id.startswith("call_")
    assert first.function.arguments == ""
    assert len(rest) > 1
    assert all(part.id is None and part.function.name is None for part in rest)
    arguments = "".join(part.function.arguments for part in rest)
    assert json.loads(arguments) == {"order_id": "1042"}


def test_a_stream_ends_with_usage_only_when_it_was_asked_for(client):
    options = {"include_usage": True}
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, stream_options=options
        )
    )
    whole = client.chat.completions.create(model=MODEL, messages=HELLO)

    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_the_clients_own_stream_helper_puts_the_pieces_together(client):
    with client.chat.completions.stream(model=MODEL, messages=REFUND, tools=ANY_TOOLS) as stream:
        final = stream.get_final_completion()

    assert final.choices[0].message.tool_calls[0].function.name == "find_orders"


def test_the_wire_of_a_stream_is_server_sent_events_ended_by_done(server):
    status, headers, body = _post(server, {"model": MODEL, "messages": HELLO, "stream": True})

    events = body.decode().split("\n\n")
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert events[-2:] == ["data: [DONE]", ""]
    assert all(json.loads(event.removeprefix("data: ")) for event in events[:-2])


@pytest.mark.parametrize("param", ["max_tokens", "max_completion_tokens"])
def test_a_token_limit_cuts_the_text_and_says_so(client, param):
    reply = client.chat.completions.create(model=MODEL, messages=HELLO, **{param: 3})

    assert reply.choices[0].finish_reason == "length"
    assert reply.choices[0].message.content == "Hello! I can"
    assert reply.usage.completion_tokens == 3


def test_a_token_limit_can_cut_a_call_in_the_middle_of_its_arguments(client):
    reply = client.chat.completions.create(
        model=MODEL, messages=REFUND, tools=ANY_TOOLS, max_tokens=5
    )

    assert reply.choices[0].finish_reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.choices[0].message.tool_calls[0].function.arguments)


def test_a_stop_text_ends_the_reply_before_it(client):
    reply = client.chat.completions.create(model=MODEL, messages=HELLO, stop=[" look", "never"])

    assert reply.choices[0].message.content == "Hello! I can"
    assert reply.choices[0].finish_reason == "stop"


def test_every_role_and_content_parts_are_read(client):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "find_orders", "arguments": '{"order_id": "1042"}'},
    }
    messages: list[Any] = [
        {"role": "developer", "content": [{"type": "text", "text": "Rules."}]},
        {"role": "system", "content": "Customer's first name: Ada"},
        {
            "role": "user",
            "name": "ada",
            "content": [{"type": "text", "text": "refund "}, {"type": "text", "text": "1042"}],
        },
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": [{"type": "text", "text": '{"error": "not_found"}'}],
        },
    ]

    reply = client.chat.completions.create(model=MODEL, messages=messages, tools=ANY_TOOLS)

    assert reply.choices[0].message.content.startswith("I can't find order 1042 in your account.")


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ("none", "stop"),
        ("auto", "tool_calls"),
        ("required", "tool_calls"),
        ({"type": "function", "function": {"name": "hand_off"}}, "tool_calls"),
    ],
)
def test_tool_choice_is_obeyed(client, choice, reason):
    reply = client.chat.completions.create(
        model=MODEL,
        messages=REFUND,
        tools=ANY_TOOLS,
        tool_choice=choice,
        parallel_tool_calls=False,
    )

    assert reply.choices[0].finish_reason == reason
    if isinstance(choice, dict):
        assert reply.choices[0].message.tool_calls[0].function.name == "hand_off"


def test_a_long_static_head_counts_as_cached(client):
    long: list[Any] = [{"role": "system", "content": "Rule. " * 1000}, *HELLO]
    short: list[Any] = [{"role": "system", "content": "Rule."}, *HELLO]

    of_long = client.chat.completions.create(model=MODEL, messages=long).usage
    of_short = client.chat.completions.create(model=MODEL, messages=short).usage

    assert of_long.prompt_tokens_details.cached_tokens == 1408
    assert of_long.prompt_tokens > 1500
    assert of_short.prompt_tokens_details.cached_tokens == 0


def test_models_are_listed_and_found_by_name(client, server):
    server.script("listed", [{"content": "x"}])

    names = [model.id for model in client.models.list()]

    assert names == [MODEL, "script:broken", "script:from_file", "script:listed"]
    assert client.models.retrieve(MODEL).owned_by == "countersign"
    assert client.models.retrieve("script:listed").id == "script:listed"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-nothing")


def test_a_key_is_needed_and_a_wrong_one_refused(server):
    with pytest.raises(openai.AuthenticationError) as wrong:
        openai.OpenAI(base_url=server.url, api_key="invalid", max_retries=0).models.list()
    status, _, body = _post(server, {"model": MODEL, "messages": HELLO}, key=None)

    assert wrong.value.code == "invalid_api_key"
    assert status == 401
    assert "didn't provide an API key" in json.loads(body)["error"]["message"]


def test_an_unknown_model_is_a_404(client):
    for name in ("gpt-nothing", "script:nothing", "script:../../etc/passwd"):
        with pytest.raises(openai.NotFoundError) as caught:
            client.chat.completions.create(model=name, messages=HELLO)

        assert caught.value.code == "model_not_found"


def _call(call_id="call_1", **more):
    function = {"name": "find_orders", "arguments": "{}"} | more
    return {"id": call_id, "type": "function", "function": function}


TOOL = TOOLS[0]
REFUSED: list[tuple[dict[str, Any], str | None]] = [
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": "hello"}, "messages"),
    ({"messages": ["hello"]}, "messages[0]"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "messages[0].content[0].type",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content[0].text",
    ),
    ({"messages": [{"role": "user", "content": "x", "name": "a b"}]}, "messages[0].name"),
    ({"messages": [{"role": "assistant"}]}, "messages[0].content"),
    ({"messages": [{"role": "assistant", "tool_calls": []}]}, "messages[0].tool_calls"),
    ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].id"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [_call(arguments={})]}]},
        "messages[0].tool_calls[0].function.arguments",
    ),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
    (
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": "call_9"}]},
        "messages.[0].role",
    ),
    ({"messages": [{"role": "assistant", "tool_calls": [_call()]}]}, "messages.[1].role"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [_call()]}, *HELLO]},
        "messages.[1].role",
    ),
    ({"tools": []}, "tools"),
    ({"tools": {}}, "tools"),
    ({"tools": [TOOL] * 129}, "tools"),
    ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    (
        {"tools": [{"type": "function", "function": {"name": "a", "parameters": []}}]},
        "tools[0].function.parameters",
    ),
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": "perhaps"}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": 1}, "tool_choice"),
    ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice.function"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        "tool_choice",
    ),
    ({"parallel_tool_calls": True}, "parallel_tool_calls"),
    ({"tools": [TOOL], "parallel_tool_calls": "no"}, "parallel_tool_calls"),
    ({"n": 2}, "n"),
    ({"n": "one"}, "n"),
    ({"temperature": 3}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_p": -1}, "top_p"),
    ({"logprobs": True}, "logprobs"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 1.5}, "max_tokens"),
    ({"max_completion_tokens": -1}, "max_completion_tokens"),
    ({"max_tokens": 5, "max_completion_tokens": 5}, "max_tokens"),
    ({"stop": 5}, "stop"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
    ({"stream": "yes"}, "stream"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"stream": True, "stream_options": []}, "stream_options"),
    ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"response_format": "text"}, "response_format"),
    ({"colour": "blue"}, "colour"),
    ({"model": None}, "model"),
    ({"model": 7}, "model"),
    ({"messages": [{"role": "user", "content": "word " * 110_000}]}, "messages"),
]


@pytest.mark.parametrize(("change", "param"), REFUSED, ids=lambda value: str(value)[:60])
def test_a_bad_request_is_a_400_that_names_the_parameter(server, change, param):
    body = {"model": MODEL, "messages": HELLO} | change

    status, _, raw = _post(server, body)

    error = json.loads(raw)["error"]
    assert status == 400
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert error["message"]
    assert server.calls()[-1]["status"] == 400


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_a_400(server, raw):
    status, _, body = _post(server, raw)

    assert status == 400
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


def test_another_path_or_method_is_an_error_of_the_same_shape(server):
    with pytest.raises(urllib.error.HTTPError) as unknown:
        urllib.request.urlopen(f"{server.url}/embeddings", timeout=5)
    with unknown.value as answer:
        body = json.loads(answer.read())

    assert unknown.value.code == 404
    assert body["error"]["type"] == "invalid_request_error"


def test_odd_characters_go_through_whole(client):
    messages: list[Any] = [{"role": "user", "content": "refund \u202e#1042\u200b \U0001f600"}]

    reply = client.chat.completions.create(model=MODEL, messages=messages, tools=ANY_TOOLS)

    assert json.loads(reply.choices[0].message.tool_calls[0].function.arguments) == {
        "order_id": "1042"
    }


def test_a_lone_surrogate_does_no_harm(server):
    raw = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi \ud800"}]})

    status, _, _ = _post(server, raw.encode())

    assert status == 200


def test_the_process_says_that_it_is_alive(server):
    with urllib.request.urlopen(f"{server.root}/healthz", timeout=5) as response:
        assert json.loads(response.read()) == {"status": "ok"}


def test_each_answer_carries_a_request_id(server):
    _, first, _ = _post(server, {"model": MODEL, "messages": HELLO})
    _, second, _ = _post(server, {"model": MODEL, "messages": HELLO})

    assert first["x-request-id"].startswith("req_")
    assert first["x-request-id"] != second["x-request-id"]


def _post(server, body, key="any"):
    """Post a body as it is; return status, headers and body of the answer, errors too."""
    request = urllib.request.Request(
        f"{server.url}/chat/completions",
        data=body if isinstance(body, bytes) else json.dumps(body).encode(),
        headers={"content-type": "application/json"}
        | ({"authorization": f"Bearer {key}"} if key else {}),
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()
