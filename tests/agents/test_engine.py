"""The engine is a pure function: the same log, the same move."""

from typing import Any

import pytest

from agents import engine, workflows
from agents.moves import CallModel, CallTool, HandOff, Log, LoggedStep, Reply


def model(
    n: int, *calls: tuple[str, str], text: str = "", heard: int = 1, **more: Any
) -> LoggedStep:
    told = [
        {"id": f"call_{n}_{index}", "name": name, "arguments": arguments}
        for index, (name, arguments) in enumerate(calls, start=1)
    ]
    return LoggedStep(
        n=n,
        kind="model",
        tool="",
        call_id="",
        arguments="",
        result={"text": text, "tool_calls": told, **more},
        heard_seq=heard,
    )


def tool(
    n: int, name: str, arguments: str = "{}", result: dict[str, Any] | None = None
) -> LoggedStep:
    return LoggedStep(
        n=n,
        kind="tool",
        tool=name,
        call_id=f"call_{n - 1}_1",
        arguments=arguments,
        result={} if result is None else result,
        has_effect=name in {"refund_order", "cancel_order", "change_address"},
    )


def log(*steps: LoggedStep, **more: Any) -> Log:
    return Log(**{"workflow": "", "request": "", "max_steps": 24, "steps": steps, **more})


def test_an_empty_log_asks_the_model():
    assert engine.next_move(log()) == CallModel()


def test_a_proposed_call_is_run_and_its_result_goes_back_to_the_model():
    asked = model(1, ("find_orders", '{"order_id": "1042"}'))

    assert engine.next_move(log(asked)) == CallTool(
        "find_orders", '{"order_id": "1042"}', "call_1_1"
    )
    assert engine.next_move(log(asked, tool(2, "find_orders"))) == CallModel()


def test_two_calls_in_one_reply_are_run_in_their_order():
    asked = model(1, ("find_orders", "{}"), ("search_policy", "{}"))

    assert engine.next_move(log(asked, tool(2, "find_orders"))) == CallTool(
        "search_policy", "{}", "call_1_2"
    )
    assert (
        engine.next_move(log(asked, tool(2, "find_orders"), tool(3, "search_policy")))
        == CallModel()
    )


def test_text_beside_a_call_is_held_until_the_result():
    asked = model(1, ("find_orders", "{}"), text="I have refunded it.")

    assert isinstance(engine.next_move(log(asked)), CallTool)


def test_text_alone_ends_the_task():
    assert engine.next_move(log(model(1, text=" Hello! "))) == Reply("Hello!")


def test_a_message_that_came_meanwhile_is_heard_before_the_task_ends():
    heard = log(model(1, text="Hello!"), has_unheard_message=True)

    assert engine.next_move(heard) == CallModel()


def test_a_truncated_text_is_not_an_answer():
    assert engine.next_move(log(model(1, text="I have ref", is_truncated=True))) == CallModel()


def test_a_model_that_says_nothing_three_times_is_given_up():
    silent = [model(n) for n in (1, 2)]

    assert engine.next_move(log(*silent)) == CallModel()
    assert engine.next_move(log(*silent, model(3))) == HandOff("model_gave_no_answer")


def test_the_same_call_with_the_same_result_is_told_once_then_handed_off():
    same = ("find_orders", '{"order_id": "1", "status": null}')
    other_order = ("find_orders", '{ "status":null,"order_id":"1"}')
    once = [model(1, same), tool(2, *same)]
    twice = [*once, model(3, other_order), tool(4, *other_order)]

    assert not engine.has_repeated(once)
    assert engine.has_repeated(twice)
    assert isinstance(engine.next_move(log(*once, model(3, other_order))), CallTool)
    assert engine.next_move(log(*twice, model(5, same))) == HandOff("same_call_repeated")


def test_the_same_call_with_another_result_is_no_loop():
    same = ("track_parcel", '{"order_id": "1"}')
    steps = []
    for n in (1, 3, 5):
        steps += [model(n, same), tool(n + 1, *same, result={"status": str(n)})]

    assert isinstance(engine.next_move(log(*steps, model(7, same))), CallTool)


def test_looking_and_proposing_anew_after_a_superseded_change_is_no_loop():
    look = ("find_orders", '{"order_id": "1"}')
    refund = ("refund_order", '{"order_id": "1", "reason": "damaged"}')
    superseded = {"state": "superseded", "reason": "policy_changed"}
    steps = (
        *(model(1, look), tool(2, *look), model(3, refund), tool(4, *refund, result=superseded)),
        *(model(5, look), tool(6, *look)),
    )

    assert not engine.has_repeated(steps)
    assert isinstance(engine.next_move(log(*steps, model(7, refund))), CallTool)
    again = (*steps, model(7, look), tool(8, *look))
    assert engine.has_repeated(again)
    assert engine.next_move(log(*again, model(9, look))) == HandOff("same_call_repeated")


