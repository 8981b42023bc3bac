"""A flag for review: raised with a reason, seen and found, closed with a word."""

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from accounts.models import ERASED, ErasureCause, Role
from agents.casework import ReviewFlag
from agents.models import Task
from agents.services import erasure, flags
from audit.models import Event, PersonalText
from tests.console.desk import changes, make_person, text_of
from tests.factories import make_customer, make_shop, make_task, make_ticket

TICKETS = "/console/tickets/"
SECRET = "secretcanary: he sounded odd"


@pytest.fixture
def erin(shop):
    return make_person(shop, "erin")


@pytest.fixture
def task(shop) -> Task:
    ticket = make_ticket(make_customer(shop), subject="Dear chair")
    now = timezone.now()
    return make_task(ticket, status="succeeded", outcome="answered", finished_at=now)


def page_of(client, task: Task) -> str:
    return text_of(client.get(reverse("console:task", args=[task.pk])))


def send(client, name: str, *ids: int, text: str):
    token = client.get(reverse("console:keys")).context["csrf_token"]
    address = reverse(f"console:{name}", args=ids)
    return client.post(address, {"csrfmiddlewaretoken": token, "text": text})


def raise_flag(task: Task, user, reason: str = "Odd refund") -> ReviewFlag:
    return flags.raise_flag(task_id=task.pk, user=user, reason=reason, now=timezone.now())


def test_a_flag_stands_in_the_head_with_its_reason_and_on_the_trail(task, approver, erin, sign_in):
    answer = send(sign_in(erin), "flag", task.pk, text="<b>Why</b> so much?\u202e")

    assert answer.headers["Location"] == f"/console/tasks/{task.pk}/#review"
    page = page_of(sign_in(approver), task)
    assert '<a class="badge ask" href="#review">for review</a>' in page
    assert "&lt;b&gt;Why&lt;/b&gt; so much?[U+202E]" in page
    assert "erin" in page
    (event,) = changes()
    assert (event.action, event.actor, event.task_id) == ("task.flagged", "staff:erin", task.pk)


def test_a_colleague_closes_it_with_a_word(task, approver, erin, sign_in):
    flag = raise_flag(task, erin)

    answer = send(sign_in(approver), "close-flag", task.pk, flag.pk, text="It was right.")

    assert answer.status_code == 302
    page = page_of(sign_in(erin), task)
    assert "for review</a>" not in page
    assert "Odd refund" in page
    assert "<strong>Closed:</strong> It was right." in page
    assert list(changes().values_list("action", "actor").order_by("pk")) == [
        ("task.flagged", "staff:erin"),
        ("task.flag_closed", "staff:dana"),
    ]


def test_a_closed_task_can_be_flagged_anew(task, erin):
    flag = raise_flag(task, erin)
    flags.close_flag(flag_id=flag.pk, task_id=task.pk, user=erin, word="Fine.", now=timezone.now())

    again = raise_flag(task, erin, "No, it was not")

    assert [each.closed_at is None for each in ReviewFlag.objects.all()] == [False, True]
    assert again.pk != flag.pk


def test_the_second_to_flag_learns_who_was_first_and_nothing_is_written(
    task, approver, erin, sign_in
):
    raise_flag(task, erin)
    before = changes().count()

    answer = send(sign_in(approver), "flag", task.pk, text="Mine")

    assert answer.status_code == 409
    assert "erin was first: this task is flagged. Yours was not kept." in text_of(answer)
    assert ">Mine</textarea>" in text_of(answer)
    assert (ReviewFlag.objects.count(), changes().count()) == (1, before)


def test_the_second_to_close_learns_who_was_first_and_nothing_is_written(
    task, approver, erin, sign_in
):
    flag = raise_flag(task, erin)
    flags.close_flag(flag_id=flag.pk, task_id=task.pk, user=erin, word="Fine.", now=timezone.now())
    before = changes().count()

    answer = send(sign_in(approver), "close-flag", task.pk, flag.pk, text="Not fine.")

    assert answer.status_code == 409
    assert "erin was first: the flag is closed. Your word was not kept." in text_of(answer)
    assert ReviewFlag.objects.get().word == "Fine."
    assert changes().count() == before


@pytest.mark.parametrize("text", ["", "  ", "x" * 501, "a\x00b"])
def test_neither_a_flag_nor_its_end_goes_without_words(task, erin, sign_in, text):
    assert send(sign_in(erin), "flag", task.pk, text=text).status_code == 422
    assert not ReviewFlag.objects.exists()

    flag = raise_flag(task, erin)
    before = changes().count()
    answer = send(sign_in(erin), "close-flag", task.pk, flag.pk, text=text)

    assert answer.status_code == 422
    assert 'role="alert"' in text_of(answer)
    flag.refresh_from_db()
    assert flag.closed_at is None
    assert changes().count() == before


