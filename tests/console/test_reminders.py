"""Questions that wait too long: how that is counted, who is told, and that telling decides nothing."""

import json
import re
from datetime import UTC, datetime, time, timedelta
from email import message_from_bytes
from email.policy import default
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts import endpoints
from accounts.models import Notice, Role, Shop
from approvals import handling, reminding
from approvals.attention import Hours
from approvals.models import Approval, Attention, Reminder
from audit.models import Event
from tests.console.desk import changes, make_person, make_question, operation_of, page_of, text_of
from tests.console.test_casework import send
from tests.console.test_inbox import INBOX, move
from tests.factories import make_customer, make_shop, say_no, say_yes
from tests.postbox import run_postbox

NEW_YORK = ZoneInfo("America/New_York")
NINE_TO_FIVE = Hours(time(9), time(17), frozenset({1, 2, 3, 4, 5}), NEW_YORK)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=NEW_YORK)


@pytest.fixture(scope="module")
def postbox():
    with run_postbox() as box:
        yield box


@pytest.fixture
def box(postbox, settings):
    postbox.reset()
    settings.SMTP_URL = postbox.url
    settings.PUBLIC_URL = "https://desk.example"
    return postbox


@pytest.fixture
def shop(db) -> Shop:
    """A shop that is at work round the clock, and has a sender."""
    shop = make_shop(name="Juniper & Clay", mail_from="care@shop.example")
    Attention.objects.create(
        shop=shop, opens_at=time(0), closes_at=time(23, 59, 59), weekdays=[1, 2, 3, 4, 5, 6, 7]
    )
    return shop


@pytest.fixture
def approver(shop):
    return make_person(shop, "dana", is_approver=True, email="dana@shop.example")


def waiting(shop: Shop, hours: float, **fields) -> Approval:
    approval = make_question(shop, **fields)
    move(approval, asked_at=-hours)
    return Approval.objects.select_related("operation").get(pk=approval.pk)


def remind() -> int:
    return reminding.remind_due(now=timezone.now())


def mails(box) -> list[tuple[list[str], str, str]]:
    """To whom, subject and text of everything that was taken."""
    told = []
    for envelope in box.taken:
        mail = message_from_bytes(envelope.content, policy=default)
        told.append((envelope.rcpt_tos, str(mail["Subject"]), mail.get_content()))
    return told


# --- How long is long ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        ("2026-11-30 10:00", "2026-11-30 12:30", 2.5),
        ("2026-11-30 07:00", "2026-11-30 10:00", 1),
        ("2026-11-27 16:00", "2026-11-30 10:00", 2),  # over a weekend
        ("2026-11-28 09:00", "2026-11-29 17:00", 0),  # all of it a weekend
        ("2026-11-30 18:00", "2026-12-01 08:59", 0),
        ("2026-11-30 12:00", "2026-11-30 11:00", 0),
        ("2026-03-06 09:00", "2026-03-09 17:00", 16),  # the clocks go forward in between
        ("2026-01-01 00:00", "2026-12-31 00:00", 86 * 8),  # counting has an end
    ],
)
def test_only_working_hours_count_on_the_shops_own_clock(start: str, end: str, hours: float):
    assert NINE_TO_FIVE.worked(at(start), at(end)) == timedelta(hours=hours)


def test_a_day_on_which_the_clock_is_put_back_is_counted_as_it_is_lived():
    all_day = Hours(time(0), time(23, 59, 59), frozenset(range(1, 8)), NEW_YORK)

    worked = all_day.worked(at("2026-11-01 00:00"), at("2026-11-01 12:00"))

    assert worked == timedelta(hours=13)


def test_the_inbox_marks_what_waits_long_and_what_is_late(shop, approver, sign_in):
    waiting(shop, 0.5)
    client = sign_in(approver)
    assert "mark-late" not in text_of(client.get(INBOX))
    assert "waits long" not in text_of(client.get(INBOX))

    waiting(shop, 1.5)
    assert text_of(client.get(INBOX)).count("waits long") == 1
    late = waiting(shop, 4.5)

    assert text_of(client.get(INBOX)).count('"mark-late">late') == 1
    assert '"mark-late">late' in text_of(client.get(page_of(late)))


# --- Who is told --------------------------------------------------------------------------------


