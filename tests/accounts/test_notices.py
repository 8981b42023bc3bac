"""Shops are told what happened: signed, in order, at least once, and never more than they may know."""

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone
from standardwebhooks import Webhook, WebhookVerificationError

from accounts import endpoints, notices
from accounts.models import Endpoint, Notice, Shop
from audit import services as audit
from audit.models import Event
from tests.factories import make_shop
from tests.letterbox import Letter, Letterbox, open_letterbox

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def box(settings) -> Iterator[Letterbox]:
    settings.DEMO = True  # which lets addresses of this machine through
    with open_letterbox() as box:
        yield box


@pytest.fixture
def shop() -> Shop:
    return make_shop()


def listen(shop: Shop, url: str, name: str = "main") -> tuple[Endpoint, str]:
    return endpoints.add_endpoint(
        shop_id=shop.pk, name=name, url=url, actor="system", now=timezone.now()
    )


@transaction.atomic
def happen(shop: Shop, action: str = "refund.succeeded", **fields: Any) -> Event:
    """Something that the trail records of a shop."""
    details: dict[str, Any] = {"task_id": 81, "order_id": "1042", "amount": 4000, "currency": "USD"}
    return audit.record(
        actor="staff:dana",
        action=action,
        subject="operation:7",
        at=timezone.now(),
        shop_id=shop.pk,
        customer="ada",
        **(details | fields),
    )


def verified(letter: Letter, secret: str) -> Any:
    """What the letter says, by a receiver that follows Standard Webhooks."""
    return Webhook(secret).verify(letter.body, letter.headers)


def wake(endpoint: Endpoint) -> None:
    """Let its rest be over."""
    Endpoint.objects.filter(pk=endpoint.pk).update(rests_until=None)


def test_an_event_is_told_once_signed_and_without_a_persons_words(shop, box):
    endpoint, secret = listen(shop, box.url)
    event = happen(shop, data={"why": "internal"}, personal="I live at 5 Elm Street")

    assert notices.list_due(now=timezone.now()) == [endpoint.pk]
    assert notices.deliver(endpoint_id=endpoint.pk) == 1
    assert notices.deliver(endpoint_id=endpoint.pk) == 0

    letter = box.next()
    said = verified(letter, secret)
    assert box.letters.empty()
    assert said == {
        "specversion": "1.0",
        "id": letter.id,
        "source": f"http://127.0.0.1:8000/shops/{shop.slug}",
        "type": "countersign.refund.succeeded",
        "subject": "operation:7",
        "time": event.at.isoformat(),
        "datacontenttype": "application/json",
        "data": {
            "task": 81,
            "order_id": "1042",
            "amount": 4000,
            "currency": "USD",
            "actor": "staff",
        },
    }
    assert notices.list_due(now=timezone.now()) == []


def test_what_is_rolled_back_is_told_to_nobody(shop, box):
    listen(shop, box.url)
    with transaction.atomic():
        happen(shop)
        assert Notice.objects.exists()
        transaction.set_rollback(True)

    assert not Notice.objects.exists()


def test_only_the_shop_itself_is_told_and_only_of_what_is_listed(shop, box):
    endpoint, _ = listen(shop, box.url)
    happen(make_shop())
    happen(shop, "step.finished")
    happen(shop, "task.handed_off", amount=None, currency="")

    assert [notice.type for notice in endpoint.notices.all()] == ["task.handed_off"]
    assert Notice.objects.count() == 1


def test_a_receiver_that_is_away_is_told_later_with_the_same_bytes_and_id(shop, box):
    endpoint, secret = listen(shop, box.url)
    box.answers = [503]
    happen(shop)
    happen(shop, order_id="1043")

    assert notices.deliver(endpoint_id=endpoint.pk) == 0
    assert notices.list_due(now=timezone.now()) == [], "it rests"
    assert notices.deliver(endpoint_id=endpoint.pk) == 0
    wake(endpoint)
    assert notices.deliver(endpoint_id=endpoint.pk) == 2

    first, again, second = box.next(), box.next(), box.next()
    assert (first.id, first.body) == (again.id, again.body)
    assert [verified(letter, secret)["data"]["order_id"] for letter in (again, second)] == [
        "1042",
        "1043",
    ]
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.rests_until) == (0, None)


def test_rests_grow_and_three_days_later_it_has_missed_it(shop, box):
    endpoint, _ = listen(shop, box.url)
    happen(shop)
    rests = []
    for _ in range(3):
        box.answers = [500]
        wake(endpoint)
        notices.deliver(endpoint_id=endpoint.pk)
        endpoint.refresh_from_db()
        assert endpoint.rests_until is not None
        rests.append(endpoint.rests_until - timezone.now())
    assert rests == sorted(rests)

    Notice.objects.update(created_at=timezone.now() - timedelta(days=3, seconds=1))
    box.answers = [500]
    wake(endpoint)
    notices.deliver(endpoint_id=endpoint.pk)

    notice = Notice.objects.get()
    assert notice.given_up_at is not None
    assert (notice.attempts, notice.last_answer) == (4, "500")
    assert Event.objects.latest("pk").action == "webhook_endpoint.notice_given_up"


