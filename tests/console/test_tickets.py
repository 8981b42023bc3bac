"""Tickets in the console: finding a case, reading it, speaking in it."""

from django.urls import reverse
from django.utils import timezone

from agents import store
from agents.models import Author, Message, Step, Ticket
from tests.console.desk import changes, make_person, make_question, poll_of, text_of
from tests.factories import make_customer, make_task, make_ticket

HX = {"HX-Request": "true"}


def subjects(client, **query) -> str:
    return text_of(client.get(reverse("console:tickets"), query))


def post(client, name: str, ticket: Ticket, **fields):
    token = client.get(reverse("console:ticket", args=[ticket.pk])).context["csrf_token"]
    address = reverse(f"console:{name}", args=[ticket.pk])
    return client.post(address, {"csrfmiddlewaretoken": token} | fields)


def say(ticket: Ticket, text: str, author: Author = Author.CUSTOMER) -> None:
    store.add_message(ticket, author=author, text=text, now=timezone.now())


def test_a_ticket_is_found_by_customer_order_subject_and_number(shop, approver, sign_in):
    ada = make_customer(shop, external_id="ada", name="Ada Moreno", email="ada@example.com")
    bob = make_customer(shop, external_id="bob", name="Bob Stone")
    broken = make_ticket(ada, subject="Broken mug")
    make_ticket(bob, subject="Late parcel")
    order = make_question(shop, customer=ada).operation.order_id
    client = sign_in(approver)

    for text in ("moreno", "ADA", "ada@example.com", "broken", f"#{broken.pk}", str(broken.pk)):
        page = subjects(client, q=text)
        assert "Broken mug" in page, text
        assert "Late parcel" not in page, text
    assert "My order" in subjects(client, q=f"#{order}")
    assert "No tickets match" in subjects(client, q="nobody says this")


def test_status_and_speaker_narrow_the_list(shop, approver, sign_in):
    customer = make_customer(shop)
    make_ticket(customer, subject="With the agent")
    make_ticket(customer, subject="With staff", speaker="staff")
    make_ticket(customer, subject="Over", status="closed", closed_at=timezone.now())
    client = sign_in(approver)

    assert "With staff" in subjects(client, speaker="staff")
    assert "With the agent" not in subjects(client, speaker="staff")
    assert "Over" in subjects(client, status="closed")
    assert "With staff" not in subjects(client, status="closed")


def test_an_odd_filter_shows_nothing_and_says_so(approver, sign_in):
    for query in ({"status": "burning"}, {"q": "x" * 200}, {"q": "a\x00b"}):
        answer = sign_in(approver).get(reverse("console:tickets"), query)
        assert answer.status_code == 400
        assert "That filter cannot be read" in text_of(answer)


def test_older_tickets_follow_without_gap_or_repeat(shop, approver, sign_in, monkeypatch):
    monkeypatch.setattr("agents.console.selectors.PAGE", 2)
    customer = make_customer(shop)
    for n in range(5):
        make_ticket(customer, subject=f"Case {n}")
    client = sign_in(approver)
    seen, address = [], reverse("console:tickets")
    while address:
        page = client.get(address)
        text = text_of(page)
        seen += [n for n in range(5) if f"Case {n}<" in text]
        address = page.context["older"] and reverse("console:tickets") + page.context["older"]

    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_the_list_is_scoped_to_the_shop_and_polls_for_news(shop, approver, sign_in):
    client = sign_in(approver)
    make_ticket(make_customer(), subject="Of another shop")
    page = subjects(client)
    assert "Of another shop" not in page
    poll = poll_of(page, "tickets")
    assert client.get(poll, headers=HX).status_code == 204

    make_ticket(make_customer(shop), subject="A new one")

    assert "A new one" in text_of(client.get(poll, headers=HX))