def test_everybody_who_may_answer_is_told_once_of_each_level(shop, approver, box):
    make_person(shop, "erin", is_approver=True, email="erin@shop.example")
    make_person(shop, "sam", email="sam@shop.example")
    make_person(make_shop(), "stranger", is_approver=True, email="stranger@other.example")
    approval = waiting(shop, 1.5)

    assert remind() == 2
    assert remind() == 0

    assert sorted(to for to, _, _ in mails(box)) == [["dana@shop.example"], ["erin@shop.example"]]
    move(approval, asked_at=-5)
    assert remind() == 2
    assert remind() == 0
    assert Reminder.objects.filter(status="sent").count() == 4
    assert Event.objects.filter(action="approval.reminded").count() == 4


def test_one_mail_tells_a_person_of_everything_that_waits(shop, approver, box):
    first, second = waiting(shop, 1.5), waiting(shop, 2)

    remind()

    ((to, subject, text),) = mails(box)
    assert to == ["dana@shop.example"]
    assert subject == "2 approvals wait for you: Juniper & Clay"
    for approval in (first, second):
        assert f"https://desk.example{page_of(approval)}" in text
        assert f"order {approval.operation.order_id}" in text
    assert "$400.00" in text


def test_nothing_about_the_customer_is_in_a_mail(shop, approver, box):
    customer = make_customer(shop, name="Zelda Quist", email="zelda@home.example")
    waiting(shop, 1.5, customer=customer)

    remind()

    ((_, subject, text),) = mails(box)
    for secret in ("Zelda", "Quist", "zelda@home.example", customer.external_id):
        assert secret not in subject + text


def test_of_somebodys_question_only_they_are_reminded(shop, approver, box):
    erin = make_person(shop, "erin", is_approver=True, email="erin@shop.example")
    approval = waiting(shop, 1.5)
    handling.assign(approval_id=approval.pk, to=erin, by=approver, now=timezone.now())

    remind()

    assert [to for to, _, _ in mails(box)] == [["erin@shop.example"]]


def test_a_late_question_is_told_to_whom_the_shop_names(shop, approver, box):
    Attention.objects.filter(shop=shop).update(escalate_to=["boss@shop.example"])
    waiting(shop, 5)

    remind()

    ((to, subject, _),) = mails(box)
    assert to == ["boss@shop.example"]
    assert subject == "1 approval waits too long: Juniper & Clay"


def test_the_shop_is_told_of_a_late_question_by_webhook_as_well(shop, approver, box, settings):
    settings.DEMO = True  # which lets addresses of this machine through
    endpoints.add_endpoint(
        shop_id=shop.pk,
        name="main",
        url="http://127.0.0.1:9/hooks",
        actor="system",
        now=timezone.now(),
    )
    waiting(shop, 5)
    Notice.objects.all().delete()

    remind()

    notice = Notice.objects.get()
    assert notice.type == "approval.reminded"
    assert json.loads(notice.body)["data"]["outcome"] == "late"


def test_nobody_is_reminded_of_a_question_about_themselves(shop, approver, box):
    waiting(shop, 1.5, customer=make_customer(shop, email="dana@shop.example"))

    assert remind() == 0
    assert not Reminder.objects.exists()


def test_the_first_of_two_and_those_whose_right_falls_short_are_not_reminded_of_the_second(
    shop, approver, box
):
    Shop.objects.filter(pk=shop.pk).update(second_limit=50_000)
    for name, limit in (("erin", None), ("fay", 59_999)):
        address = f"{name}@shop.example"
        make_person(shop, name, is_approver=True, email=address, approve_up_to=limit)
    first = make_question(Shop.objects.get(pk=shop.pk), price=60_000)
    say_yes(operation_of(first), approver)
    second = Approval.objects.get(role="second_staff")
    move(second, asked_at=-1.5)

    assert remind() == 1
    ((recipients, _, text),) = mails(box)
    assert recipients == ["erin@shop.example"]
    assert "second of two yeses" in text


def test_a_question_put_off_is_not_reminded_of_until_it_is_late(shop, approver, box):
    approval = waiting(shop, 1.5)
    handling.snooze(
        approval_id=approval.pk, length=timedelta(hours=1), by=approver, now=timezone.now()
    )
    assert remind() == 0

    move(approval, asked_at=-5)

    assert remind() == 1


@pytest.mark.parametrize("without", ["server", "sender", "wish", "wait", "question"])
def test_without_reason_or_means_nothing_is_sent_or_written(shop, approver, box, settings, without):
    approval = waiting(shop, 0.5 if without == "wait" else 5)
    if without == "server":
        settings.SMTP_URL = ""
    if without == "sender":
        Shop.objects.filter(pk=shop.pk).update(mail_from="")
    if without == "wish":
        Attention.objects.filter(shop=shop).update(sends_mail=False)
    if without == "question":
        say_no(approval.operation, approver)

    assert remind() == 0

    assert box.taken == []
    assert not Reminder.objects.exists()
    assert not Event.objects.filter(action="approval.reminded").exists()


