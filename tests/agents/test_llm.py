"""The model client against real servers: the pretend model, and one that says what it is told."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agents import llm, transport
from tests.agents.streams import ASKED, TOOL, ask, call, delta, says, stream
from tests.clients.canned import HANG_UP, CannedServer, answer
from tests.model_server import ModelServer

__all__ = ["says"]


# --- What is asked ----------------------------------------------------------------------------


def test_the_request_streams_with_usage_and_is_sent_once(says):
    server = says(stream(delta(content="Hello."), delta("stop")))

    ask(max_output_tokens=77)

    (heard,) = server.heard
    head, _, body = heard.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1")
    assert b"authorization: bearer key-of-the-shop" in head.lower()
    assert json.loads(body) == {
        "model": "m",
        "messages": ASKED,
        "temperature": 0,
        "max_completion_tokens": 77,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [TOOL],
        "tool_choice": "auto",
    }


def test_without_tools_no_tool_field_is_sent(says):
    server = says(stream(delta(content="Hello."), delta("stop")))

    ask(tools=[], tool_choice="none")

    assert not {"tools", "tool_choice"} & set(json.loads(server.heard[0].split(b"\r\n\r\n")[1]))


# --- No reply ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (HANG_UP, "reset"),
        (stream(delta(content="Hi."), delta("stop"))[:-60], "reset"),
        (stream(delta(content="Hi."), done=False), "stream_cut"),
        (stream(delta(content="Hi.")), "stream_cut"),
        (stream({"choices": []}), "empty"),
        (stream(delta(content=" \n"), delta("stop")), "empty"),
        (stream(delta("tool_calls")), "empty"),
        (stream(b"data: {oh\n\n"), "unreadable"),
        (stream(b"data: 7\n\n"), "unreadable"),
        (stream(b"data: " + b"[" * 100_000 + b"\n\n"), "unreadable"),
        (stream(b"data: " + b"1" * 5000 + b"\n\n"), "unreadable"),
        (stream(b"data: " + b"x" * 1_200_000), "unreadable"),
        (stream({"error": {"message": "overloaded"}}), "server_error"),
        (answer({"choices": []}), "stream_cut"),
        (answer(b"\x00\xff", content_encoding="gzip"), "unreadable"),
        (answer({"error": {"message": "x"}}, status=500), "server_error"),
        (answer(b"<html>", status=502), "server_error"),
        (answer({}, status=408), "server_error"),
        (answer({"error": {"code": "rate_limit_exceeded"}}, status=429), "rate_limited"),
        (answer({"error": {"code": "insufficient_quota"}}, status=429), "no_quota"),
    ],
)
def test_an_answer_that_is_no_reply_is_named_and_asked_for_once(says, given, kind):
    server = says(given)

    with pytest.raises(llm.ModelUnavailableError) as caught:
        ask()

    assert caught.value.kind == kind
    assert len(server.heard) == 1


def test_nobody_listening_is_a_failure_to_connect_that_costs_nothing(settings):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings.OPENAI_BASE_URL = f"http://127.0.0.1:{port}/v1"

    with pytest.raises(llm.ModelUnavailableError) as caught:
        ask()

    assert (caught.value.kind, caught.value.may_be_charged) == ("connect", False)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, None, "bad_request"),
        (400, "context_length_exceeded", "too_long"),
        (401, None, "not_authenticated"),
        (403, None, "forbidden"),
        (404, "model_not_found", "not_found"),
        (413, None, "too_long"),
        (422, None, "bad_request"),
    ],
)
def test_a_refusal_is_a_fault_of_the_configuration(says, status, code, kind):
    server = says(answer({"error": {"message": "no", "code": code}}, status=status))

    with pytest.raises(llm.ModelRefusedError) as caught:
        ask()

    assert caught.value.kind == kind
    assert len(server.heard) == 1


def test_half_a_character_in_a_message_is_refused_and_not_sent(says):
    server = says(stream(delta(content="Hi."), delta("stop")))

    with pytest.raises(llm.ModelRefusedError) as caught:
        ask(messages=[{"role": "user", "content": "\ud83d"}])

    assert caught.value.kind == "bad_request"
    assert server.heard == []


def test_a_redirect_is_not_followed(says):
    server = says(answer(b"", status=307, location="http://127.0.0.1:9/v1/chat/completions"))

    with pytest.raises(llm.ModelRefusedError) as caught:
        ask()

    assert caught.value.kind == "redirected"
    assert len(server.heard) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "7", "retry_after_ms": "250"}, 0.25),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "1e300"}, 3600.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry_after": "Fri, 31 Dec 2199 23:59:59 GMT"}, 3600.0),
    ],
)
def test_the_wait_that_the_provider_asks_for_is_bounded(says, headers, seconds):
    says(answer({}, status=429, **headers))

    with pytest.raises(llm.ModelUnavailableError) as caught:
        ask()

    assert caught.value.retry_after == seconds


def test_an_error_shows_no_key_no_escape_and_little_text(says):
    message = "bad key key-of-the-shop \x1b[31m" + "x" * 5000
    says(answer({"error": {"message": message}}, status=401))

    with pytest.raises(llm.ModelRefusedError) as caught:
        ask()

    shown = str(caught.value)
    assert "key-of-the-shop" not in shown
    assert "\x1b" not in shown
    assert len(shown) < 400


def test_an_endless_error_body_is_not_read_to_its_end(says, monkeypatch):
    monkeypatch.setattr(transport, "MAX_WIRE_BYTES", 1000)
    says(answer(b"x" * 100_000, status=400))

    with pytest.raises(llm.ModelUnavailableError) as caught:
        ask()

    assert caught.value.kind == "unreadable"


def refusing(field: str, status: int = 400, **error: Any) -> bytes:
    message = f"Unsupported parameter: '{field}' is not supported with this model."
    return answer({"error": {"message": message, "param": field} | error}, status=status)


@pytest.fixture(autouse=True)
def _nothing_learned():
    llm._not_taken.clear()
    yield
    llm._not_taken.clear()


def bodies(server: CannedServer) -> list[dict[str, Any]]:
    return [json.loads(heard.split(b"\r\n\r\n")[1]) for heard in server.heard]


@pytest.mark.parametrize("more", [{}, {"param": None}])
def test_a_model_that_takes_no_temperature_is_asked_without_and_remembered(says, more):
    good = stream(delta(content="Hi."), delta("stop"))
    server = says(refusing("temperature", **more), good)

    assert ask().text == "Hi."
    assert ask().text == "Hi."

    assert ["temperature" in body for body in bodies(server)] == [True, False, False]


def test_an_old_server_is_told_the_limit_in_its_own_word(says):
    good = stream(delta(content="Hi."), delta("stop"))
    server = says(refusing("max_completion_tokens"), refusing("temperature"), good)

    assert ask(max_output_tokens=77).text == "Hi."

    last = bodies(server)[-1]
    assert last["max_tokens"] == 77
    assert not {"max_completion_tokens", "temperature"} & set(last)


def test_what_one_model_does_not_take_another_is_still_sent(says):
    good = stream(delta(content="Hi."), delta("stop"))
    server = says(refusing("temperature"), good)

    ask(model="thinker")
    ask(model="talker")

    assert "temperature" in bodies(server)[-1]


def test_a_server_that_refuses_without_end_is_asked_three_times_at_most(says):
    server = says(refusing("temperature"), refusing("max_completion_tokens"), refusing("model"))

    with pytest.raises(llm.ModelRefusedError) as caught:
        ask()

    assert caught.value.kind == "bad_request"
    assert len(server.heard) == 3


# --- Prices and bounds ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "micro_dollars"),
    [
        (llm.Usage(0, 0, 0), 0),
        (llm.Usage(1, 0, 0), 1),
        (llm.Usage(1000, 1000, 0), 150),
        (llm.Usage(1000, 0, 1000), 750),
        (llm.Usage(1001, 0, 1000), 751),
    ],
)
def test_cost_is_rounded_up(settings, usage, micro_dollars):
    settings.MODEL_PRICE_INPUT, settings.MODEL_PRICE_OUTPUT = 150, 600

    assert llm.cost(usage) == micro_dollars


def test_others_text_is_estimated_at_a_token_a_byte():
    bare = llm.estimate_tokens([{"role": "user", "content": ""}], [])

    assert llm.estimate_tokens([{"role": "user", "content": "é" * 100}], []) == bare + 200
    assert llm.estimate_tokens([{"role": "tool", "content": "\ud83d"}], []) == bare + 3


def test_our_own_text_is_estimated_at_a_token_for_two_bytes():
    bare = llm.estimate_tokens([{"role": "system", "content": ""}], [])

    assert llm.estimate_tokens([{"role": "system", "content": "x" * 101}], []) == bare + 51
    assert llm.estimate_tokens([], [TOOL]) == 16 + -(-len(json.dumps(TOOL)) // 2)


def test_proposed_calls_in_the_history_are_estimated_too():
    said = {"role": "assistant", "content": None}
    called = said | {"tool_calls": [call(arguments="x" * 1000)]}

    assert llm.estimate_tokens([called], []) > llm.estimate_tokens([said], []) + 1000


# --- Time -------------------------------------------------------------------------------------


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    """Let `handle` answer one connection in a thread; gives the base URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                try:
                    handle(connection)
                except OSError:
                    return  # the client hung up, as it should

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        thread.join(timeout=10)
        assert not thread.is_alive()


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


