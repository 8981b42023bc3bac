import pytest
from django.utils import timezone

from accounts import services as accounts
from tests.factories import ADDRESS, make_operation
from tests.tools.desk import look
from tools import facts
from tools.seal import open_seal

pytestmark = pytest.mark.django_db


def sealed(buyer, order_id, tool="refund_order"):
    operation = make_operation(buyer.row, look(buyer, order_id), tool)
    return open_seal(operation.seal, operation.digest)


def test_facts_that_did_not_change_are_shown_the_same(buyer):
    found = facts.look_up(buyer.row, sealed(buyer, buyer.order(4000)))

    assert not found.has_changed
    assert not any(fact.differs for fact in found.facts)
    assert found.facts[1] == facts.Fact("Paid", "$40.00 USD", "$40.00 USD")


def test_a_changed_fact_is_shown_beside_the_sealed_one(buyer):
    content = sealed(buyer, buyer.order(4000))
    buyer.shop.refund_by_hand(content["order"], 500)

    found = facts.look_up(buyer.row, content)

    assert found.has_changed
    assert [fact for fact in found.facts if fact.differs] == [
        facts.Fact("Refunded so far", "$0.00 USD", "$5.00 USD", differs=True)
    ]


def test_texts_of_the_shop_are_made_safe_to_show(buyer):
    order_id = buyer.order(
        lines=[{"title": "Mug\u202egnp", "unit_price": 4000}],
        shipping_address=ADDRESS | {"line2": "gate\u202e4321"},
    )

    shown = repr(facts.look_up(buyer.row, sealed(buyer, order_id)).facts)

    assert "Mug[U+202E]gnp" in shown
    assert "gate[U+202E]4321" in shown
    assert "\\u202e" not in shown


def test_without_our_leave_to_act_the_sealed_facts_remain(buyer):
    content = sealed(buyer, buyer.order(4000))
    accounts.revoke_delegation(
        customer_id=buyer.row.pk, reason="signed_out", actor="customer:x", now=timezone.now()
    )

    found = facts.look_up(buyer.row, content)

    assert found.trouble == facts.REVOKED
    assert found.order is None
    assert found.facts[1] == facts.Fact("Paid", "$40.00 USD")


def test_a_shop_that_does_not_answer_is_no_error(buyer):
    content = sealed(buyer, buyer.order(4000))
    for status, trouble in ((500, facts.AWAY), (429, facts.BUSY), (404, facts.NOT_FOUND)):
        buyer.shop.fault("error_before", scope={"method": "GET"}, times=1, status=status)

        assert facts.look_up(buyer.row, content).trouble == trouble
