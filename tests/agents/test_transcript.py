"""The prompt is built from the log alone, and every call in it has its answer."""

import json

from agents.moves import LoggedStep
from agents.transcript import REPEATED, Said, Setting, build
from tests.agents.test_engine import model, tool

SETTING = Setting(shop="Harbour", today="2026-11-30", currency="USD", customer="Ada", locale="en")
HELLO = Said(1, "customer", "Refund 1042")


def built(
    *steps: LoggedStep, messages: tuple[Said, ...] = (HELLO,), opening: int = 1, heard: int = 1
):
    return build(
        prompt="RULES",
        setting=SETTING,
        messages=messages,
        steps=steps,
        opening_seq=opening,
        heard_seq=heard,
    )


def test_the_first_message_is_the_prompt_and_nothing_else():
    assert built()[0] == {"role": "system", "content": "RULES"}
    assert "Ada" in built()[1]["content"]
    assert built()[2:] == [{"role": "user", "content": "Refund 1042"}]


def test_a_call_stands_with_its_answer():
    asked = model(1, ("find_orders", '{"order_id": "1042"}'))
    answered = tool(2, "find_orders", result={"orders": []})

    messages = built(asked, answered)[3:]

    assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"] == "call_1_1"
    assert json.loads(messages[1]["content"]) == {"orders": []}


def test_a_call_that_was_never_run_is_left_out():
    asked = model(1, ("find_orders", "{}"), ("refund_order", "{}"))

    messages = built(asked, tool(2, "find_orders"))[3:]

    assert [call["function"]["name"] for call in messages[0]["tool_calls"]] == ["find_orders"]


def test_a_workflows_own_call_is_told_with_its_answer():
    step = LoggedStep(1, "tool", "find_orders", "workflow_1", '{"order_id": "1"}', {"orders": []})

    messages = built(step)[3:]

    assert messages[0]["tool_calls"][0]["function"]["name"] == "find_orders"
    assert messages[1]["role"] == "tool"


def test_a_message_in_mid_task_stands_before_the_first_model_step_that_heard_it():
    said = (HELLO, Said(2, "customer", "The blue one"))
    steps = (model(1, ("find_orders", "{}"), heard=1), tool(2, "find_orders"))

    before = built(*steps, messages=said, heard=2)
    later = built(*steps, model(3, text="Which?", heard=2), messages=said, heard=2)

    assert [message["role"] for message in before[2:]] == ["user", "assistant", "tool", "user"]
    assert [message["role"] for message in later[2:]] == [
        "user", "assistant", "tool", "user", "assistant",
    ]  # fmt: skip


def test_what_was_not_heard_yet_is_not_shown():
    said = (HELLO, Said(2, "customer", "Stop"))

    assert [message["content"] for message in built(messages=said, heard=1)[2:]] == ["Refund 1042"]


def test_earlier_conversation_keeps_its_speakers_and_its_end():
    said = tuple(Said(n, "agent" if n % 2 else "customer", str(n)) for n in range(1, 41))

    history = built(messages=said, opening=40, heard=40)[2:]

    assert len(history) == 30
    assert history[-1] == {"role": "user", "content": "40"}
    assert history[0] == {"role": "assistant", "content": "11"}


def test_a_repeated_call_is_told_to_the_model():
    same = ("find_orders", "{}")
    steps = (model(1, same), tool(2, *same), model(3, same), tool(4, *same))

    assert built(*steps)[-1] == {"role": "system", "content": REPEATED}
    assert built(*steps[:2])[-1]["role"] == "tool"