# --- What may go wrong --------------------------------------------------------------------------


def test_a_server_that_is_away_is_tried_again(shop, approver, box, settings):
    waiting(shop, 1.5)
    settings.SMTP_URL = "smtp://127.0.0.1:1"
    assert remind() == 0
    assert not Reminder.objects.exists()

    settings.SMTP_URL = box.url

    assert remind() == 1


def test_a_refused_mail_is_not_sent_again(shop, approver, box):
    waiting(shop, 1.5)
    box.refuse_recipient = "550 no such person"
    assert remind() == 0
    box.reset()

    assert remind() == 0
    assert Reminder.objects.get().status == "refused"


def test_what_another_run_has_written_down_is_not_sent(shop, approver, box):
    approval = waiting(shop, 1.5)
    Reminder.objects.create(
        approval=approval, level="warning", recipient=approver.email, at=timezone.now()
    )

    assert remind() == 0
    assert box.taken == []


def test_whoever_opens_every_link_of_a_mail_decides_nothing(shop, approver, box, client, sign_in):
    approval = waiting(shop, 1.5)
    remind()
    ((_, _, text),) = mails(box)
    links = re.findall(r"https://desk\.example(\S+)", text)
    assert links == [page_of(approval)]
    events = changes().count()

    for visitor, status in ((client, 302), (sign_in(approver), 200)):
        for link in links:
            assert visitor.get(link).status_code == status
            assert visitor.head(link).status_code == status

    assert operation_of(approval).state == "awaiting_approval"
    assert Approval.objects.get(pk=approval.pk).status == "open"
    assert changes().count() == events


# --- Setting it ---------------------------------------------------------------------------------

GOOD = {
    "opens_at": "08:30",
    "closes_at": "18:00",
    "weekdays": ["1", "6"],
    "warn_minutes": "30",
    "late_minutes": "90",
    "escalate_to": "boss@shop.example\nnight@shop.example",
}


def test_an_admin_sets_hours_and_addresses(shop, sign_in):
    client = sign_in(make_person(shop, "ann", role=Role.ADMIN))

    assert send(client, reverse("console:save-attention"), **GOOD).status_code == 302

    row = Attention.objects.get(shop=shop)
    assert (row.opens_at, row.closes_at, row.weekdays) == (time(8, 30), time(18), [1, 6])
    assert (row.warn_minutes, row.late_minutes, row.sends_mail) == (30, 90, False)
    assert row.escalate_to == ["boss@shop.example", "night@shop.example"]
    event = changes().get()
    assert (event.action, event.actor) == ("attention.changed", "admin:ann")
    assert "boss" not in str(event.data)
    assert 'value="08:30"' in text_of(client.get(reverse("console:attention")))


@pytest.mark.parametrize(
    "change",
    [
        {"closes_at": "08:30"},
        {"late_minutes": "30"},
        {"warn_minutes": "0"},
        {"weekdays": []},
        {"weekdays": ["8"]},
        {"escalate_to": "no address"},
        {"escalate_to": " ".join(f"a{n}@shop.example" for n in range(11))},
        {"opens_at": "soon"},
    ],
)
def test_hours_that_make_no_sense_change_nothing(shop, sign_in, change):
    client = sign_in(make_person(shop, "ann", role=Role.ADMIN))

    answer = send(client, reverse("console:save-attention"), **GOOD | change)

    assert answer.status_code == 422
    assert "Nothing was changed." in text_of(answer)
    assert Attention.objects.get(shop=shop).warn_minutes == 60
    assert not changes().exists()


def test_an_admin_sets_nothing_for_another_shop(shop, sign_in):
    other = make_shop()
    client = sign_in(make_person(shop, "ann", role=Role.ADMIN))

    send(client, reverse("console:save-attention"), **GOOD, shop=other.slug)

    assert not Attention.objects.filter(shop=other).exists()


def test_the_clock_of_a_server_elsewhere_does_not_matter():
    assert NINE_TO_FIVE.worked(
        datetime(2026, 11, 30, 14, tzinfo=UTC), datetime(2026, 11, 30, 15, tzinfo=UTC)
    ) == timedelta(hours=1)
