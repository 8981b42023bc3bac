"""Forms with no model in sight: the same gates, questions, seal and receipts, and plain answers."""

import json
from typing import Any

import pytest
from django.utils import timezone

from agents import form_words, forms, services
from agents.models import Message, Task
from approvals.models import Approval
from audit.models import Event
from tests.agents.desk import Desk, line, operation, reply, steps
from tests.api.clients import everything
from tools.models import Verdict

ADDRESS = {
    "name": "Ada Lindqvist",
    "line1": "9 Elm Row",
    "city": "Portland",
    "region": "OR",
    "postal_code": "97209",
    "country": "US",
}


@pytest.fixture(autouse=True)
def _no_model(desk: Desk, settings):
    """Nobody listens there."""
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"


def fill(desk: Desk, tool: str, *, customer: str = "ada", locale: str = "", **values: Any) -> Task:
    options: dict[str, Any] = {"opens_new_ticket": True}
    options |= {name: values.pop(name) for name in ("client_message_id",) if name in values}
    if ticket_id := values.pop("ticket_id", None):
        options = {"ticket_id": ticket_id}
    form = forms.read(tool, values, currency="USD")
    task = desk.submit(
        form_words.asked(form, locale or "en"),
        customer=customer,
        form=form,
        locale=locale,
        **options,
    ).task
    assert task is not None
    return task


def test_a_refund_over_the_limit_goes_its_whole_way_without_a_model(desk: Desk):
    task = desk.work(fill(desk, "refund_order", order_id="#1043", reason="damaged"))
    assert (task.status, line(task)) == ("waiting_approval", ["refund_order:"])
    assert desk.shop.effects() == []

    task = desk.say_yes(task)
    assert desk.question(task).role == "staff"
    assert desk.shop.effects() == []
    task = desk.say_yes(task)

    assert (task.status, task.outcome, line(task)) == (
        *("succeeded", "done"),
        ["refund_order:succeeded"],
    )
    (effect,) = desk.shop.effects()
    assert (effect["kind"], effect["order_id"], effect["amount"]) == ("refund", "1043", 40_000)
    assert effect["idempotency_key"] == f"task-{task.pk}-step-1"
    reference = operation(task).reference
    assert reply(task) == f"The refund of $400.00 for order 1043 is done (reference {reference})."
    assert desk.model.calls() == []


def test_the_log_says_that_a_form_made_the_call(desk: Desk):
    task = desk.say_yes(desk.work(fill(desk, "refund_order", order_id="1042", reason="damaged")))

    (step,) = steps(task)
    assert (task.workflow, step.call_id) == ("form", "form_1")
    assert json.loads(step.arguments) == {"order_id": "1042", "reason": "damaged"}
    gates = Verdict.objects.filter(task_id=task.pk, step_n=1).values_list("gate", flat=True)
    assert {"offered", "shape", "scope", "policy", "approval"} <= set(gates)
    finished = Event.objects.get(task_id=task.pk, action="step.finished")
    assert finished.data["proposed_by"] == "form"
    opening = Message.objects.get(ticket_id=task.ticket_id, seq=1)
    assert (opening.author, opening.text) == (
        "customer",
        "Please refund order 1042\nReason: arrived damaged",
    )


def test_an_address_is_changed_after_the_old_and_the_new_were_shown(desk: Desk):
    before = desk.shop.order("1044")["shipping_address"]["line1"]

    task = desk.work(fill(desk, "change_address", order_id="1044", address=ADDRESS))
    card = services_card(task)
    task = desk.say_yes(task)

    assert before in card["from"]
    assert "9 Elm Row" in card["to"]
    assert desk.shop.order("1044")["shipping_address"]["line1"] == "9 Elm Row"
    assert reply(task).startswith("The address change for order 1044 is done")


def services_card(task: Task) -> dict[str, Any]:
    from agents import events  # noqa: PLC0415

    card = events.pending_action(task)
    assert card is not None
    return card


