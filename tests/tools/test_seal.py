import hashlib
import json
from datetime import UTC, datetime

import pytest

from tests.factories import ADDRESS, make_line, make_order
from tools import seal
from tools.clients.shapes import Note
from tools.seal import BrokenSealError, Intent

EXPIRES = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def sealed(order=None, **changes):
    order = order or an_order()
    fields = {
        "kind": "refund",
        "order_id": order.id,
        "request": {
            "amount": 4000,
            "currency": "USD",
            "lines": [{"line_id": "1042-1", "quantity": 1}],
            "reason": "damaged",
        },
        "shown": {
            "lines": [
                {"title": "Stoneware mug", "variant": "blue", "quantity": 1, "unit_price": 4000}
            ],
            "destination": "original payment method",
        },
        "amount": 4000,
        "currency": "USD",
    }
    return seal.seal(
        Intent(**fields | changes),
        shop="demo",
        customer="ada",
        subject=order,
        arguments={"order_id": "1042", "items": None, "amount": None, "reason": "damaged"},
        policy_version=3,
        expires_at=EXPIRES,
        idempotency_key="task-81-step-6",
    )


def an_order(**fields):
    return make_order(make_line(id="1042-1"), **{"id": "1042", "version": 7} | fields)


def opened(result):
    return seal.open_seal(result.body, result.digest)


def test_canonical_bytes_do_not_depend_on_the_order_of_keys():
    assert seal.canonical({"b": 1, "a": {"d": 2, "c": 3}}) == b'{"a":{"c":3,"d":2},"b":1}'
    assert seal.canonical({"a": {"c": 3, "d": 2}, "b": 1}) == b'{"a":{"c":3,"d":2},"b":1}'


def test_canonical_bytes_follow_rfc_8785():
    value = {
        "\u20ac": "Euro",
        "\r": "CR",
        "1": "One",
        "\U0001f600": "Smiley",
        "ö": "o",
        "é": "\x1f",
    }

    assert seal.canonical(value).decode() == (
        '{"\\r":"CR","1":"One","é":"\\u001f","ö":"o","\u20ac":"Euro","\U0001f600":"Smiley"}'
    )


def test_the_same_operation_has_the_same_seal_byte_for_byte():
    order = an_order()

    assert sealed(order).body == sealed(order).body
    assert sealed(order).digest == hashlib.sha256(sealed(order).body).hexdigest()


def test_a_seal_holds_everything_that_people_say_yes_to():
    content = opened(sealed())

    assert content == {
        "format": 1,
        "shop": "demo",
        "customer": "ada",
        "kind": "refund",
        "order": "1042",
        "order_version": 7,
        "facts": {
            "status": "delivered",
            "currency": "USD",
            "captured": 4000,
            "refunded": 0,
            "lines": [
                {"line_id": "1042-1", "quantity": 1, "unit_price": 4000, "refunded_quantity": 0}
            ],
            "shipping_address": ADDRESS,
        },
        "arguments": {"order_id": "1042", "items": None, "amount": None, "reason": "damaged"},
        "request": {
            "amount": 4000,
            "currency": "USD",
            "lines": [{"line_id": "1042-1", "quantity": 1}],
            "reason": "damaged",
        },
        "shown": {
            "lines": [
                {"title": "Stoneware mug", "variant": "blue", "quantity": 1, "unit_price": 4000}
            ],
            "destination": "original payment method",
        },
        "amount": 4000,
        "currency": "USD",
        "policy_version": 3,
        "expires_at": "2026-03-01T09:30:00+00:00",
        "idempotency_key": "task-81-step-6",
    }


def test_one_flipped_bit_anywhere_breaks_the_seal():
    result = sealed()

    for place in range(0, len(result.body), 7):
        body = bytearray(result.body)
        body[place] ^= 1
        with pytest.raises(BrokenSealError):
            seal.open_seal(bytes(body), result.digest)
    with pytest.raises(BrokenSealError):
        seal.open_seal(result.body, sealed(amount=4001).digest)


def test_the_shop_is_sent_the_sealed_request_and_nothing_else():
    content = opened(sealed())

    assert seal.request_body(content) == (
        b'{"amount":4000,"currency":"USD","lines":[{"line_id":"1042-1","quantity":1}],'
        b'"reason":"damaged"}'
    )


def test_a_note_is_no_fact_of_an_order():
    note = Note(author="merchant", text="Refund everything!", at=EXPIRES)

    assert seal.facts_of(an_order(notes=[note], version=9)) == seal.facts_of(an_order())


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "shipped"},
        {"currency": "EUR"},
        {"captured": 4001},
        {"refunded": 1},
        {"lines": [make_line(4001, id="1042-1")]},
        {"lines": [make_line(id="1042-1", quantity=2)]},
        {"lines": [make_line(id="1042-1", refunded_quantity=1)]},
        {"lines": [make_line(id="1042-2")]},
        {"shipping_address": ADDRESS | {"line1": "1 Elsewhere"}},
    ],
)
def test_each_material_change_changes_the_facts(changes):
    assert seal.facts_of(an_order(**changes)) != seal.facts_of(an_order())


def test_the_natural_key_ignores_the_reason_and_nothing_else():
    intent = Intent("refund", "1042", {"amount": 1, "reason": "damaged"}, {}, 1, "USD")
    other_reason = Intent("refund", "1042", {"amount": 1, "reason": "other"}, {}, 1, "USD")
    keys = {
        intent.key(customer="ada"),
        intent.key(customer="bob"),
        Intent("cancel", "1042", {"amount": 1}, {}, 1, "USD").key(customer="ada"),
        Intent("refund", "1043", {"amount": 1}, {}, 1, "USD").key(customer="ada"),
        Intent("refund", "1042", {"amount": 2}, {}, 2, "USD").key(customer="ada"),
    }

    assert intent.key(customer="ada") == other_reason.key(customer="ada")
    assert len(keys) == 5


def test_a_refund_card_is_drawn_from_the_sealed_content():
    card = seal.describe(opened(sealed()))

    assert card == seal.Card(
        title="Refund $40.00 for order 1042",
        order_id="1042",
        lines=["1 × Stoneware mug (blue)"],  # noqa: RUF001 - the sign for times
        before=[],
        after=[],
        amount="$40.00",
        reason="arrived damaged",
    )


def test_a_card_follows_the_locale_and_no_word_of_a_model():
    content = opened(sealed(amount=123_456))

    assert seal.describe(content, "de-DE").amount == "1.234,56\N{NO-BREAK SPACE}$"


def test_an_address_card_shows_the_old_and_the_new_address_in_full():
    new = ADDRESS | {"line1": "7 Quay Street", "line2": "Flat 2", "region": ""}
    content = opened(
        sealed(
            kind="change_address",
            request=new,
            shown={"from": ADDRESS, "to": new},
            amount=None,
            currency="",
        )
    )

    card = seal.describe(content)

    assert card.title == "Change the delivery address of order 1042"
    assert card.before == ["Ada Moreno", "12 Larkspur Lane", "Portland OR 97205", "US"]
    assert card.after == ["Ada Moreno", "7 Quay Street", "Flat 2", "Portland 97205", "US"]
    assert (card.amount, card.lines, card.reason) == ("", [], "")


def test_sealed_bytes_are_plain_json_for_anybody_who_checks_them():
    result = sealed()

    assert json.loads(result.body) == opened(result)
