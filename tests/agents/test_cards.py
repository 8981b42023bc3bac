"""Card numbers are hidden at every door before anything keeps them; other numbers stay."""

import random

import pytest
from django.utils import timezone

from agents import services
from agents.cards import Taken, hide_cards, is_card
from agents.models import Message, Step, Task, Ticket
from agents.moves import CallTool
from agents.wording import CARD_HIDDEN
from audit.models import Event
from tests.agents.desk import Desk, reply
from tests.factories import make_customer, make_shop
from tests.hostile.test_canaries import tables

# The issuers' own test numbers.
CARDS = {
    "Visa": "4111111111111111",
    "Visa, 13": "4222222222222",
    "Visa, 19": "4000000000000000006",
    "Mastercard": "5555555555554444",
    "Mastercard 2": "2223003122003222",
    "American Express": "378282246310005",
    "Discover": "6011111111111117",
    "Diners Club": "30569309025904",
    "JCB": "3530111333300000",
    "UnionPay": "6200000000000005",
    "Maestro": "6759649826438453",
}
# The first of them, as some keyboards type it.
WIDE = "".join(chr(0xFF10 + int(digit)) for digit in CARDS["Visa"])
# Numbers that customers of a shop do write. Each was looked up or made by its own scheme.
OTHERS = {
    "order": "Where is order 1042?",
    "long order": "Order 2024110700012345 is late",
    "order with a card's shape": "#4111111111111111",
    "UPS": "1Z999AA10123456784",
    "FedEx, 12": "986578788855",
    "FedEx, 15": "FedEx 477179081230000 says delivered",
    "USPS, 22": "9400 1112 0255 5848 1234 56",
    "USPS, one piece": "9205590164917312751089",
    "DHL": "JJD000390007882823471",
    "Royal Mail": "RN123456785GB",
    "telephone": "+49 151 4111 1111 1111",
    "telephone, US": "(415) 555-2671",
    "IBAN": "DE89 3704 0044 0532 0130 00",
    "book": "978-3-16-148410-0",
    "article": "EAN 5901234123457",
    "date and time": "2024-11-07 12:30:15 2024-11-08 12:30:15",
    "amount": "1.234.567.890.123,45",
    "too long": "41111111111111111111111",
    "wrong check digit": "4111 1111 1111 1112",
    "right check digit, no issuer": "9999 9999 9999 9995",
}


@pytest.mark.parametrize("number", CARDS.values(), ids=CARDS)
@pytest.mark.parametrize("between", ["", " ", "-", " - ", ".", "\u00a0", "\u2013"])
def test_a_card_is_hidden_however_it_is_written(number: str, between: str):
    written = between.join(number[i : i + 4] for i in range(0, len(number), 4))

    taken = hide_cards(f"My card is {written}, please")

    assert taken.text == f"My card is •••• {number[-4:]}, please"
    assert taken.hidden == 1


@pytest.mark.parametrize(
    "text",
    [
        "order 1042 4111 1111 1111 1111 thanks",
        "4111 1111 1111 1111 12/27 123",
        "4111111111111111 12 27",
        "(4111-1111-1111-1111)",
        "card:4111111111111111.",
        "4111111111111111x",
        "3782 822463 10005",
        f"order 7, {WIDE}",
        "4111 1111\t1111 1111",
        "4111 1111 1111 1111 5555 5555 5555 4444",
    ],
)
def test_a_card_is_hidden_among_other_numbers(text: str):
    taken = hide_cards(text)

    assert taken.hidden >= 1
    assert "1111 1111" not in taken.text
    assert "11111111" not in taken.text
    assert "822463" not in taken.text
    assert WIDE[1:5] not in taken.text


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_is_no_card_stays_as_it_was_written(text: str):
    assert hide_cards(text).text == text


def test_chance_hardly_ever_makes_a_card_of_another_number():
    chance = random.Random(7)  # noqa: S311 - the same numbers each time
    numbers = [
        "".join(chance.choices("0123456789", k=chance.randint(13, 19))) for _ in range(20_000)
    ]

    hit = sum(hide_cards(f"parcel {number}").hidden for number in numbers)

    assert hit / len(numbers) < 0.02


def test_hiding_again_changes_nothing():
    once = hide_cards("4111 1111 1111 1111 and 5555-5555-5555-4444")

    assert hide_cards(once.text) == Taken(once.text, 0)


