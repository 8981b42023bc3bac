"""What is made of a model's reply, from a real server that says what it is told."""

import pytest

from agents import llm
from agents.replies import MAX_ARGUMENTS, MAX_CALLS, UNREADABLE_NAME
from tests.agents.streams import ask, call, delta, finished_with, says, stream

__all__ = ["says"]


# --- A good reply -----------------------------------------------------------------------------


def test_text_comes_in_pieces_and_as_a_whole(says):
    usage = {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": None}
    says(
        stream(
            b": keep-alive\n\n",
            delta(role="assistant", content=""),
            delta(content="It is "),
            delta(content="on its way."),
            delta("stop"),
            {"id": "chatcmpl-1", "choices": [], "usage": usage},
        )
    )
    heard: list[str] = []

    reply = ask(on_text=heard.append)

    assert heard == ["It is ", "on its way."]
    assert reply == llm.ModelReply(
        text="It is on its way.",
        tool_calls=(),
        finish_reason="stop",
        usage=llm.Usage(prompt=50, cached=0, completion=7),
        model="m-2",
        response_id="chatcmpl-1",
    )


def test_a_call_is_put_together_from_its_pieces(says):
    says(
        stream(
            delta(tool_calls=[call(0, "")]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": '{"order_id"'}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": ': "1042"}'}}]),
            delta(tool_calls=[call(1, '{"order_id": "1043"}')]),
            delta("tool_calls"),
        )
    )

    reply = ask()

    assert reply.tool_calls == (
        llm.ToolCall("call_0", "find_orders", '{"order_id": "1042"}'),
        llm.ToolCall("call_1", "find_orders", '{"order_id": "1043"}'),
    )
    assert (reply.finish_reason, reply.is_truncated) == ("tool_calls", False)


def test_a_server_that_omits_the_end_marker_is_understood(says):
    says(stream(delta(content="Hello."), delta("stop"), done=False))

    assert ask().text == "Hello."


def test_text_beside_a_call_is_kept(says):
    says(stream(delta(content="Let me look."), delta("tool_calls", tool_calls=[call()])))

    reply = ask()

    assert (reply.text, len(reply.tool_calls)) == ("Let me look.", 1)


# --- A hostile reply --------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["length", "content_filter", "abort"])
def test_a_truncated_call_is_never_returned(says, reason):
    says(stream(delta(content="One moment.", tool_calls=[call()]), delta(reason)))

    reply = ask()

    assert reply.tool_calls == ()
    assert reply.is_truncated
    assert reply.text == "One moment."
    assert reply.finish_reason == ("other" if reason == "abort" else reason)


def test_a_call_that_was_not_invited_never_leaves(says):
    says(stream(delta(content="Done."), delta("tool_calls", tool_calls=[call()])))

    assert ask(tool_choice="none").tool_calls == ()
    assert ask(tools=[]).tool_calls == ()


def test_a_call_that_was_not_invited_is_no_reply_by_itself(says):
    says(finished_with(call()))

    with pytest.raises(llm.ModelUnavailableError) as caught:
        ask(tool_choice="none")

    assert caught.value.kind == "empty"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a", "a"], ["a", "call_2"]),
        ([None, ""], ["call_1", "call_2"]),
        (["call_2", "call_2"], ["call_2", "call_2_"]),
        (["a b", "x" * 65], ["call_1", "call_2"]),
        ([7, "call_1"], ["call_1_", "call_1"]),
        (["é", "ok-1.2:3_4"], ["call_1", "ok-1.2:3_4"]),
    ],
)
def test_every_call_gets_an_id_of_its_own(says, given, expected):
    says(finished_with(*[call(index, id=call_id) for index, call_id in enumerate(given)]))

    assert [made.id for made in ask().tool_calls] == expected


def test_calls_that_all_claim_to_be_the_first_stay_apart(says):
    says(finished_with(call(0, '{"a":1}', id="x"), call(0, '{"b":2}', id="y")))

    assert [made.arguments for made in ask().tool_calls] == ['{"a":1}', '{"b":2}']


