"""Commits were lost: nothing is sent before the shop was asked whether it has happened already."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from approvals.services import is_still_granted
from audit.models import Event
from tests.factories import make_caller, make_operation, say_yes
from tests.restoring import backup, change_timeline, lose, restore
from tests.tools.desk import approved, find_out, lease, look, send, trail, writes
from tools import first_look, history, sending
from tools.clients import capabilities
from tools.clock import database_now
from tools.history import LookFirstError
from tools.models import History, LookFirst, Observation, State
from tools.sending import get

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider(monkeypatch):
    """Changes what is on record about the shop's API."""

    def change(**fields):
        record = replace(capabilities.for_provider("orders_stub"), **fields)
        monkeypatch.setitem(capabilities._PROVIDERS, "orders_stub", record)

    return change


@pytest.fixture(autouse=True)
def _no_lag(provider):
    provider(lookup_lag_seconds=0)


def effects(buyer, *order_ids):
    return [effect for order_id in order_ids for effect in buyer.shop.effects(order_id=order_id)]


def begin():
    return history.begin(since=database_now(), reason="a drill", by="operator:dana")


def events():
    return list(
        Event.objects.filter(action__startswith="look_first")
        .order_by("pk")
        .values_list("action", "actor")
    )


# --- Noticing -------------------------------------------------------------------------------------


def test_as_long_as_the_history_goes_on_nothing_begins(buyer):
    history.watch()
    history.watch()
    operation = approved(buyer, buyer.order(4000))
    buyer.shop.forget_calls()

    assert send(operation).state == State.SUCCEEDED

    assert not LookFirst.objects.exists()
    assert [call["path"] for call in buyer.shop.calls() if "effects" in call["path"]] == []


@pytest.mark.parametrize("change", [{"timeline": 999}, {"system": "7000000000000000001"}])
def test_another_timeline_or_another_system_is_noticed_and_remembered(change):
    history.watch()
    running = history.read_identity()
    History.objects.update(**change)
    seen_at = History.objects.get().seen_at

    history.watch()

    period = LookFirst.objects.get()
    assert (period.since, period.is_on, period.started_by) == (seen_at, True, "system")
    assert period.until - period.started_at == timedelta(hours=24)
    stored = History.objects.get()
    assert running == history.Identity(stored.system, stored.timeline)
    history.watch()
    assert events() == [("look_first.begun", "system")]


def test_it_is_noticed_by_the_very_send_that_would_be_the_first(buyer):
    operation = approved(buyer, buyer.order(4000))
    change_timeline()

    assert send(operation).state == State.UNKNOWN

    assert writes(buyer, operation) == []
    assert LookFirst.objects.get().is_on


def test_a_change_between_the_look_and_the_send_stops_the_send(buyer):
    operation = approved(buyer, buyer.order(4000))
    order = look(buyer, operation.order_id)
    period = history.is_looking_first()
    change_timeline()

    held, attempt = sending._begin(operation.pk, order, lease(), is_still_granted, period)

    assert (held.state, attempt) == (State.APPROVED, None)


@pytest.mark.django_db(transaction=True)
def test_of_many_who_notice_one_begins(buyer):
    operation = approved(buyer, buyer.order(4000))
    change_timeline()
    barrier = threading.Barrier(3)

    def work():
        barrier.wait()
        try:
            history.watch()
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert LookFirst.objects.count() == 1
    assert trail(operation) == [(1, "unknown", "commits_lost")]


def test_where_the_database_does_not_say_who_it_is_an_operator_can(buyer, monkeypatch):
    monkeypatch.setattr(history._Readable, "found", False)
    history.watch()
    assert not History.objects.exists()
    operation = approved(buyer, buyer.order(4000))
    begin()

    assert get(operation.pk).state == State.UNKNOWN


# --- What was approved may have been sent ---------------------------------------------------------


def test_a_refund_that_was_paid_before_the_restore_is_found_and_not_paid_again(buyer):
    operation = approved(buyer, buyer.order(4000))
    kept = backup(operation)
    assert send(operation).state == State.SUCCEEDED
    restore(kept)
    change_timeline()
    assert get(operation.pk).state == State.APPROVED

    history.watch()
    doubted = Event.objects.get(action="refund.unknown")
    assert (doubted.actor, doubted.data) == ("system", {"detail": "commits_lost"})
    found = find_out(operation)

    (effect,) = effects(buyer, operation.order_id)
    assert (found.state, found.reference) == (State.SUCCEEDED, effect["id"])
    assert len(writes(buyer, operation)) == 1


