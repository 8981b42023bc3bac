"""Scripted models: given replies in a given order, from files and put in at run time."""

import json
import urllib.error
from typing import Any

import openai
import pytest

from model_stub.scripts import parse_script
from tests.model_server import ROOT

HELLO: list[Any] = [{"role": "user", "content": "hello"}]


def play(client, name, said=0, **more):
    """Ask a script for the reply after `said` answers."""
    history: list[Any] = [{"role": "assistant", "content": "before"}] * said
    return client.chat.completions.create(model=name, messages=[*HELLO, *history, *HELLO], **more)


def test_a_script_gives_its_replies_in_order_and_repeats_the_last(client, server):
    name = server.script("turns", [{"content": "one"}, {"content": "two"}])

    said = [play(client, name, n).choices[0].message.content for n in range(4)]

    assert said == ["one", "two", "two", "two"]


def test_a_script_may_end_with_an_error(client, server):
    name = server.script("short", [{"content": "one"}], after="error")

    assert play(client, name).choices[0].message.content == "one"
    with pytest.raises(openai.BadRequestError) as caught:
        play(client, name, 1)
    assert caught.value.code == "script_ended"


def test_a_script_can_call_several_tools_with_any_arguments(client, server):
    calls = [
        {"name": "refund_order", "arguments": {"order_id": "1042"}, "id": "call_same"},
        {"name": "no such tool", "arguments": '{"order_id": ', "id": "call_same"},
        {"name": "hand_off"},
    ]
    name = server.script("calls", [{"content": "Both.", "tool_calls": calls}])

    choice = play(client, name).choices[0]

    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Both."
    first, second, third = choice.message.tool_calls
    assert json.loads(first.function.arguments) == {"order_id": "1042"}
    assert (second.id, second.function.arguments) == ("call_same", '{"order_id": ')
    assert third.id.startswith("call_")


def test_a_script_sets_reason_usage_and_choices(client, server):
    usage = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}
    name = server.script(
        "odd",
        [
            {"content": "cut", "finish_reason": "length", "usage": usage},
            {"content": "free", "usage": None},
            {"choices": []},
            {"content": None},
            {"error": {"status": 503}},
        ],
    )

    first, second, third, fourth = [play(client, name, n) for n in range(4)]

    assert (first.choices[0].finish_reason, first.usage.total_tokens) == ("length", 14)
    assert second.usage is None
    assert third.choices == []
    assert fourth.choices[0].message.content is None
    with pytest.raises(openai.InternalServerError):
        play(client, name, 4)


def test_a_scripted_reply_streams_like_any_other(client, server):
    calls = [{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {"y": 2}}]
    name = server.script("stream", [{"content": "Hello there", "tool_calls": calls}])

    chunks = list(play(client, name, stream=True))

    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert "".join(delta.content or "" for delta in deltas) == "Hello there"
    parts = [delta.tool_calls[0] for delta in deltas if delta.tool_calls]
    assert {part.index for part in parts} == {0, 1}
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_scripts_are_read_from_files_and_run_time_ones_can_be_forgotten(client, server):
    server.script("from_file", [{"content": "From memory."}])

    held = play(client, "script:from_file").choices[0].message.content
    server.control("DELETE", "scripts")
    from_file = play(client, "script:from_file").choices[0].message.content

    assert (held, from_file) == ("From memory.", "Read from a file.")
    with pytest.raises(openai.InternalServerError):
        play(client, "script:broken")


@pytest.mark.parametrize(
    "script",
    [
        [],
        "text",
        {"replies": []},
        {"replies": [{"content": "x"}], "after": "stop"},
        ["text"],
        [{"contents": "x"}],
        [{"content": 7}],
        [{"usage": 7}],
        [{"choices": [1]}],
        [{"tool_calls": {}}],
        [{"tool_calls": [{"arguments": {}}]}],
        [{"error": 500}],
    ],
)
def test_a_bad_script_is_refused(server, script):
    with pytest.raises(urllib.error.HTTPError) as caught:
        server.control("PUT", "scripts/bad", script)
    caught.value.close()

    assert caught.value.code == 400
    assert "bad" not in server.control("GET", "scripts")["scripts"]


@pytest.mark.parametrize("name", ["UPPER", "a.b", "a%2Fb", "x" * 65])
def test_a_script_name_is_plain(server, name):
    with pytest.raises(urllib.error.HTTPError) as caught:
        server.control("PUT", f"scripts/{name}", [{"content": "x"}])
    caught.value.close()

    assert caught.value.code in (400, 404)


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "scripts").glob("*.json")), ids=str)
def test_every_script_file_of_the_tests_is_a_script(path):
    assert parse_script(json.loads(path.read_text("utf-8"))).replies