def test_one_notice_that_is_refused_again_and_again_does_not_hold_up_the_rest(shop, box):
    endpoint, _ = listen(shop, box.url)
    happen(shop)
    happen(shop, order_id="1043")
    for _ in range(notices.MAX_ATTEMPTS):
        box.answers = [422]
        wake(endpoint)
        notices.deliver(endpoint_id=endpoint.pk)

    refused, told = Notice.objects.order_by("pk")
    assert refused.given_up_at is not None
    assert refused.attempts == notices.MAX_ATTEMPTS
    assert told.delivered_at is not None


def test_an_endpoint_that_is_gone_is_disabled_and_keeps_no_secret(shop, box):
    endpoint, _ = listen(shop, box.url)
    box.answers = [410]
    happen(shop)
    happen(shop)

    notices.deliver(endpoint_id=endpoint.pk)
    happen(shop)

    endpoint.refresh_from_db()
    assert endpoint.disabled_at is not None
    assert bytes(endpoint.secret_encrypted) == b""
    assert not Notice.objects.filter(given_up_at=None).exists()
    assert Notice.objects.count() == 2, "nothing more is kept for it"
    assert notices.list_due(now=timezone.now()) == []


def test_of_two_workers_with_one_endpoint_one_tells_it(shop, box):
    endpoint, _ = listen(shop, box.url)
    happen(shop)
    Endpoint.objects.update(rests_until=timezone.now() + notices.HELD)  # another's turn

    assert notices.deliver(endpoint_id=endpoint.pk) == 0
    assert box.letters.empty()
    assert Notice.objects.get().attempts == 0


def test_while_a_secret_is_replaced_both_sign_and_then_only_the_new_one(shop, box):
    endpoint, old = listen(shop, box.url)
    new = endpoints.replace_secret(
        shop_id=shop.pk,
        name="main",
        overlap=timedelta(hours=1),
        actor="system",
        now=timezone.now(),
    )
    happen(shop)
    notices.deliver(endpoint_id=endpoint.pk)
    letter = box.next()
    assert verified(letter, old) == verified(letter, new)

    Endpoint.objects.update(former_until=timezone.now())
    happen(shop)
    notices.deliver(endpoint_id=endpoint.pk)
    letter = box.next()
    verified(letter, new)
    with pytest.raises(WebhookVerificationError):
        verified(letter, old)


@pytest.mark.parametrize(
    "forge",
    [
        lambda letter: Letter(letter.headers, letter.body.replace(b"4000", b"9000")),
        lambda letter: Letter(letter.headers | {"webhook-id": "evt_other"}, letter.body),
        lambda letter: Letter(letter.headers | {"webhook-timestamp": "1700000000"}, letter.body),
    ],
    ids=["another sum", "another id", "an old one again"],
)
def test_a_receiver_can_tell_a_forged_or_replayed_one(shop, box, forge):
    endpoint, secret = listen(shop, box.url)
    happen(shop)
    notices.deliver(endpoint_id=endpoint.pk)

    with pytest.raises(WebhookVerificationError):
        verified(forge(box.next()), secret)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hooks",
        "https://169.254.169.254/latest",
        "https://10.0.0.5/hooks",
        "https://[::1]/hooks",
        "https://user:word@example.com/hooks",
        "ftp://example.com/hooks",
        "not an address",
        "",
    ],
)
def test_an_address_that_leads_inside_is_refused(shop, settings, url):
    settings.DEMO = False
    with pytest.raises(endpoints.BadEndpointError):
        listen(shop, url)

    assert not Endpoint.objects.exists()
    assert not Event.objects.exists()


def test_a_name_that_leads_inside_later_is_called_in_vain(shop, box, settings):
    endpoint, _ = listen(shop, box.url)
    happen(shop)
    settings.DEMO = False

    assert notices.deliver(endpoint_id=endpoint.pk) == 0
    assert box.letters.empty()
    assert Notice.objects.get().last_answer == "unreachable"


def test_the_command_adds_lists_rotates_and_disables(shop, box):
    def run(*words: str) -> str:
        out = StringIO()
        call_command("webhook_endpoint", *words, stdout=out)
        return out.getvalue()

    assert "whsec_" in run("add", shop.slug, "main", "--url", box.url)
    happen(shop)
    assert f"main  {box.url}  1 waiting" in run("list", shop.slug)
    assert "whsec_" in run("rotate", shop.slug, "main")
    run("disable", shop.slug, "main")
    assert "disabled" in run("list", shop.slug)
    for words in (
        ("add", shop.slug, "main", "--url", box.url),
        ("add", shop.slug, "a b", "--url", box.url),
        ("rotate", shop.slug, "main"),
        ("disable", "nobody", "main"),
    ):
        with pytest.raises(CommandError):
            run(*words)
    assert Endpoint.objects.count() == 1
    assert [
        event.action for event in Event.objects.filter(action__startswith="webhook_endpoint")
    ] == [
        "webhook_endpoint.added",
        "webhook_endpoint.secret_replaced",
        "webhook_endpoint.disabled",
    ]