@pytest.mark.parametrize("tool", ["cancel_order", "change_address"])
def test_so_is_every_other_change_of_an_order(buyer, tool):
    operation = approved(buyer, buyer.order(4000, status="pending"), tool)
    kept = backup(operation)
    assert send(operation).state == State.SUCCEEDED
    restore(kept)
    change_timeline()

    history.watch()

    assert find_out(operation).state == State.SUCCEEDED
    assert len(writes(buyer, operation)) == 1


def test_a_refund_that_was_not_paid_is_paid_once_under_its_key(buyer):
    operation = approved(buyer, buyer.order(4000))
    change_timeline()
    history.watch()

    assert find_out(operation).state == State.SUCCEEDED

    (effect,) = effects(buyer, operation.order_id)
    assert effect["idempotency_key"] == operation.idempotency_key
    assert trail(operation) == [(1, "unknown", "commits_lost"), (2, "succeeded", "confirmed")]


def test_where_nothing_can_be_looked_up_and_no_key_is_kept_a_person_is_asked(buyer, provider):
    provider(lookup_by_key=False, key_window_seconds=None)
    operation = approved(buyer, buyer.order(4000))
    change_timeline()
    history.watch()

    assert find_out(operation).state == State.NEEDS_PERSON

    assert writes(buyer, operation) == []


def test_what_may_have_been_sent_neither_expires_nor_is_withdrawn(buyer):
    operation = approved(buyer, buyer.order(4000))
    change_timeline()

    history.watch()

    doubted = get(operation.pk)
    assert doubted.state == State.UNKNOWN
    assert doubted.first_sent_at == doubted.created_at
    assert doubted.reason == "commits_lost"


# --- What comes later: every first send -----------------------------------------------------------


def test_a_yes_that_was_lost_and_given_again_pays_once(buyer):
    operation = make_operation(buyer.row, look(buyer, buyer.order(4000)))
    kept = backup(operation)
    kept += backup(operation.approvals.get())
    say_yes(operation)
    assert send(operation).state == State.SUCCEEDED
    restore(kept)
    change_timeline()
    history.watch()
    assert get(operation.pk).state == State.AWAITING_APPROVAL

    say_yes(get(operation.pk))
    sent = send(operation, epoch=5)

    (effect,) = effects(buyer, operation.order_id)
    assert (sent.state, sent.reference) == (State.SUCCEEDED, effect["id"])
    assert len(writes(buyer, operation)) == 1
    assert Observation.objects.get(operation=operation).body["found"] is True
    event = Event.objects.get(action="refund.observed")
    assert event.data == {"source": "look_up", "found": True}


def test_a_key_that_was_used_already_for_something_else_is_never_sent_under(buyer):
    caller = make_caller(buyer.row)
    first = make_operation(buyer.row, look(buyer, buyer.order(4000)), caller=caller)
    say_yes(first)
    assert send(first).state == State.SUCCEEDED
    lose(first)
    change_timeline()
    history.watch()
    again = make_operation(buyer.row, look(buyer, buyer.order(2500)), caller=caller)
    say_yes(again)
    assert again.idempotency_key == first.idempotency_key

    stopped = send(again)

    assert (stopped.state, stopped.reason) == (State.NEEDS_PERSON, "look_up_mismatch")
    assert effects(buyer, again.order_id) == []
    assert len(effects(buyer, first.order_id)) == 1
    assert len(writes(buyer, first)) == 1


def test_a_key_that_was_used_for_the_same_amount_of_the_same_order_is_for_a_person(buyer):
    order_id = buyer.order(4000, 4000)
    caller = make_caller(buyer.row)
    first = make_operation(
        buyer.row, look(buyer, order_id), caller=caller, items=[item(buyer, order_id, 0)]
    )
    say_yes(first)
    assert send(first).state == State.SUCCEEDED
    lose(first)
    change_timeline()
    history.watch()
    again = make_operation(
        buyer.row, look(buyer, order_id), caller=caller, items=[item(buyer, order_id, 1)]
    )
    say_yes(again)
    assert again.idempotency_key == first.idempotency_key

    stopped = send(again)

    assert (stopped.state, stopped.reason) == (State.NEEDS_PERSON, "key_used_before")
    assert [effect["amount"] for effect in effects(buyer, order_id)] == [4000]
    assert len(writes(buyer, first)) == 1