def test_the_last_step_of_the_cap_is_kept_for_the_hand_off():
    asked = model(1, ("find_orders", "{}"))

    assert isinstance(engine.next_move(log(asked, max_steps=3)), CallTool)
    assert engine.next_move(log(asked, max_steps=2)) == HandOff("step_limit")
    assert engine.next_move(log(model(1, text="Done"), max_steps=2)) == Reply("Done")


def test_a_hand_off_call_hands_off_with_the_models_reason():
    steps = (model(1, ("hand_off", "{}")), tool(2, "hand_off", result={"reason": "asked"}))

    assert engine.next_move(log(*steps)) == HandOff("asked_for_a_person", "asked")


@pytest.mark.parametrize(
    ("results", "outcome"),
    [
        ([], "answered"),
        ([("refund_order", {"state": "succeeded"})], "done"),
        ([("refund_order", {"state": "rejected"})], "refused"),
        ([("refund_order", {"error": "order_state"})], "refused"),
        ([("find_orders", {"error": "not_found"})], "answered"),
        (
            [("refund_order", {"error": "order_state"}), ("cancel_order", {"state": "succeeded"})],
            "done",
        ),
    ],
)
def test_what_a_task_came_to(results: list[tuple[str, dict[str, Any]]], outcome: str):
    steps = [tool(n, name, result=result) for n, (name, result) in enumerate(results, start=1)]

    assert engine.outcome_of(steps) == outcome


@pytest.mark.parametrize(
    "message",
    [
        "Where is my order 1045?",
        "where's my parcel #1045",
        "What is the status of order 1045?",
        "Can you track my package 1045 please",
        "When will order 1045 arrive?",
    ],
)
def test_a_question_about_one_order_is_a_workflow(message: str):
    assert workflows.match(message) == "order_status"


@pytest.mark.parametrize(
    "message",
    [
        "Where is my order?",
        "Where are my orders 1045 and 1046?",
        "Where is my refund for order 1045?",
        "Order 1045 never arrived, where is my money?",
        "Where is order 1045 and can you cancel it?",
        "Change the address of order 1045",
        "Hello 1045",
        "Where is my order 1045? " + "x" * 200,
    ],
)
def test_anything_more_goes_to_the_loop(message: str):
    assert workflows.match(message) == ""


def workflow_log(*steps: LoggedStep, **more: Any) -> Log:
    return log(*steps, workflow="order_status", request="Where is my order #1045?", **more)


def found(status: str, **more: Any) -> LoggedStep:
    order = {"order_id": "1045", "status": status, **more}
    return tool(1, "find_orders", result={"orders": [order]})


PARCEL = tool(
    2,
    "track_parcel",
    result={
        "carrier": "Blue Heron Post",
        "tracking_number": "BH1",
        "expected_on": "2026-12-02",
        "events": [{"text": "Sorted", "place": "Pendleton"}],
    },
)


def test_the_workflow_looks_up_follows_and_phrases():
    assert engine.next_move(workflow_log()) == CallTool(
        "find_orders", '{"order_id": "1045"}', "workflow_1"
    )
    assert engine.next_move(workflow_log(found("shipped"))) == CallTool(
        "track_parcel", '{"order_id": "1045"}', "workflow_2"
    )
    assert engine.next_move(workflow_log(found("pending"))) == CallModel(phrase_only=True)
    assert engine.next_move(workflow_log(found("shipped"), PARCEL)) == CallModel(phrase_only=True)
    phrased = model(3, text="It is on its way.")
    assert engine.next_move(workflow_log(found("shipped"), PARCEL, phrased)) == Reply(
        "It is on its way."
    )


def test_without_a_model_a_template_answers():
    silent = model(3, error="model_unavailable")

    assert engine.next_move(workflow_log(found("shipped"), PARCEL, silent)) == Reply(
        "Order 1045 is on its way. Blue Heron Post carries it under the number BH1. "
        "It is expected on 2026-12-02. Last seen: Sorted, Pendleton.",
        is_template=True,
    )


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"error": "not_found"}, "I can't find order 1045 in your account."),
        (
            {"error": "unavailable"},
            "I can't see order 1045 at the moment. Please try again in a little while.",
        ),
    ],
)
def test_the_template_tells_what_could_not_be_seen(result: dict[str, Any], text: str):
    steps = (tool(1, "find_orders", result=result), model(2, error="model_unavailable"))

    assert engine.next_move(workflow_log(*steps)) == Reply(text, is_template=True)


def test_a_workflow_gives_way_when_the_customer_says_more():
    phrased = model(2, text="It is packed.")
    interrupted = workflow_log(found("pending"), phrased, has_unheard_message=True)

    assert engine.next_move(interrupted) == CallModel()

    loop = model(3, ("cancel_order", "{}"), heard=2)
    assert engine.next_move(workflow_log(found("pending"), phrased, loop)) == CallTool(
        "cancel_order", "{}", "call_3_1"
    )