def test_a_flag_is_closed_at_its_own_task_alone(task, shop, erin, sign_in):
    flag = raise_flag(task, erin)
    other = make_task(make_ticket(make_customer(shop)))

    answer = send(sign_in(erin), "close-flag", other.pk, flag.pk, text="Fine.")

    assert answer.status_code == 404
    flag.refresh_from_db()
    assert flag.closed_at is None


def test_another_shops_staff_neither_see_nor_touch_it(task, erin, sign_in):
    flag = raise_flag(task, erin)
    stranger = sign_in(make_person(make_shop(), "eve", is_approver=True))

    assert stranger.get(reverse("console:task", args=[task.pk])).status_code == 404
    assert send(stranger, "flag", task.pk, text="Hm").status_code == 404
    assert send(stranger, "close-flag", task.pk, flag.pk, text="Hm").status_code == 404
    assert "Dear chair" not in text_of(stranger.get(TICKETS, {"review": "on"}))
    flag.refresh_from_db()
    assert flag.closed_at is None


def test_an_auditor_reads_a_flag_and_has_no_form_for_it(task, shop, erin, sign_in):
    raise_flag(task, erin)

    page = page_of(sign_in(make_person(shop, "audrey", role=Role.AUDITOR)), task)

    assert "Odd refund" in page
    assert "<textarea" not in page


def test_the_list_of_tickets_is_narrowed_to_those_for_review(task, shop, erin, sign_in):
    quiet = make_ticket(make_customer(shop), subject="Quiet one")
    closed = raise_flag(make_task(quiet), erin)
    flags.close_flag(
        flag_id=closed.pk, task_id=closed.task_id, user=erin, word="Fine.", now=timezone.now()
    )
    raise_flag(task, erin)
    client = sign_in(erin)

    all_of_them = text_of(client.get(TICKETS))
    narrowed = text_of(client.get(TICKETS, {"review": "on"}))
    case = text_of(client.get(reverse("console:ticket", args=[task.ticket_id])))

    assert all_of_them.count('class="badge ask">for review') == 1
    assert "Quiet one" in all_of_them
    assert "Dear chair" in narrowed
    assert "Quiet one" not in narrowed
    assert 'name="review" type="checkbox" checked' in narrowed
    assert 'class="badge ask">for review' in case


def test_a_refused_form_s_page_follows_the_task_where_it_is_read(shop, erin, sign_in):
    live = make_task(make_ticket(make_customer(shop)))

    page = text_of(send(sign_in(erin), "flag", live.pk, text=""))

    assert f'hx-get="/console/tasks/{live.pk}/?seen=' in page


def test_the_words_of_a_flag_are_in_no_trail_and_go_with_the_customers(task, erin):
    flag = raise_flag(task, erin, SECRET)
    flags.close_flag(flag_id=flag.pk, task_id=task.pk, user=erin, word=SECRET, now=timezone.now())
    assert SECRET not in str(list(Event.objects.values()))
    assert not PersonalText.objects.exists()

    erasure.erase_customer(
        customer_id=task.customer_id,
        cause=ErasureCause.ASKED,
        by="staff:ann",
        now=timezone.now(),
    )

    flag.refresh_from_db()
    assert (flag.reason, flag.word) == (ERASED, ERASED)


def test_an_open_flag_outlives_the_erasure_and_can_be_closed(task, erin):
    flag = raise_flag(task, erin, SECRET)

    erasure.erase_customer(
        customer_id=task.customer_id,
        cause=ErasureCause.ASKED,
        by="staff:ann",
        now=timezone.now(),
    )

    flags.close_flag(flag_id=flag.pk, task_id=task.pk, user=erin, word="Gone.", now=timezone.now())
    flag.refresh_from_db()
    assert (flag.reason, flag.word) == (ERASED, "Gone.")


def test_the_database_keeps_one_open_flag_for_a_task_and_none_half_closed(task, erin):
    flag = raise_flag(task, erin)
    with pytest.raises(IntegrityError, match="review_flag_one_open"), transaction.atomic():
        ReviewFlag.objects.create(
            task=task, raised_by=erin, reason="Twice", raised_at=timezone.now()
        )
    with pytest.raises(IntegrityError, match="review_flag_closed_whole"), transaction.atomic():
        ReviewFlag.objects.filter(pk=flag.pk).update(closed_at=timezone.now())

    assert ReviewFlag.objects.get().closed_at is None