def test_pieces_without_an_index_belong_to_the_newest_call(says):
    says(
        finished_with(
            {"id": "x", "function": {"name": "find_orders", "arguments": "{"}},
            {"function": {"arguments": "}"}},
        )
    )

    assert ask().tool_calls == (llm.ToolCall("x", "find_orders", "{}"),)


def test_a_name_repeated_in_each_piece_is_taken_once(says):
    says(finished_with(call(0, "{"), call(0, "}")))

    assert ask().tool_calls == (llm.ToolCall("call_0", "find_orders", "{}"),)


@pytest.mark.parametrize("name", ["", "x" * 65, "refund order", "refund\u200b_order", "find\0"])
def test_a_name_that_no_tool_could_have_is_marked(says, name):
    says(finished_with(call(name=name)))

    assert ask().tool_calls[0].name == UNREADABLE_NAME


def test_calls_beyond_the_cap_are_left_out(says):
    says(finished_with(*[call(index) for index in range(MAX_CALLS + 5)]))

    assert len(ask(max_output_tokens=1000).tool_calls) == MAX_CALLS


def test_arguments_that_are_too_long_parse_as_nothing(says):
    padded = '{"order_id": "1042"}' + " " * MAX_ARGUMENTS
    says(finished_with(call(arguments=padded)))

    (made,) = ask(max_output_tokens=100_000).tool_calls

    assert made.arguments == f"(arguments of {len(padded)} characters)"


def test_a_reply_that_never_stops_is_cut_at_its_cap(says):
    says(stream(*[delta(content="word ") for _ in range(500)], delta("stop")))
    heard: list[str] = []

    reply = ask(max_output_tokens=10, on_text=heard.append)

    assert reply.text == "".join(heard) == "word " * 16
    assert (reply.finish_reason, reply.is_truncated, reply.usage) == ("cut", True, None)


def test_a_call_that_never_stops_is_cut_and_dropped(says):
    says(finished_with(*[call(0, "[" * 50) for _ in range(100)]))

    reply = ask(max_output_tokens=10)

    assert (reply.tool_calls, reply.finish_reason) == ((), "cut")


def test_odd_characters_are_taken_out_or_joined(says):
    says(
        stream(
            delta(content="a\0b \ud83d"), delta(content="\ude00 c\ud83d"), delta(content="d"),
            delta("stop"),
        )
    )  # fmt: skip
    heard: list[str] = []

    reply = ask(on_text=heard.append)

    assert reply.text == "".join(heard) == "ab \U0001f600 c\ufffdd"


def test_half_a_character_at_the_end_is_replaced(says):
    says(stream(delta(content="oh \ud83d"), delta("stop")))

    assert ask().text == "oh \ufffd"


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 5},
        {"prompt_tokens": -1, "completion_tokens": 2},
        {"prompt_tokens": True, "completion_tokens": 2},
        {"prompt_tokens": "5", "completion_tokens": 2},
        {"prompt_tokens": 5, "completion_tokens": 10**12},
        [5, 2],
    ],
)
def test_usage_that_makes_no_sense_counts_as_missing(says, usage):
    says(stream(delta(content="Hi."), delta("stop"), {"choices": [], "usage": usage}))

    assert ask().usage is None


def test_more_remembered_tokens_than_there_are_count_as_all_of_them(says):
    details = {"cached_tokens": 9}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": details}
    says(stream(delta(content="Hi."), delta("stop"), {"choices": [], "usage": usage}))

    assert ask().usage == llm.Usage(prompt=5, cached=5, completion=2)


def test_only_the_first_choice_is_read(says):
    other = {"index": 1, "delta": {"content": "No."}, "finish_reason": "length"}
    says(stream(delta(content="Yes."), {"choices": [other]}, delta("stop")))

    reply = ask()

    assert (reply.text, reply.finish_reason) == ("Yes.", "stop")


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": None},
        {"choices": ["x", 7, None]},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": {"content": 7, "tool_calls": "x"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [7, {"function": "x"}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": 7}], "id": 7, "model": []},
    ],
)
def test_a_misshapen_chunk_breaks_nothing(says, chunk):
    says(stream(chunk, delta(content="Hi."), delta("stop")))

    assert ask().text == "Hi."
