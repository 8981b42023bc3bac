"""What the caller of the API imposes: no tools, a certain tool, strict schemas, notices."""

import json

import pytest

from tests.model_stub.talk import TOOL_NAMES, TOOLS, Talk, World, called

SUPERSEDED = {
    "operation": "task-1-step-4",
    "kind": "refund",
    "order_id": "1042",
    "state": "superseded",
}


def _after(name, args, result, message, **more):
    """Return the reply to one call made by code, when no tool may be called."""
    talk = Talk()
    talk.task = [
        {"role": "user", "content": message},
        called(name, args),
        {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(result)},
    ]
    return talk.reply(**more)


def test_code_that_looked_a_parcel_up_gets_it_in_words_and_no_call():
    tracking = World().run("track_parcel", {"order_id": "1045"})

    reply = _after(
        "track_parcel", {"order_id": "1045"}, tracking, "where is 1045?", tool_choice="none"
    )

    assert not reply.tool_calls
    assert reply.content == (
        "The parcel for order 1045 is in transit and is expected on 3 December 2026. "
        "Carrier: Parcel Express, tracking number PX123. "
        "Last seen in Chicago on 29 November 2026, 14:05."
    )


def test_code_that_looked_an_order_up_gets_it_in_words():
    found = World().run("find_orders", {"order_id": "1042"})

    reply = _after("find_orders", {"order_id": "1042"}, found, "where is 1042?", tool_choice="none")

    assert "It was delivered on 2 November 2026." in reply.content


def test_an_order_whose_parcel_was_found_is_told_by_its_parcel_alone():
    talk, world = Talk(), World()
    first = called("find_orders", {"order_id": "1045"})
    second = called("track_parcel", {"order_id": "1045"})
    second["tool_calls"][0]["id"] = "call_2"
    found = json.dumps(world.run("find_orders", {"order_id": "1045"}))
    parcel = json.dumps(world.run("track_parcel", {"order_id": "1045"}))
    talk.task = [
        {"role": "user", "content": "where is my order 1045?"},
        first,
        {"role": "tool", "tool_call_id": "call_1", "content": found},
        second,
        {"role": "tool", "tool_call_id": "call_2", "content": parcel},
    ]
    talk.world = World(offered=())

    reply = talk.reply()

    assert reply.content.startswith("The parcel for order 1045 is in transit")
    assert "was placed on" not in reply.content


def test_code_that_found_nothing_gets_the_same_sentence_for_any_order():
    error = {"error": "not_found", "message": "no"}

    reply = _after("find_orders", {"order_id": "1046"}, error, "where is 1046?", tool_choice="none")

    assert reply.content == "I can't find order 1046 in your account. Please check the number."


def test_without_tools_and_results_talk_is_answered_and_deeds_are_declined():
    talk = Talk(World(offered=()))

    assert talk.say("hello").startswith("Hello Ada!")
    assert talk.say("refund 1042").startswith("I can't give refunds here at the moment.")


def test_a_required_call_is_made_even_where_talk_would_do():
    talk = Talk(task=[{"role": "user", "content": "hello"}])

    reply = talk.reply(tool_choice="required")

    assert [call.name for call in reply.tool_calls] == ["find_orders"]


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_a_named_tool_is_called_whatever_was_said(name):
    talk = Talk(task=[{"role": "user", "content": "hello there"}])
    choice = {"type": "function", "function": {"name": name}}

    reply = talk.reply(tool_choice=choice)

    assert [call.name for call in reply.tool_calls] == [name]
    assert isinstance(json.loads(reply.tool_calls[0].arguments), dict)


def test_a_loop_that_code_points_out_ends_in_a_hand_off():
    talk = Talk()
    call = called("find_orders", {"order_id": "1042"})
    result = {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": '{"orders": [], "error": "superseded"}',
    }
    stuck = {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(SUPERSEDED)}
    refunding = called("refund_order", {"order_id": "1042", "reason": "other"})
    notice = {
        "role": "system",
        "content": "You have made the same call with the same arguments twice.",
    }
    talk.task = [{"role": "user", "content": "refund 1042"}, call, result, refunding, stuck, notice]

    reply = talk.reply()

    assert [call.name for call in reply.tool_calls] == ["hand_off"]


def test_a_notice_does_not_stop_an_answer_that_is_ready():
    talk = Talk()
    call = called("find_orders", {"order_id": "1042"})
    found = {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": json.dumps(World().run("find_orders", {"order_id": "1042"})),
    }
    notice = {
        "role": "system",
        "content": "You have made the same call with the same arguments twice.",
    }
    talk.task = [
        {"role": "user", "content": "status of order 1042"},
        call,
        found,
        call,
        found,
        notice,
    ]

    reply = talk.reply()

    assert "It was delivered on 2 November 2026." in reply.content


def test_a_strict_schema_gets_null_for_what_nobody_gave():
    function = {
        "name": "refund_order",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {
                "order_id": {"type": "string"},
                "items": {"anyOf": [{"type": "array"}, {"type": "null"}]},
                "amount": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "reason": {"type": "string"},
            },
            "required": ["order_id", "items", "amount", "reason"],
            "additionalProperties": False,
        },
    }
    talk = Talk(World(offered=("refund_order",)), task=[{"role": "user", "content": "refund 1042"}])

    reply = talk.reply(tools=[{"type": "function", "function": function}])

    assert json.loads(reply.tool_calls[0].arguments) == {
        "order_id": "1042",
        "reason": "other",
        "items": None,
        "amount": None,
    }


def test_a_strict_schema_reaches_into_an_address():
    address = {
        "type": "object",
        "properties": {"line1": {"type": "string"}, "line2": {"type": ["string", "null"]}},
        "required": ["line1", "line2"],
    }
    tools = [tool for tool in TOOLS if tool["function"]["name"] == "find_orders"]
    function = {
        "name": "change_address",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"order_id": {"type": "string"}, "address": {"$ref": "#/$defs/Address"}},
            "required": ["order_id", "address"],
            "$defs": {"Address": address},
        },
    }
    talk = Talk()
    talk.task = [
        {"role": "user", "content": "send 1044 to 12 High Street, Springfield, IL 62704"},
        called("find_orders", {"order_id": "1044"}),
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": json.dumps(World().run("find_orders", {"order_id": "1044"})),
        },
    ]

    reply = talk.reply(tools=[*tools, {"type": "function", "function": function}])

    args = json.loads(reply.tool_calls[0].arguments)
    assert args["address"]["line1"] == "12 High Street"
    assert args["address"]["line2"] is None