def test_a_stream_that_only_drips_is_cut_at_the_deadline(settings):
    def drip(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"data: " + json.dumps(delta(content="Hi")).encode() + b"\n\n")
        while True:
            time.sleep(0.05)
            connection.sendall(b": still here\n\n")

    settings.MODEL_TIMEOUT = 0.5
    began = time.monotonic()
    with serving(drip) as settings.OPENAI_BASE_URL:
        reply = ask()

    assert (reply.text, reply.finish_reason, reply.usage) == ("Hi", "cut", None)
    assert time.monotonic() - began < 2


def test_a_stream_that_drips_nothing_of_use_times_out(settings):
    def drip(connection: socket.socket) -> None:
        connection.sendall(HEAD)
        while True:
            time.sleep(0.05)
            connection.sendall(b": still here\n\n")

    settings.MODEL_TIMEOUT = 0.5
    with (
        serving(drip) as settings.OPENAI_BASE_URL,
        pytest.raises(llm.ModelUnavailableError) as caught,
    ):
        ask()

    assert (caught.value.kind, caught.value.may_be_charged) == ("timeout", True)


def test_a_stream_that_falls_silent_times_out(settings):
    def fall_silent(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"data: " + json.dumps(delta(content="Hi")).encode() + b"\n\n")
        while connection.recv(65_536):
            pass  # until the client hangs up

    settings.MODEL_TIMEOUT = 0.5
    with (
        serving(fall_silent) as settings.OPENAI_BASE_URL,
        pytest.raises(llm.ModelUnavailableError) as caught,
    ):
        ask()

    assert caught.value.kind == "timeout"