def test_a_case_shows_who_said_what_and_what_was_done(shop, approver, sign_in):
    approval = make_question(shop)
    ticket = Ticket.objects.get(pk=approval.operation.ticket_id)
    say(ticket, "<b>Refund me</b>\nplease")
    say(ticket, "I have asked a colleague.", Author.AGENT)

    page = text_of(sign_in(approver).get(reverse("console:ticket", args=[ticket.pk])))

    assert "&lt;b&gt;Refund me&lt;/b&gt;\nplease" in page
    assert "Agent, words of the model" in page
    assert approval.operation.idempotency_key in page
    assert "awaiting approval" in page


def test_a_hand_off_stands_on_top_with_its_summary(shop, approver, sign_in):
    ticket = make_ticket(make_customer(shop), speaker="staff")
    task = make_task(
        ticket, status="handed_off", finished_at=timezone.now(), reason="asked_for_a_person"
    )
    now = timezone.now()
    Step.objects.create(
        task=task,
        n=1,
        kind="hand_off",
        status="finished",
        result={"reason": "asked_for_a_person", "summary": "Asked: a <i>person</i>\u202e\u200b"},
        planned_at=now,
        started_at=now,
        finished_at=now,
    )

    page = text_of(sign_in(approver).get(reverse("console:ticket", args=[ticket.pk])))

    assert page.index("Asked: a &lt;i&gt;person&lt;/i&gt;[U+202E][U+200B]") < page.index(
        "Conversation"
    )
    assert "waits for a person" in page


def test_taking_over_answering_and_giving_back(shop, approver, sign_in):
    ticket = make_ticket(make_customer(shop))
    client = sign_in(approver)

    assert post(client, "take-over", ticket).status_code == 302
    ticket.refresh_from_db()
    assert (ticket.speaker, ticket.assigned_to) == ("staff", approver)

    assert post(client, "reply", ticket, text="Hello from a person").status_code == 302
    message = Message.objects.get(ticket=ticket)
    assert (message.author, message.text) == ("staff", "Hello from a person")

    assert post(client, "give-back", ticket).status_code == 302
    ticket.refresh_from_db()
    assert (ticket.speaker, ticket.assigned_to) == ("agent", None)
    actions = list(changes().filter(ticket_id=ticket.pk).values_list("action", flat=True))
    assert actions == ["ticket.taken_over", "message.sent", "ticket.given_back"]


def test_nobody_speaks_over_the_agent(shop, approver, sign_in):
    ticket = make_ticket(make_customer(shop))

    answer = post(sign_in(approver), "reply", ticket, text="Let me interrupt")

    assert answer.status_code == 409
    assert "Take it over first" in text_of(answer)
    assert not Message.objects.exists()


def test_a_reply_of_nothing_or_too_much_is_not_sent(shop, approver, sign_in):
    ticket = make_ticket(make_customer(shop), speaker="staff")
    client = sign_in(approver)

    for text in ("", "   ", "x" * 4001, "a\x00b"):
        assert post(client, "reply", ticket, text=text).status_code == 422
    assert not Message.objects.exists()


def test_nothing_is_done_in_a_closed_ticket(shop, approver, sign_in):
    ticket = make_ticket(make_customer(shop), status="closed", closed_at=timezone.now())
    client = sign_in(approver)

    for name in ("take-over", "give-back", "reply"):
        assert post(client, name, ticket, text="Hello").status_code == 409
    assert not Message.objects.exists()
    assert not changes().exists()


def test_an_open_case_learns_of_words_and_of_who_speaks(shop, approver, sign_in):
    ticket = make_ticket(make_customer(shop))
    client = sign_in(approver)
    poll = poll_of(text_of(client.get(reverse("console:ticket", args=[ticket.pk]))), "case")
    assert client.get(poll, headers=HX).status_code == 204

    say(ticket, "Anybody there?")
    news = text_of(client.get(poll, headers=HX))
    assert "Anybody there?" in news
    assert 'id="speak"' not in news

    post(sign_in(make_person(shop, "erin")), "take-over", ticket)
    news = text_of(client.get(poll, headers=HX))
    assert 'id="speak"' in news
    assert "erin speaks here now" in news
