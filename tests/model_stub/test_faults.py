"""Faults and the memory of calls: what other tests steer the model by and ask it afterwards."""

import hashlib
import json
import time
import urllib.error
from typing import Any

import openai
import pytest

from tests.model_stub.talk import TOOLS

MODEL = "countersign-rules"
HELLO: list[Any] = [{"role": "user", "content": "hello"}]
REFUND: list[Any] = [{"role": "user", "content": "refund 1042"}]
ANY_TOOLS: list[Any] = TOOLS


def ask(client, messages=HELLO, **more):
    """Ask once, with tools."""
    return client.chat.completions.create(model=MODEL, messages=messages, tools=ANY_TOOLS, **more)


def test_a_fault_lasts_for_its_times_and_no_longer(client, server):
    server.fault("error", times=2)

    for _ in range(2):
        with pytest.raises(openai.InternalServerError):
            ask(client)

    assert ask(client).choices
    assert server.control("GET", "faults") == {"faults": []}


def test_a_fault_without_end_lasts_until_it_is_removed(client, server):
    rule = server.fault("error", times=None, status=503)

    for _ in range(3):
        with pytest.raises(openai.InternalServerError) as caught:
            ask(client)
        assert caught.value.status_code == 503
    server.control("DELETE", f"faults/{rule}")

    assert ask(client).choices


def test_a_rate_limit_names_the_seconds_to_wait(client, server):
    server.fault("rate_limit", retry_after=7)

    with pytest.raises(openai.RateLimitError) as caught:
        ask(client)

    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.response.headers["retry-after"] == "7"


def test_an_error_below_500_is_a_refusal_of_the_request(client, server):
    server.fault("error", status=403)

    with pytest.raises(openai.PermissionDeniedError):
        ask(client)


def test_latency_delays_the_answer_and_changes_nothing_else(client, server):
    server.fault("latency", ms=300)

    began = time.perf_counter()
    reply = ask(client)

    assert time.perf_counter() - began >= 0.3
    assert reply.choices[0].finish_reason == "stop"


def test_a_hanging_call_ends_without_an_answer(client, server):
    server.fault("hang", ms=200)

    began = time.perf_counter()
    with pytest.raises(openai.APIConnectionError):
        ask(client)

    assert time.perf_counter() - began >= 0.2


def test_a_hanging_call_runs_into_the_clients_timeout(client, server):
    server.fault("hang", ms=60_000)

    with pytest.raises(openai.APITimeoutError):
        ask(client, timeout=0.2)

    assert ask(client).choices


def test_a_server_that_is_down_closes_the_connection(client, server):
    server.fault("down")

    with pytest.raises(openai.APIConnectionError):
        ask(client)

    assert ask(client).choices


def test_a_cut_stream_gives_some_pieces_and_no_end(client, server):
    server.fault("cut_stream", after_chunks=3)
    received: list[Any] = []
    stream = ask(client, stream=True)

    with pytest.raises(openai.APIConnectionError):
        received.extend(stream)

    assert len(received) == 3
    assert all(chunk.choices[0].finish_reason is None for chunk in received)


def test_a_cut_answer_without_streaming_is_half_a_body(client, server):
    server.fault("cut_stream")

    with pytest.raises(openai.APIConnectionError):
        ask(client)


@pytest.mark.parametrize("stream", [False, True])
def test_malformed_tool_json_waits_for_a_call_and_spoils_it(client, server, stream):
    server.fault("malformed_tool_json")

    assert ask(client, HELLO).choices[0].finish_reason == "stop"
    reply = ask(client, REFUND, stream=stream)
    if stream:
        parts = [c.choices[0].delta.tool_calls for c in reply if c.choices[0].delta.tool_calls]
        arguments = "".join(part[0].function.arguments for part in parts)
    else:
        arguments = reply.choices[0].message.tool_calls[0].function.arguments

    with pytest.raises(json.JSONDecodeError):
        json.loads(arguments)


def test_missing_usage_leaves_usage_out(client, server):
    server.fault("missing_usage", times=2)

    whole = ask(client)
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))

    assert whole.usage is None
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_empty_choices_is_an_answer_with_nothing_in_it(client, server, stream):
    server.fault("empty_choices")

    reply = ask(client, stream=stream)
    answers = list(reply) if stream else [reply]

    assert [answer.choices for answer in answers] == [[]]