def test_a_no_to_a_cancellation_changes_nothing(desk: Desk):
    task = desk.work(fill(desk, "cancel_order", order_id="1044", reason="no_longer_needed"))

    task = desk.say_no(task)

    assert (task.outcome, reply(task)) == (
        "refused",
        "The cancellation of $25.00 for order 1044 was not made: you said no.",
    )
    assert desk.shop.effects() == []


def test_an_order_is_looked_up_and_its_parcel_with_it(desk: Desk):
    task = desk.work(fill(desk, "find_orders", order_id="1045"))

    assert line(task) == ["find_orders:ok", "track_parcel:ok"]
    assert reply(task).startswith("Order 1045 is on its way. ")


def test_without_a_number_all_orders_are_listed(desk: Desk):
    told = reply(desk.work(fill(desk, "find_orders")))

    assert "Order 1045 is on its way." in told.splitlines()
    assert len(told.splitlines()) > 2


@pytest.mark.parametrize(
    ("tool", "values", "told"),
    [
        (
            "cancel_order",
            {"order_id": "1045", "reason": "other"},
            "Order 1045 can no longer be cancelled",
        ),
        ("refund_order", {"order_id": "9999", "reason": "other"}, "I can't find order 9999"),
        # Bob's order is as if it were not there.
        ("refund_order", {"order_id": "1048", "reason": "other"}, "I can't find order 1048"),
        (
            "refund_order",
            {"order_id": "1042", "amount": "999", "reason": "other"},
            "That is more than is left to refund on order 1042.",
        ),
        (
            "change_address",
            {"order_id": "1044", "address": ADDRESS | {"country": "AQ"}},
            "The shop can't use this address",
        ),
    ],
)
def test_the_rules_are_those_for_every_call(desk: Desk, tool, values, told):
    task = desk.work(fill(desk, tool, **values))

    assert reply(task).startswith(told)
    assert (task.status, task.outcome) == ("succeeded", "refused")
    assert Approval.objects.count() == 0
    assert [call for call in desk.shop.calls() if call["method"] not in {"GET"}] == [
        call for call in desk.shop.calls() if call["path"].startswith("/oauth")
    ]


@pytest.mark.parametrize(
    ("tool", "values", "fields"),
    [
        ("close_ticket", {"resolution": "x"}, {"tool"}),
        ("refund_order", {"order_id": "1042"}, {"reason"}),
        ("refund_order", {"order_id": "1042", "reason": "greed"}, {"reason"}),
        ("cancel_order", {"order_id": 1042, "reason": "other"}, {"order_id"}),
        ("change_address", {"order_id": "1044", "address": {}}, {"address.name", "address.city"}),
        ("find_orders", {"order_id": "1045", "customer": "bob"}, {"customer"}),
    ],
)
def test_a_form_that_is_not_filled_in_makes_no_call(tool, values, fields):
    with pytest.raises(forms.FormError) as caught:
        forms.read(tool, values, currency="USD")

    assert fields <= set(caught.value.faults)


@pytest.mark.parametrize(
    ("written", "currency", "meant"),
    [("40", "USD", "40.00"), ("40,50", "EUR", "40.50"), ("40.00", "USD", "40.00"), ("40", "JPY", "40")],
)  # fmt: skip
def test_people_write_amounts_as_they_are_used_to(written, currency, meant):
    values = {"order_id": "1", "reason": "other", "amount": written}

    form = forms.read("refund_order", values, currency=currency)

    assert json.loads(form.arguments)["amount"] == meant


def test_a_form_sent_twice_is_one_task_and_another_under_its_id_is_refused(desk: Desk):
    first = fill(desk, "refund_order", order_id="1042", reason="damaged", client_message_id="f-1")
    again = fill(
        desk,
        "refund_order",
        locale="de",
        order_id="1042",
        reason="damaged",
        client_message_id="f-1",
    )
    before = everything()

    with pytest.raises(services.MessageReusedError):
        fill(desk, "refund_order", order_id="1042", reason="other", client_message_id="f-1")

    assert again == first
    assert everything() == before


