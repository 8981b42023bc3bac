"""What staff do around a conversation: hold it, leave notes, use ready-made answers, keep views."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.identity import Identity
from accounts.models import ERASED, Customer, CustomerStatus, ErasureCause, Role
from agents import services, store
from agents.casework import CannedReply, Habits, Note, SavedView
from agents.chat import picture
from agents.chat.frames import After
from agents.models import Author, Message, Ticket
from agents.services import canned, erasure, notes, speaking
from agents.subject_copy import make_copy
from approvals.models import Approval
from audit.models import Event, PersonalText
from tests.console.desk import changes, make_person, make_question, text_of
from tests.console.test_tickets import post, subjects
from tests.factories import make_customer, make_shop, make_ticket

TICKETS = "/console/tickets/"
SECRET = "She has a court case running."


def send(client, address: str, **fields):
    """Send a form with the token of this session."""
    token = client.get(reverse("console:keys")).context["csrf_token"]
    return client.post(address, {"csrfmiddlewaretoken": token} | fields)


def take(ticket: Ticket, user, **options) -> Ticket:
    return speaking.take_over(ticket_id=ticket.pk, user=user, now=timezone.now(), **options)


def an_identity(customer: Customer) -> Identity:
    now = timezone.now()
    who = (customer.shop_id, customer.pk, customer.external_id, customer.name, customer.locale)
    return Identity(*who, issued_at=now, expires_at=now + timedelta(hours=1))


@pytest.fixture
def erin(shop):
    return make_person(shop, "erin")


# --- One speaks at a time -----------------------------------------------------------------------


def test_only_the_one_who_holds_a_ticket_writes_in_it(shop, approver, erin, sign_in):
    ticket = take(make_ticket(make_customer(shop)), erin)
    client = sign_in(approver)

    answer = post(client, "reply", ticket, text="Me too!")

    assert answer.status_code == 409
    assert "erin speaks in this ticket now. Your words were not sent." in text_of(answer)
    assert "Me too!" in text_of(answer)
    assert not Message.objects.exists()
    page = text_of(client.get(reverse("console:ticket", args=[ticket.pk])))
    assert reverse("console:reply", args=[ticket.pk]) not in page
    assert reverse("console:give-back", args=[ticket.pk]) not in page


def test_what_nobody_has_taken_yet_is_taken_before_anybody_writes(shop, approver, sign_in):
    ticket = make_ticket(make_customer(shop), speaker="staff")

    answer = post(sign_in(approver), "reply", ticket, text="Hello")

    assert answer.status_code == 409
    assert "Take it over first" in text_of(answer)
    assert not Message.objects.exists()


def test_a_ticket_that_a_colleague_took_a_moment_ago_is_not_taken_from_them(
    shop, approver, erin, sign_in
):
    ticket = make_ticket(make_customer(shop))
    client = sign_in(approver)
    client.get(reverse("console:ticket", args=[ticket.pk]))
    take(ticket, erin)
    events = changes().count()

    answer = post(client, "take-over", ticket, held_by="")

    assert answer.status_code == 409
    assert "erin speaks in this ticket now." in text_of(answer)
    ticket.refresh_from_db()
    assert ticket.assigned_to == erin
    assert changes().count() == events


def test_a_colleagues_ticket_is_taken_from_them_by_name(shop, approver, erin, sign_in):
    ticket = take(make_ticket(make_customer(shop)), erin)
    client = sign_in(approver)
    page = text_of(client.get(reverse("console:ticket", args=[ticket.pk])))
    assert f'name="held_by" value="{erin.pk}"' in page

    assert post(client, "take-over", ticket, held_by=str(erin.pk)).status_code == 302

    ticket.refresh_from_db()
    assert ticket.assigned_to == approver
    with pytest.raises(speaking.ColleagueSpeaksError):
        speaking.reply_as_staff(ticket_id=ticket.pk, user=erin, text="Still me", now=timezone.now())
    assert not Message.objects.exists()


def test_only_the_holder_gives_a_ticket_back(shop, approver, erin, sign_in):
    ticket = take(make_ticket(make_customer(shop)), erin)

    assert post(sign_in(approver), "give-back", ticket).status_code == 409

    ticket.refresh_from_db()
    assert (ticket.speaker, ticket.assigned_to) == ("staff", erin)


def test_a_refused_take_over_stops_no_task(shop, approver, erin):
    question = make_question(shop)
    ticket = Ticket.objects.get(pk=question.operation.ticket_id)
    Ticket.objects.filter(pk=ticket.pk).update(assigned_to=erin)

    with pytest.raises(speaking.ColleagueSpeaksError):
        take(ticket, approver)

    assert Approval.objects.get(pk=question.pk).status == "open"
    assert not Event.objects.filter(action="ticket.taken_over").exists()


def test_nothing_is_written_in_a_ticket_that_was_closed_a_moment_ago(shop, erin):
    ticket = take(make_ticket(make_customer(shop)), erin)
    Ticket.objects.filter(pk=ticket.pk).update(status="closed", closed_at=timezone.now())

    with pytest.raises(services.TicketClosedError):
        speaking.reply_as_staff(ticket_id=ticket.pk, user=erin, text="Hi", now=timezone.now())
    assert not Message.objects.exists()


# --- Notes --------------------------------------------------------------------------------------


def test_a_note_is_kept_for_colleagues_and_shown_as_text(shop, approver, erin, sign_in):
    ticket = make_ticket(make_customer(shop), status="closed", closed_at=timezone.now())

    answer = post(sign_in(erin), "note", ticket, text="<b>Call</b> her\nback\u202e")

    assert answer.status_code == 302
    page = text_of(sign_in(approver).get(reverse("console:ticket", args=[ticket.pk])))
    assert "&lt;b&gt;Call&lt;/b&gt; her\nback[U+202E]" in page
    assert "erin" in page
    assert list(changes().values_list("action", "actor")) == [("note.added", "staff:erin")]


@pytest.mark.parametrize("text", ["", "  ", "x" * 4001, "a\x00b"])
def test_an_empty_or_endless_note_is_not_kept(shop, approver, sign_in, text):
    ticket = make_ticket(make_customer(shop))

    assert post(sign_in(approver), "note", ticket, text=text).status_code == 422

    assert not Note.objects.exists()
    assert not changes().exists()


def test_a_note_reaches_neither_the_model_nor_the_customer_nor_the_trail(shop, erin):
    customer = make_customer(shop)
    ticket = take(make_ticket(customer), erin)
    store.add_message(ticket, author=Author.CUSTOMER, text="Hello?", now=timezone.now())

    notes.add_note(ticket_id=ticket.pk, user=erin, text=SECRET, now=timezone.now())

    assert [said.text for said in store.said_in(ticket.pk)] == ["Hello?"]
    told, _ = picture.snapshot(an_identity(customer), ticket.pk, After())
    assert "Hello?" in str(told)
    assert SECRET not in str(told)
    assert SECRET not in str(list(Event.objects.values()))
    copied = make_copy(customer_id=customer.pk, by="admin:ann", now=timezone.now())
    assert "Hello?" in str(copied)
    assert SECRET not in str(copied)
    assert not PersonalText.objects.exists()
    assert not Message.objects.filter(text__contains=SECRET).exists()


def test_an_erased_customers_notes_are_erased(shop, erin):
    customer = make_customer(shop)
    ticket = make_ticket(customer)
    notes.add_note(ticket_id=ticket.pk, user=erin, text=SECRET, now=timezone.now())

    erasure.erase_customer(
        customer_id=customer.pk, cause=ErasureCause.ASKED, by="staff:ann", now=timezone.now()
    )

    assert Note.objects.get().text == ERASED


# --- Ready-made answers -------------------------------------------------------------------------


def test_an_admin_writes_changes_and_removes_the_shops_answers(shop, sign_in):
    admin = make_person(shop, "ann", role=Role.ADMIN)
    client = sign_in(admin)
    save = reverse("console:save-canned")

    assert send(client, save, name="Hello", text="Dear {customer}").status_code == 302
    reply = CannedReply.objects.get()
    assert send(client, save, name="Hi", text="Hi {customer}", reply=reply.pk).status_code == 302
    assert "Hi {customer}" in text_of(client.get(reverse("console:canned")))
    assert send(client, reverse("console:remove-canned", args=[reply.pk])).status_code == 302

    assert not CannedReply.objects.exists()
    actions = changes().order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["canned_reply.saved", "canned_reply.saved", "canned_reply.removed"]


@pytest.mark.parametrize("text", ["Dear {customer_email}", "{x}", "{staff} {password}"])
def test_an_unknown_placeholder_is_refused_when_it_is_written(shop, sign_in, text):
    client = sign_in(make_person(shop, "ann", role=Role.ADMIN))

    answer = send(client, reverse("console:save-canned"), name="Hello", text=text)

    assert answer.status_code == 422
    assert "Nothing fills in" in text_of(answer)
    assert not CannedReply.objects.exists()


def test_two_answers_of_one_name_are_not_kept(shop, sign_in):
    CannedReply.objects.create(shop=shop, name="Hello", text="Hello")
    client = sign_in(make_person(shop, "ann", role=Role.ADMIN))

    answer = send(client, reverse("console:save-canned"), name="Hello", text="Other")

    assert answer.status_code == 409
    assert CannedReply.objects.get().text == "Hello"


def test_another_shops_answers_are_neither_seen_nor_touched(shop, sign_in):
    theirs = CannedReply.objects.create(shop=make_shop(), name="Theirs", text="Secret price list")
    client = sign_in(make_person(shop, "ann", role=Role.ADMIN))

    assert "Secret price list" not in text_of(client.get(reverse("console:canned")))
    for address, fields in (
        (reverse("console:save-canned"), {"name": "X", "text": "X", "reply": theirs.pk}),
        (reverse("console:remove-canned", args=[theirs.pk]), {}),
    ):
        assert send(client, address, **fields).status_code == 404
    theirs.refresh_from_db()
    assert theirs.text == "Secret price list"


def test_a_ready_made_answer_is_put_in_for_this_customer_and_not_sent(
    shop, approver, sign_in, erin
):
    erin.first_name, erin.last_name = "Erin", "Fox"
    erin.save(update_fields=["first_name", "last_name"])
    ticket = take(make_ticket(make_customer(shop, name="Ada {ticket}")), erin)
    reply = CannedReply.objects.create(
        shop=shop, name="Hello", text="Dear {customer}, {staff} of {shop} about {ticket}. {price}"
    )
    address = reverse("console:ticket", args=[ticket.pk])

    page = sign_in(erin).get(address, {"canned": reply.pk})

    assert page.context["said"] == (
        f"Dear Ada, Erin Fox of Juniper & Clay about #{ticket.pk}. {{price}}"
    )
    assert not Message.objects.exists()


def test_an_answer_whose_placeholder_nothing_filled_is_not_sent(shop, erin, sign_in):
    ticket = take(make_ticket(make_customer(shop, name="")), erin)
    filled = canned.fill("Dear {customer}, hello.", ticket=ticket, user=erin)
    assert filled == "Dear {customer}, hello."

    answer = post(sign_in(erin), "reply", ticket, text=filled)

    assert answer.status_code == 422
    assert "Put something in the place of {customer} first" in text_of(answer)
    assert not Message.objects.exists()


def test_an_answer_of_another_shop_is_not_put_in(shop, erin, sign_in):
    ticket = take(make_ticket(make_customer(shop)), erin)
    theirs = CannedReply.objects.create(shop=make_shop(), name="Theirs", text="Secret")

    page = sign_in(erin).get(reverse("console:ticket", args=[ticket.pk]), {"canned": theirs.pk})

    assert "Secret" not in text_of(page)


# --- Finding tickets ----------------------------------------------------------------------------


def test_tickets_are_narrowed_by_change_sum_age_holder_and_flag(shop, approver, erin, sign_in):
    question = make_question(shop, price=40_000)
    Ticket.objects.filter(pk=question.operation.ticket_id).update(subject="Dear chair")
    quiet = make_ticket(make_customer(shop), subject="Quiet one")
    Ticket.objects.filter(pk=quiet.pk).update(updated_at=timezone.now() - timedelta(hours=5))
    take(make_ticket(make_customer(shop), subject="Held one"), erin)
    client = sign_in(approver)

    for query, found in [
        ({"kind": "refund"}, "Dear chair"),
        ({"least": "400", "most": "400.00"}, "Dear chair"),
        ({"older": "4"}, "Quiet one"),
        ({"person": str(erin.pk)}, "Held one"),
    ]:
        page = subjects(client, **query)
        seen = [name for name in ("Dear chair", "Quiet one", "Held one") if name in page]
        assert seen == [found], query
    assert "Held one" not in subjects(client, person="nobody")
    assert "No tickets match" in subjects(client, person="mine")
    assert "No tickets match" in subjects(client, least="400.01")


def test_a_ticket_is_flagged_that_waits_for_a_person_or_whose_customer_is_blocked(
    shop, approver, sign_in
):
    make_ticket(make_customer(shop), subject="All is well")
    make_ticket(make_customer(shop), subject="Waits for somebody", speaker="staff")
    blocked = make_ticket(make_customer(shop), subject="Of a blocked one")
    Customer.objects.filter(pk=blocked.customer_id).update(status=CustomerStatus.BLOCKED)

    page = subjects(sign_in(approver), flagged="on")

    assert "Waits for somebody" in page
    assert "Of a blocked one" in page
    assert "All is well" not in page


# --- Views and keys -----------------------------------------------------------------------------


def test_a_filter_is_kept_under_a_name_for_oneself(shop, approver, erin, sign_in):
    client = sign_in(approver)
    query = "q=ada&status=open&seen=1.2&before=x&page=9&status=closed"

    answer = send(
        client, reverse("console:save-view"), page="tickets", name="Open ones", query=query
    )

    assert answer.headers["Location"] == f"{TICKETS}?q=ada&status=closed"
    assert f'href="{TICKETS}?q=ada&amp;status=closed"' in text_of(client.get(TICKETS))
    assert "Save view" not in text_of(client.get(f"{TICKETS}?q=ada&status=closed"))
    assert "Save view" in text_of(client.get(f"{TICKETS}?q=ada"))
    assert "q=ada" not in text_of(client.get("/console/"))
    assert "q=ada" not in text_of(sign_in(erin).get(TICKETS))


def test_a_view_of_nothing_or_too_many_is_not_kept(shop, approver, sign_in):
    client = sign_in(approver)
    save = reverse("console:save-view")

    assert send(client, save, page="tickets", name="All", query="seen=1").status_code == 422
    assert send(client, save, page="audit", name="All", query="q=1").status_code == 422
    for n in range(20):
        SavedView.objects.create(user=approver, page="tickets", name=f"{n}", query="q=1")
    assert send(client, save, page="tickets", name="21", query="q=2").status_code == 422
    assert send(client, save, page="tickets", name="3", query="q=2").status_code == 302
    assert SavedView.objects.count() == 20


def test_only_ones_own_view_is_forgotten(shop, approver, erin, sign_in):
    view = SavedView.objects.create(user=erin, page="queue", name="Mine", query="person=mine")
    address = reverse("console:forget-view", args=[view.pk])

    assert send(sign_in(approver), address).status_code == 404
    assert SavedView.objects.exists()
    assert send(sign_in(erin), address).status_code == 302
    assert not SavedView.objects.exists()


def test_single_keys_are_on_until_somebody_switches_them_off_for_themselves(
    shop, approver, erin, sign_in
):
    client = sign_in(approver)
    assert "<body data-keys>" in text_of(client.get(TICKETS))

    send(client, reverse("console:switch-keys"), keys="off")

    assert "<body>" in text_of(client.get(TICKETS))
    assert "<body data-keys>" in text_of(sign_in(erin).get(TICKETS))
    send(client, reverse("console:switch-keys"), keys="on")
    assert "<body data-keys>" in text_of(client.get(TICKETS))
    assert send(client, reverse("console:switch-keys"), keys="maybe").status_code == 422
    assert Habits.objects.get().has_keys