def test_an_order_with_a_refund_on_no_record_of_ours_is_for_a_person(buyer):
    order_id = buyer.order(4000, 2500)
    lost = approved(buyer, order_id, items=[item(buyer, order_id, 0)])
    assert send(lost).state == State.SUCCEEDED
    lose(lost)
    change_timeline()
    history.watch()
    again = approved(buyer, order_id, items=[item(buyer, order_id, 1)])

    stopped = send(again)

    assert (stopped.state, stopped.reason) == (State.NEEDS_PERSON, "unrecorded_refund_at_shop")
    assert [effect["amount"] for effect in effects(buyer, order_id)] == [4000]
    assert writes(buyer, again) == []


def test_a_refund_that_is_on_record_stands_in_nobodys_way(buyer):
    order_id = buyer.order(4000, 2500)
    first = approved(buyer, order_id, items=[item(buyer, order_id, 0)])
    assert send(first).state == State.SUCCEEDED
    begin()
    second = approved(buyer, order_id, items=[item(buyer, order_id, 1)])

    assert send(second).state == State.SUCCEEDED

    assert [effect["amount"] for effect in effects(buyer, order_id)] == [4000, 2500]


def test_a_refund_from_long_before_the_loss_stands_in_nobodys_way(buyer, monkeypatch):
    order_id = buyer.order(4000, 2500)
    buyer.shop.refund_by_hand(order_id, 1000)
    begin()
    operation = approved(buyer, order_id, items=[item(buyer, order_id, 1)])
    monkeypatch.setattr(first_look, "CLOCK_MARGIN", -timedelta(hours=1))

    assert send(operation).state == State.SUCCEEDED


def test_before_its_look_ups_can_know_the_shop_is_not_believed(buyer, provider):
    provider(lookup_lag_seconds=3600)
    begin()
    operation = approved(buyer, buyer.order(4000))

    assert send(operation).state == State.APPROVED

    assert writes(buyer, operation) == []


def test_a_new_refund_of_an_order_without_history_goes_out_as_ever(buyer):
    begin()
    operation = approved(buyer, buyer.order(4000))

    assert send(operation).state == State.SUCCEEDED

    assert trail(operation) == [(1, "succeeded", "confirmed")]
    assert len(effects(buyer, operation.order_id)) == 1


def item(buyer, order_id, n):
    return {"item_id": look(buyer, order_id).lines[n].id, "quantity": 1}


# --- Its end, and the operator's command ----------------------------------------------------------


def test_it_ends_by_itself_when_shops_have_forgotten_the_lost_keys():
    period = begin()
    ago = timedelta(hours=25)
    LookFirst.objects.update(
        since=period.since - ago, started_at=period.started_at - ago, until=period.until - ago
    )

    history.watch()

    ended = LookFirst.objects.get()
    assert (ended.is_on, ended.ended_by) == (False, "system")
    assert events() == [("look_first.begun", "operator:dana"), ("look_first.ended", "system")]


def test_a_second_loss_goes_on_from_the_earlier_moment():
    first = begin()

    second = begin()

    assert second.since == first.since
    assert LookFirst.objects.filter(is_on=True).get() == second


def test_an_operator_switches_it_on_and_off_on_record(buyer, capsys):
    operation = approved(buyer, buyer.order(4000))
    since = (database_now() - timedelta(hours=3)).isoformat()

    call_command("verify_before_send", since=since, by="dana", reason="files were put back")

    assert "1 operation" in capsys.readouterr().out
    assert get(operation.pk).state == State.UNKNOWN
    call_command("verify_before_send", end=True, by="dana")
    assert not LookFirst.objects.filter(is_on=True).exists()
    assert events() == [
        ("look_first.begun", "operator:dana"),
        ("look_first.ended", "operator:dana"),
    ]


@pytest.mark.parametrize(
    "options",
    [{"since": "2999-01-01T00:00:00Z"}, {"since": "yesterday"}, {"since": "2026-01-01"}, {}, {"end": True}],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_and_nothing_is_switched(options):
    with pytest.raises(CommandError):
        call_command("verify_before_send", by="dana", reason="a drill", **options)

    assert not LookFirst.objects.exists()


def test_nothing_that_is_off_can_be_ended():
    with pytest.raises(LookFirstError):
        history.end(by="operator:dana")