@pytest.mark.parametrize("text", ["", "no number", "4", "4" * 4000, "4 " * 2000])
def test_odd_texts_are_taken(text: str):
    assert len(hide_cards(text).text) <= len(text) + 5


def test_the_check_digit_is_looked_at():
    assert is_card("4111111111111111")
    assert not is_card("4111111111111110")


# --- At the doors -------------------------------------------------------------------------------

CARD = "4111 1111 1111 1111"
TOLD, TOLD_IN_GERMAN = CARD_HIDDEN
ASKED = f"Please refund order 1042, my card is {CARD}"


def test_a_card_number_is_in_no_table_and_the_customer_is_told(desk: Desk):
    task = desk.work(desk.ask(ASKED))

    first, told, *_ = Message.objects.filter(ticket=task.ticket_id).order_by("seq")
    assert first.text == "Please refund order 1042, my card is •••• 1111"
    assert (told.author, told.text, told.is_template) == ("agent", TOLD, True)
    assert Ticket.objects.get(pk=task.ticket_id).subject == first.text
    held = " ".join(tables().values())
    assert CARD not in held
    assert CARD.replace(" ", "") not in held
    assert Event.objects.filter(action="card.hidden", ticket_id=task.ticket_id).count() == 1


def test_the_model_never_sees_it_and_the_request_goes_on(desk: Desk):
    task = desk.work(desk.ask(ASKED))

    sent = str(desk.model.calls(bodies=True))
    assert "•••• 1111" in sent
    assert CARD not in sent
    assert task.status == "waiting_approval"
    assert Step.objects.filter(task=task, tool="refund_order").exists()


def test_it_is_hidden_in_a_message_that_joins_a_task(db):
    customer = make_customer(make_shop())
    now = timezone.now()
    first = services.submit(
        customer_id=customer.pk, text="Please refund order 1042", client_message_id="one", now=now
    )

    services.submit(
        customer_id=customer.pk, text=f"It was {CARD}", client_message_id="two", now=now
    )

    texts = list(Message.objects.filter(ticket=first.ticket).values_list("text", flat=True))
    assert texts == ["Please refund order 1042", "It was •••• 1111", TOLD]
    assert Task.objects.filter(ticket=first.ticket).count() == 1


def test_the_same_message_sent_again_is_the_same_message(db):
    customer = make_customer(make_shop())
    now = timezone.now()

    first, second = (
        services.submit(customer_id=customer.pk, text=ASKED, client_message_id="one", now=now)
        for _ in range(2)
    )

    assert first.message == second.message
    assert (
        Message.objects.filter(ticket=first.ticket).count() == 2
    )  # theirs, and what they are told


def test_it_is_hidden_in_what_a_form_asks_for(db):
    customer = make_customer(make_shop())
    form = CallTool("find_orders", f'{{"order_id": "{CARD}"}}', "form_1")

    made = services.submit(
        customer_id=customer.pk,
        text=f"Find order {CARD}",
        client_message_id="one",
        now=timezone.now(),
        form=form,
    )

    assert made.message.text == "Find order •••• 1111"
    assert Step.objects.get(task=made.task).arguments == '{"order_id": "•••• 1111"}'


def test_it_is_told_in_the_customer_s_language(db):
    customer = make_customer(make_shop(), locale="de-AT")

    made = services.submit(
        customer_id=customer.pk, text=CARD, client_message_id="one", now=timezone.now()
    )

    texts = [one.text for one in made.ticket.messages.order_by("seq")]
    assert texts == ["•••• 1111", TOLD_IN_GERMAN]


def test_without_a_card_nobody_is_told_anything(db):
    customer = make_customer(make_shop())

    made = services.submit(
        customer_id=customer.pk,
        text="Where is 9400111202555848123456?",
        client_message_id="one",
        now=timezone.now(),
    )

    assert [one.text for one in made.ticket.messages.all()] == ["Where is 9400111202555848123456?"]


def test_what_the_agent_says_next_is_still_the_reply(desk: Desk):
    task = desk.work(desk.ask(f"Where is my order 1042? {CARD}"))

    assert reply(task)
    assert reply(task) != TOLD


def test_nobody_can_open_a_ticket_that_looks_erased(db):
    customer = make_customer(make_shop())

    made = services.submit(
        customer_id=customer.pk, text="[erased]", client_message_id="one", now=timezone.now()
    )

    assert made.ticket.subject == "“[erased]”"
