"""Whatever a model writes: a proposal inside the order's own money and lines, or a named refusal."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from accounts.models import Shop
from tests.factories import make_line, make_order
from tools import registry, seal, strictjson
from tools.catalogue.base import EffectTool
from tools.policy import DeniedError, Ruling

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SHOP = Shop(slug="demo", currency="USD", refund_window_days=30, countries_served=["US"])
ORDERS = {
    "delivered": make_order(
        make_line(1200, 3, id="cups", refunded_quantity=1),
        make_line(2500, 1, id="tray"),
        id="1042",
        refunded=1200,
        delivered_at=NOW - timedelta(days=3),
    ),
    "pending": make_order(id="1042", status="pending"),
}
EFFECTS = [tool for tool in registry.TOOLS.values() if isinstance(tool, EffectTool)]

WORDS = ["1042", "cups", "tray", "damaged", "other", "US", "40.00", "12.00", "37.00", "", "\u202e"]
SCALARS: st.SearchStrategy[Any] = (
    st.sampled_from(WORDS)
    | st.text(max_size=12)
    | st.integers(-5, 5)
    | st.floats(allow_nan=True)
    | st.booleans()
    | st.none()
)
ITEM = st.fixed_dictionaries(
    {"item_id": st.sampled_from(["cups", "tray", "x"]), "quantity": st.integers(-1, 4)}
)
ADDRESS = st.fixed_dictionaries(
    {name: st.text(min_size=1, max_size=8) for name in ("name", "line1", "city", "postal_code")}
    | {"country": st.sampled_from(["US", "us", "GB"])}
)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "order_id": st.just("1042") | SCALARS,
        "items": st.lists(ITEM | SCALARS, max_size=3) | SCALARS,
        "amount": st.sampled_from(["40.00", "12.00", "0.01", "37.01"]) | SCALARS,
        "reason": st.sampled_from(["damaged", "other", "no_longer_needed"]) | SCALARS,
        "address": ADDRESS | SCALARS,
        "approved": SCALARS,
    },
)
LIKELY = st.fixed_dictionaries(
    {"order_id": st.just("1042"), "reason": st.sampled_from(["damaged", "other"])},
    optional={
        "items": st.lists(ITEM, max_size=3),
        "amount": st.sampled_from(["12.00", "24.00", "37.00", "49.00", "49.01", "0.01"]),
    },
) | st.fixed_dictionaries({"order_id": st.just("1042"), "address": ADDRESS})


@settings(max_examples=250, deadline=None)
@given(call=CALLS | LIKELY, tool=st.sampled_from(EFFECTS), status=st.sampled_from(list(ORDERS)))
def test_no_call_reaches_beyond_its_order(call, tool, status):
    order = ORDERS[status]
    try:
        arguments = tool.arguments.model_validate(strictjson.parse_object(json.dumps(call)))
        intent = tool.decide(arguments, order, SHOP, NOW, Ruling())
    except (strictjson.StrictJSONError, ValidationError, DeniedError):
        return

    assert set(call) <= set(tool.arguments.model_fields)
    assert (intent.kind, intent.order_id) == (tool.kind, order.id)
    assert seal.canonical([intent.request, intent.shown])
    if tool.kind == "refund":
        assert intent.amount is not None
        assert 0 < intent.amount <= order.captured - order.refunded
        assert intent.request["amount"] == intent.amount
        left = {line.id: line.quantity - line.refunded_quantity for line in order.lines}
        asked = intent.request["lines"]
        assert len({line["line_id"] for line in asked}) == len(asked)
        assert all(0 < line["quantity"] <= left[line["line_id"]] for line in asked)
    if tool.kind == "change_address":
        assert intent.request["country"] in SHOP.countries_served
        assert all(value.isprintable() for value in intent.request.values())


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(st.characters(codec=None), max_size=60)
    | st.text('{}[]":,0123456789eE+-.naNI\\u', max_size=40)
)
def test_any_text_is_an_object_that_can_be_stored_or_a_named_refusal(text):
    try:
        value = strictjson.parse_object(text)
    except strictjson.StrictJSONError:
        return

    stored = json.dumps(value, allow_nan=False)
    stored.encode()
    assert "\\u0000" not in stored