# --- The pretend model ------------------------------------------------------------------------

RULES = "countersign-rules"


@pytest.fixture
def model(model_process: ModelServer, settings: Any) -> Iterator[ModelServer]:
    settings.OPENAI_BASE_URL = model_process.url
    yield model_process
    model_process.clear()


def test_the_pretend_model_calls_a_tool_and_counts_its_tokens(model):
    reply = ask(model=RULES)

    (made,) = reply.tool_calls
    assert made.name == "find_orders"
    assert json.loads(made.arguments)["order_id"] == "1042"
    assert reply.finish_reason == "tool_calls"
    assert reply.usage is not None
    assert 0 < reply.usage.prompt <= llm.estimate_tokens(ASKED, [TOOL])
    assert reply.model == RULES


def test_the_pretend_model_streams_what_it_says(model):
    name = model.script("talk", [{"content": "Your mug is on its way."}])
    heard: list[str] = []

    reply = ask(model=name, on_text=heard.append)

    assert len(heard) > 1
    assert "".join(heard) == reply.text == "Your mug is on its way."


def test_a_slow_answer_within_the_time_is_an_answer(model):
    model.fault("latency", ms=200)

    assert ask(model=RULES).tool_calls


@pytest.mark.parametrize(
    ("fault", "params", "kind", "retry_after"),
    [
        ("rate_limit", {"retry_after": 3}, "rate_limited", 3.0),
        ("error", {"status": 503}, "server_error", None),
        ("down", {}, "reset", None),
        ("cut_stream", {"after_chunks": 1}, "reset", None),
        ("empty_choices", {}, "empty", None),
    ],
)
def test_a_fault_is_told_once_and_the_next_call_works(model, fault, params, kind, retry_after):
    model.fault(fault, **params)

    with pytest.raises(llm.ModelUnavailableError) as caught:
        ask(model=RULES)

    assert (caught.value.kind, caught.value.retry_after) == (kind, retry_after)
    assert len(model.calls()) == 1
    assert ask(model=RULES).tool_calls


def test_a_model_that_hangs_times_out(model, settings):
    settings.MODEL_TIMEOUT = 0.3
    model.fault("hang", ms=2000)

    with pytest.raises(llm.ModelUnavailableError) as caught:
        ask(model=RULES)

    assert caught.value.kind == "timeout"


def test_a_key_that_is_not_accepted_is_a_refusal(model, settings):
    settings.OPENAI_API_KEY = "invalid"

    with pytest.raises(llm.ModelRefusedError) as caught:
        ask(model=RULES)

    assert caught.value.kind == "not_authenticated"


def test_a_model_that_does_not_exist_is_a_refusal(model):
    with pytest.raises(llm.ModelRefusedError) as caught:
        ask(model="no-such-model")

    assert caught.value.kind == "not_found"


def test_broken_arguments_are_handed_on_as_they_are(model):
    model.fault("malformed_tool_json")

    (made,) = ask(model=RULES).tool_calls

    with pytest.raises(json.JSONDecodeError):
        json.loads(made.arguments)


def test_missing_usage_is_an_unknown_charge(model):
    model.fault("missing_usage")

    assert ask(model=RULES).usage is None


def test_an_endless_stream_is_cut(model):
    model.fault("endless")

    reply = ask(model=RULES, max_output_tokens=50)

    assert (reply.finish_reason, reply.tool_calls) == ("cut", ())
    assert len(reply.text) <= 400


def test_a_call_cut_by_the_token_limit_is_not_returned(model):
    arguments = json.dumps({"order_id": "1042", "reason": "x" * 400})
    name = model.script("long", [{"tool_calls": [{"name": "find_orders", "arguments": arguments}]}])

    reply = ask(model=name, max_output_tokens=10)

    assert (reply.tool_calls, reply.finish_reason, reply.is_truncated) == ((), "length", True)