def test_a_task_that_waits_for_the_model_makes_way(desk: Desk):
    stuck = desk.work(desk.ask("Please refund order 1042, it arrived broken"))
    assert stuck.status == "waiting_model"

    task = fill(desk, "refund_order", order_id="1042", reason="damaged", ticket_id=stuck.ticket_id)

    stuck.refresh_from_db()
    assert (stuck.status, stuck.reason) == ("cancelled", "form_instead")
    assert task.ticket_id == stuck.ticket_id
    assert desk.say_yes(desk.work(task)).outcome == "done"


def test_a_form_in_the_midst_of_another_task_has_a_conversation_of_its_own(desk: Desk):
    first = desk.work(fill(desk, "refund_order", order_id="1042", reason="damaged"))

    second = fill(desk, "find_orders", order_id="1045", ticket_id=first.ticket_id)

    first.refresh_from_db()
    assert first.status == "waiting_approval"
    assert second.ticket_id != first.ticket_id


def test_what_is_said_meanwhile_is_for_the_agent_afterwards(desk: Desk, settings):
    task = desk.work(fill(desk, "refund_order", order_id="1042", reason="damaged"))
    desk.submit("And where is my order 1045?", ticket_id=task.ticket_id)
    settings.OPENAI_BASE_URL = desk.model.url

    task = desk.say_yes(task)

    assert line(task)[:2] == ["refund_order:succeeded", "model"]
    assert task.status == "succeeded"
    assert "1045" in reply(task)


def test_with_the_shop_away_nothing_is_asked_and_nothing_sent(desk: Desk):
    task = fill(desk, "cancel_order", order_id="1044", reason="other")
    desk.shop.fault("error_before", times=None, status=503)

    task = desk.work(task)

    assert reply(task).startswith("The shop can't be reached at the moment.")
    assert Approval.objects.count() == 0


def test_a_person_is_there_at_once(desk: Desk):
    identity = desk.sign_in("ada")

    submitted = services.ask_for_person(
        customer_id=identity.customer_id, ticket_id=None, now=timezone.now(), locale="de-AT"
    )
    assert submitted.task is not None
    task = desk.work(submitted.task)

    assert (task.status, task.reason) == ("handed_off", "asked_for_a_person")
    assert reply(task) == (
        "Ich habe das an das Team weitergegeben. Sie bekommen hier eine Antwort."
    )


@pytest.mark.parametrize(
    ("locale", "said"),
    [("en", "is on its way (reference {})."), ("de", "ist unterwegs (Beleg {}).")],
)
def test_a_refund_that_the_shop_calls_pending_is_on_its_way(desk: Desk, locale: str, said: str):
    desk.shop.fault("pending", times=1)
    task = fill(desk, "refund_order", locale=locale, order_id="1042", reason="damaged")

    task = desk.say_yes(desk.work(task))

    assert reply(task).endswith(said.format(operation(task).reference))


def test_a_german_conversation_is_german_to_the_end(desk: Desk):
    task = fill(desk, "refund_order", locale="de-AT", order_id="1042", reason="damaged")
    opening = Message.objects.get(ticket_id=task.ticket_id, seq=1).text
    card = services_card(desk.work(task))
    task = desk.say_yes(task)

    assert opening == "Bitte erstatten Sie Bestellung 1042\nGrund: beschädigt angekommen"
    assert card["title"] == "Erstattung von $\N{NO-BREAK SPACE}40,00 für Bestellung 1042"
    assert card["reason"] == "beschädigt angekommen"
    assert reply(task) == (
        "Die Erstattung von $\N{NO-BREAK SPACE}40,00 für Bestellung 1042 ist erledigt "
        f"(Beleg {operation(task).reference})."
    )


def test_an_order_cancelled_elsewhere_while_it_is_sent_is_told_in_german_too(desk: Desk):
    task = desk.work(
        fill(desk, "cancel_order", locale="de-AT", order_id="1044", reason="no_longer_needed")
    )
    desk.shop.fault("change_order", scope={"path": "/cancel"}, set={"status": "cancelled"})

    task = desk.say_yes(task)

    assert reply(task) == (
        "Die Stornierung von $\N{NO-BREAK SPACE}25,00 für Bestellung 1044 war nicht nötig: "
        "Die Bestellung war schon anderswo storniert worden."
    )
    assert desk.shop.effects() == []
