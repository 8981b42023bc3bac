"""Whatever is said and found, the planner answers, and acts on nothing that was not asked for."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_stub.talk import TOOL_NAMES, Talk, World

EFFECTS = ("refund_order", "cancel_order", "change_address", "close_ticket")
WORDS = st.sampled_from(
    [
        "refund",
        "cancel",
        "return",
        "change",
        "address",
        "order",
        "orders",
        "number",
        "where",
        "is",
        "my",
        "the",
        "it",
        "that",
        "one",
        "two",
        "both",
        "mug",
        "chair",
        "1042",
        "#1043",
        "1044",
        "1045",
        "9999",
        "$10",
        "half",
        "not",
        "don't",
        "no",
        "yes",
        "stop",
        "wait",
        "actually",
        "meant",
        "only",
        "and",
        ",",
        ".",
        "?",
        "!",
        "if",
        "broken",
        "never",
        "arrived",
        "policy",
        "person",
        "close",
        "thanks",
        "hello",
        "to",
        "12",
        "High",
        "Street",
        ",",
        "Springfield",
        "IL",
        "62704",
        "US\n",
    ]
)
SENTENCES = st.lists(WORDS, max_size=14).map(" ".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "orders",
                    "order_id",
                    "items",
                    "item_id",
                    "status",
                    "total",
                    "state",
                    "events",
                    "at",
                    "error",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.sampled_from(["1042", "40.00"])
)
LINES = st.dictionaries(
    st.sampled_from(["item_id", "title", "variant", "quantity", "unit_price", "refunded_quantity"]),
    SCALARS,
)
ORDERS = st.dictionaries(
    st.sampled_from(
        [
            "order_id",
            "status",
            "placed_on",
            "delivered_on",
            "total",
            "currency",
            "refunded",
            "ship_to",
        ]
    ),
    SCALARS,
)
ODD_ORDERS = st.lists(
    st.builds(
        lambda order, lines: {"order_id": "1042", **order, "items": lines},
        ORDERS,
        st.lists(LINES, max_size=3),
    ),
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(messages=st.lists(SENTENCES | st.text(max_size=40), min_size=1, max_size=3))
def test_any_messages_get_an_answer_in_the_end(messages):
    talk = Talk()

    for message in messages:
        said = talk.say(message)

        assert said.strip()
        assert {name for name, _ in talk.calls} <= set(TOOL_NAMES)


@settings(max_examples=60, deadline=None)
@given(result=JSON, tool=st.sampled_from(TOOL_NAMES), message=SENTENCES)
def test_any_result_is_survived(result, tool, message):
    value = result if isinstance(result, dict) else {"orders": result}
    talk = Talk(World({tool: json.loads(json.dumps(value))}))

    assert talk.say(message or "refund 1042").strip()


@settings(max_examples=60, deadline=None)
@given(orders=ODD_ORDERS, message=SENTENCES)
def test_orders_of_any_shape_are_survived(orders, message):
    talk = Talk(World({"find_orders": {"orders": orders}}))

    assert talk.say(f"{message} order 1042").strip()
    assert talk.say("refund the mug").strip()


@settings(max_examples=60, deadline=None)
@given(note=SENTENCES, place=SENTENCES)
def test_no_text_of_others_moves_anything(note, place):
    world = World()
    for order in world.orders:
        order["notes"] = [{"author": "customer", "text": note}]
        order["ship_to"]["name"] = note
        order["items"][0]["title"] = place
    talk = Talk(world)

    for message in ("what is the status of order 1047?", "where is order 1045?", "list my orders"):
        talk.say(message)

        assert not {name for name, _ in talk.calls} & set(EFFECTS)


@settings(max_examples=60, deadline=None)
@given(message=SENTENCES)
def test_only_orders_that_were_named_or_found_are_acted_on(message):
    talk = Talk()
    known = {order["order_id"] for order in talk.world.orders}

    talk.say(message)

    for name, args in talk.calls:
        if name in EFFECTS and "order_id" in args:
            assert args["order_id"] in known