def test_an_endless_stream_goes_on_past_any_limit(client, server):
    server.fault("endless", chunks=500)

    chunks = list(ask(client, stream=True, max_tokens=5))

    assert len(chunks) > 500


def test_leaving_an_endless_stream_stops_it(client, server):
    server.fault("endless", chunks=10_000_000)

    stream = ask(client, stream=True)
    next(iter(stream))
    stream.close()

    assert ask(client).choices


def test_a_fault_meets_only_the_messages_and_models_in_its_scope(client, server):
    server.fault("error", scope={"contains": "ORDER 1042"})
    server.fault("error", scope={"model": "script:other"}, times=None)

    assert ask(client, HELLO).choices
    with pytest.raises(openai.InternalServerError):
        ask(client, [{"role": "user", "content": "refund order 1042"}])
    assert ask(client, [{"role": "user", "content": "refund order 1042"}]).choices


def test_two_faults_that_end_a_call_are_spent_on_two_calls(client, server):
    server.fault("error", status=500)
    server.fault("rate_limit")

    with pytest.raises(openai.InternalServerError):
        ask(client)
    with pytest.raises(openai.RateLimitError):
        ask(client)
    assert ask(client).choices


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"fault": "flood"},
        {"fault": "error", "times": 0},
        {"fault": "error", "times": "many"},
        {"fault": "error", "params": {"status": 200}},
        {"fault": "error", "params": {"colour": 1}},
        {"fault": "latency", "params": {"ms": -1}},
        {"fault": "latency", "params": {"ms": "1"}},
        {"fault": "latency", "params": []},
        {"fault": "latency", "scope": {"order": "1042"}},
        {"fault": "latency", "scope": {"model": 1}},
        {"fault": "latency", "scope": []},
        {"fault": "latency", "when": "now"},
    ],
)
def test_a_bad_fault_rule_is_refused_and_not_kept(server, rule):
    with pytest.raises(urllib.error.HTTPError) as caught:
        server.control("POST", "faults", rule)
    caught.value.close()

    assert caught.value.code == 400
    assert server.control("GET", "faults") == {"faults": []}


def test_removing_an_unknown_fault_is_a_404(server):
    with pytest.raises(urllib.error.HTTPError) as caught:
        server.control("DELETE", "faults/fault-0")
    caught.value.close()

    assert caught.value.code == 404


def test_calls_are_remembered_with_what_became_of_them(client, server):
    server.fault("rate_limit", scope={"contains": "refund"})
    ask(client, HELLO, stream=True, max_completion_tokens=100).close()
    with pytest.raises(openai.RateLimitError):
        ask(client, REFUND)
    ask(client, REFUND)

    hello, limited, refund = server.calls()

    assert (hello["model"], hello["messages"], hello["tools"]) == (MODEL, 1, 8)
    assert (hello["stream"], hello["max_tokens"], hello["status"]) == (True, 100, 200)
    assert (limited["status"], limited["faults"]) == (429, ["rate_limit"])
    assert (refund["finish_reason"], refund["tool_calls"]) == ("tool_calls", ["find_orders"])
    assert refund["usage"]["prompt_tokens"] > 0


def test_the_digest_of_the_static_head_tells_equal_prompts_from_different_ones(client, server):
    rules: list[Any] = [{"role": "system", "content": "Rules."}]
    ask(client, [*rules, *HELLO])
    ask(client, [*rules, *REFUND])
    ask(client, [{"role": "system", "content": "Rules!"}, *HELLO])

    first, second, third = [call["prefix_sha256"] for call in server.calls()]

    head = json.dumps([ANY_TOOLS, rules[0]], separators=(",", ":"))
    assert first == hashlib.sha256(head.encode()).hexdigest()
    assert first == second
    assert first != third


def test_bodies_are_kept_as_they_came_and_forgotten_on_request(client, server):
    ask(client, [{"role": "user", "content": "canary-71"}])
    [call] = server.calls(bodies=True)

    one = server.control("GET", f"calls/{call['id']}")
    server.control("DELETE", "calls")

    assert call["body"]["messages"] == [{"role": "user", "content": "canary-71"}]
    assert one["body"] == call["body"]
    assert server.calls() == []
