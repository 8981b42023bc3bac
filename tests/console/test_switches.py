"""Kill switches in the console."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Role
from audit.models import Event
from tests.console.desk import make_person, text_of
from tests.factories import make_shop
from tools import adapters, history, registry
from tools.clock import database_now
from tools.models import Switch


def turn(client, **fields):
    page = client.get(reverse("console:switches"))
    given = {"csrfmiddlewaretoken": page.context["csrf_token"], "turn": "off", "tool": ""}
    return client.post(reverse("console:turn"), given | fields)


@pytest.fixture
def admin(db):
    return make_person(None, "root", role=Role.ADMIN)


def test_an_approver_stops_a_tool_of_their_shop_and_starts_it_again(shop, approver, sign_in):
    client = sign_in(approver)

    off = turn(client, shop=shop.pk, tool="refund_order", reason="Odd refunds since noon")
    assert off.status_code == 302
    assert registry.is_off(tool="refund_order", shop_id=shop.pk)
    assert not registry.is_off(tool="cancel_order", shop_id=shop.pk)
    assert "Odd refunds since noon" in text_of(client.get(reverse("console:switches")))

    on = turn(client, shop=shop.pk, tool="refund_order", turn="on", reason="It was the price list")
    assert on.status_code == 302
    assert not registry.is_off(tool="refund_order", shop_id=shop.pk)
    actions = list(Event.objects.order_by("id").values_list("action", "actor"))
    assert actions == [("kill_switch.thrown", "staff:dana"), ("kill_switch.released", "staff:dana")]


def test_only_an_admin_of_every_shop_stops_every_shop(shop, approver, admin, sign_in):
    refused = turn(sign_in(approver), shop="every", reason="Stop it all")
    assert refused.status_code == 403
    assert not Switch.objects.exists()

    assert turn(sign_in(admin), shop="every", reason="Stop it all").status_code == 302
    assert registry.is_off(tool="refund_order", shop_id=shop.pk)
    assert "Why switch it on again" not in text_of(
        sign_in(approver).get(reverse("console:switches"))
    )


def test_another_shops_switch_is_not_there(shop, approver, sign_in):
    other = make_shop(name="Elsewhere")

    answer = turn(sign_in(approver), shop=other.pk, reason="Stop them")

    assert answer.status_code == 404
    assert not Switch.objects.exists()
    assert "Elsewhere" not in text_of(sign_in(approver).get(reverse("console:switches")))


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": ""},
        {"reason": "   "},
        {"reason": "x" * 501},
        {"tool": "no_such_tool"},
        {"shop": "all"},
        {"turn": "sideways"},
    ],
)
def test_without_tool_shop_and_reason_nothing_is_switched(shop, approver, sign_in, fields):
    answer = turn(sign_in(approver), **{"shop": shop.pk, "reason": "Why not"} | fields)

    assert answer.status_code == 422
    assert not Switch.objects.exists()
    assert not Event.objects.exists()


def test_what_is_not_off_cannot_be_switched_on(shop, approver, sign_in):
    answer = turn(sign_in(approver), shop=shop.pk, turn="on", reason="Just because")

    assert answer.status_code == 409
    assert "not thrown" in text_of(answer)
    assert not Event.objects.exists()


def test_a_reason_is_shown_as_text(shop, approver, sign_in):
    client = sign_in(approver)
    turn(client, shop=shop.pk, reason="<script>alert(1)</script>")

    page = text_of(client.get(reverse("console:switches")))

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_shop_that_is_not_called_is_shown_to_its_people_with_why(shop, approver, sign_in):
    other = make_shop(name="Elsewhere")
    adapters.pause(other)
    client = sign_in(approver)
    assert "Not called" not in text_of(client.get(reverse("console:switches")))

    adapters.pause(shop)

    page = text_of(client.get(reverse("console:switches")))
    assert "Not called at the moment" in page
    assert "The shop does not take our own name and secret." in page
    assert "Elsewhere" not in page
    told = Client().get("/metrics").content.decode()
    assert 'countersign_shops_not_called{state="refused"} 2.0' in told
    assert 'countersign_shops_not_called{state="away"} 0.0' in told
    ready = Client().get("/healthz/ready").json()
    assert ready["checks"]["shops_not_called"] == 2
    assert "shops_not_called" not in ready["missing"]


def test_that_nothing_is_sent_unseen_after_a_restore_is_said(shop, approver, sign_in):
    history.begin(since=database_now(), reason="files <b>put back</b>", by="operator:dana")

    page = text_of(sign_in(approver).get(reverse("console:switches")))

    assert "Looking before every send" in page
    assert "files &lt;b&gt;put back&lt;/b&gt;" in page
    assert "countersign_looking_first 1.0" in Client().get("/metrics").content.decode()
