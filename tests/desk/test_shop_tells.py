"""The pretend shop and our door together: what it tells settles what we could not know."""

import pytest
from django.utils import timezone

from accounts.webhooks import add_webhook_secret
from orders_stub.__main__ import WEBHOOK_SECRET
from tests.desk.telling import Teller
from tests.letterbox import Letterbox, open_letterbox
from tests.stubs import run_shop
from tests.tools.desk import approved, find_out, send, writes
from tools.models import State

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def letterbox():
    with open_letterbox() as box:
        yield box


@pytest.fixture(scope="module")
def shop_process(tmp_path_factory, letterbox: Letterbox):
    folder = tmp_path_factory.mktemp("telling") / "data"
    with run_shop(folder, arguments=("--webhook-url", letterbox.url)) as running:
        yield running


@pytest.fixture
def forward(shop_row, letterbox: Letterbox):
    """Hand the next so many letters to our door, as the network would; gives what became of them."""
    add_webhook_secret(
        shop_id=shop_row.pk,
        name="demo",
        secret=WEBHOOK_SECRET,
        actor="system",
        now=timezone.now(),
    )
    door = Teller(shop_row, WEBHOOK_SECRET)

    def hand_over(count: int = 1) -> list[str]:
        answers = []
        for _ in range(count):
            letter = letterbox.next()
            answer = door.post(letter.body, letter.headers)
            answers.append(answer.json().get("taken", str(answer.status_code)))
        return answers

    return hand_over


@pytest.mark.parametrize("fault", ["error_after", "unreadable"])
def test_an_outcome_that_we_lost_is_told_before_we_could_ask(buyer, forward, fault):
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.fault(fault, scope={"path": "/refunds"}, times=1)
    buyer.shop.fault("error_before", scope={"path": "/effects"})
    assert send(operation).state == State.UNKNOWN

    assert forward() == ["accepted"]
    found = find_out(operation)

    (effect,) = buyer.shop.effects(order_id=operation.order_id)
    assert (found.state, found.reference) == (State.SUCCEEDED, effect["id"])
    assert len(writes(buyer, operation)) == 1


@pytest.mark.parametrize(
    ("tool", "path"), [("cancel_order", "/cancel"), ("change_address", "/address")]
)
def test_a_lost_change_of_an_order_is_told_as_well(buyer, forward, tool, path):
    operation = approved(buyer, buyer.order(4000, status="pending"), tool)
    buyer.shop.fault("error_after", scope={"path": path}, times=1)
    buyer.shop.fault("error_before", scope={"path": "/effects"})
    send(operation)

    assert forward() == ["accepted"]
    assert find_out(operation).state == State.SUCCEEDED
    assert len(writes(buyer, operation)) == 1


def test_twice_late_and_forged_is_still_one_effect(buyer, forward):
    operation = approved(buyer, buyer.order(4000))
    scope = {"order": operation.order_id}
    for fault in ("webhook_twice", "webhook_forged"):
        buyer.shop.fault(fault, scope=scope, times=1)
    buyer.shop.fault("webhook_late", scope=scope, times=1, seconds=0.3)
    buyer.shop.fault("error_after", scope={"path": "/refunds"}, times=1)
    buyer.shop.fault("lookup_lag", scope={"path": "/effects"}, seconds=60)
    assert send(operation).state == State.UNKNOWN
    assert find_out(operation).state == State.UNKNOWN

    assert sorted(forward(3)) == ["401", "accepted", "repeated"]

    assert find_out(operation, epoch=3).state == State.SUCCEEDED
    assert len(buyer.shop.effects(order_id=operation.order_id)) == 1
    assert len(writes(buyer, operation)) == 1


def test_what_we_never_asked_for_is_noted_and_left_alone(buyer, forward):
    order_id = buyer.order()
    buyer.shop.refund_by_hand(order_id, 500)
    buyer.shop.edit_order(order_id, status="shipped")

    assert forward(2) == ["unmatched", "unmatched"]
