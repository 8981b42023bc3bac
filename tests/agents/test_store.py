"""Claim and record: leases, fencing, lost messages, lost workers, retries and caps."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from accounts.models import User
from agents import record, runner, services, store, telemetry
from agents.models import Message, Step, Task, Ticket
from agents.outcomes import ModelFailed, ShopAway
from agents.store import StaleClaimError
from audit.models import Event
from tests.agents.desk import Desk, claim, line, operation, reply, steps
from tools import trigger
from tools.clients import capabilities
from tools.clock import database_now
from tools.models import Operation
from tools.trigger import Point


def let_lease_run_out(task: Task) -> None:
    Task.objects.filter(pk=task.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_step_is_saved_before_it_runs_and_after(desk: Desk):
    task = desk.ask("Please refund order 1042")
    (planned,) = steps(task)
    assert (planned.status, planned.attempts) == ("planned", 0)

    held = claim(task)
    started = Step.objects.get(pk=planned.pk)
    assert (started.status, started.attempts) == ("started", 1)
    assert started.heard_seq == 1
    assert started.tokens_reserved > 0

    record.record(held, runner.run(held))
    first, second = steps(task)
    assert (first.status, second.status) == ("finished", "planned")
    assert Task.objects.get(pk=task.pk).lease_until is None


def test_a_claimed_task_cannot_be_claimed_again(desk: Desk):
    task = desk.ask("Please refund order 1042")
    claim(task)

    assert store.claim([task.pk]) == []
    assert store.find_ready() == []


def test_a_stale_worker_changes_no_row(desk: Desk):
    task = desk.ask("Please refund order 1042")
    stale = claim(task)
    outcome = runner.run(stale)
    let_lease_run_out(task)
    current = claim(task)
    before = list(Task.objects.filter(pk=task.pk).values())

    with pytest.raises(StaleClaimError):
        record.record(stale, outcome)

    assert list(Task.objects.filter(pk=task.pk).values()) == before
    assert [step.status for step in steps(task)] == ["started"]
    assert not Event.objects.filter(task_id=task.pk, action="step.finished").exists()

    record.record(current, runner.run(current))
    assert [step.status for step in steps(task)] == ["finished", "planned"]


def test_a_lost_worker_is_followed_by_another_and_its_charge_stays(desk: Desk):
    task = desk.ask("Please refund order 1042")
    reserved = claim(task).model_request
    assert reserved is not None
    let_lease_run_out(task)

    task = desk.work(task)

    first = steps(task)[0]
    assert (first.attempts, first.lost) == (2, 1)
    assert task.status == "waiting_approval"
    assert task.tokens_spent >= reserved.worst.tokens


def test_a_step_that_loses_three_workers_is_handed_to_a_person(desk: Desk):
    task = desk.ask("Please refund order 1042")
    for _ in range(3):
        claim(task)
        let_lease_run_out(task)

    task = desk.work(task)

    assert (task.status, task.reason) == ("handed_off", "step_keeps_failing")
    assert len(desk.model.calls()) == 0
    assert "colleague" in reply(task)
    assert task.tokens_reserved == 0


def test_a_fault_of_our_own_code_releases_the_task_and_counts(desk: Desk, monkeypatch, caplog):
    task = desk.ask("Please refund order 1042")
    monkeypatch.setattr(runner, "run", lambda held: 1 / 0)

    services.advance(task_ids=[task.pk])

    task = Task.objects.get(pk=task.pk)
    assert (task.status, task.lease_until) == ("running", None)
    assert task.wake_at is not None
    assert task.wake_at > database_now()
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    assert desk.wake(task).status == "waiting_approval"


def test_a_step_that_a_fault_of_ours_fails_three_times_is_handed_to_a_person(
    desk: Desk, monkeypatch
):
    task = desk.ask("Please refund order 1042")
    tried: list[int] = []

    def fail(held: store.Claim, *_: object) -> None:
        tried.append(held.step.n)
        raise ZeroDivisionError

    monkeypatch.setattr(telemetry, "call", fail)
    for _ in range(6):
        task = desk.wake(task)

    assert tried == [1, 1, 1]
    assert (task.status, task.reason) == ("handed_off", "step_keeps_failing")
    assert "colleague" in reply(task)
    assert desk.model.calls() == []
    assert desk.shop.effects() == []


def test_a_finished_step_is_never_run_again(desk: Desk):
    task = desk.done("Please refund order 1042")
    calls = len(desk.model.calls())

    for _ in range(3):
        services.advance(task_ids=[task.pk, task.pk])

    assert len(desk.model.calls()) == calls
    assert len(desk.shop.effects()) == 1


@pytest.fixture
def woken(monkeypatch) -> list[int]:
    """The tasks that were enqueued, in order."""
    ids: list[int] = []
    monkeypatch.setattr("agents.dispatch.advance", lambda task_id, countdown=0: ids.append(task_id))
    return ids


def test_the_sweep_finds_what_a_lost_message_left_behind(desk: Desk, woken, settings):
    settings.SWEEP_SECONDS = 0
    queued = desk.ask("Please refund order 1042")
    waiting = desk.work(desk.ask("Please cancel order 1044"))
    woken.clear()

    services.sweep()
    assert woken == [queued.pk]

    desk.decide(waiting, is_yes=True)
    woken.clear()
    services.sweep()
    assert woken == [queued.pk, waiting.pk]


def test_the_sweep_leaves_to_its_own_message_what_is_freshly_ready(desk: Desk, woken):
    fresh = desk.ask("Please refund order 1042")
    stuck = desk.ask("Please cancel order 1044")
    Task.objects.filter(pk=stuck.pk).update(wake_at=timezone.now() - timedelta(minutes=1))
    woken.clear()

    services.sweep()

    assert woken == [stuck.pk]
    assert fresh.pk in store.find_ready()


def test_a_waiting_task_holds_no_lease_and_is_not_claimable(desk: Desk):
    task = desk.work(desk.ask("Please refund order 1042"))

    assert (task.status, task.lease_until, task.wake_at) == ("waiting_approval", None, None)
    assert store.claim([task.pk]) == []


def test_a_model_that_is_down_is_tried_again_later_and_then_a_person_is_called(
    desk: Desk, settings
):
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    task = desk.work(desk.ask("Please refund order 1042"))
    assert task.status == "waiting_model"
    assert task.wake_at is not None

    for _ in range(record.MAX_MODEL_TRIES - 1):
        assert task.status == "waiting_model"
        task = desk.wake(task)

    assert (task.status, task.reason) == ("handed_off", "model_unavailable")
    assert steps(task)[0].attempts == record.MAX_MODEL_TRIES
    assert task.tokens_spent == 0


def test_a_model_that_comes_back_is_used(desk: Desk):
    desk.model.fault("error", times=2, status=500)
    task = desk.work(desk.ask("Please refund order 1042"))
    assert task.status == "waiting_model"

    task = desk.wake(desk.wake(task))

    assert task.status == "waiting_approval"


def test_a_shop_that_is_away_is_asked_again_and_the_model_told(desk: Desk):
    desk.shop.fault("error_before", scope={"path": "/api/orders"}, status=503)
    task = desk.work(desk.ask("Please refund order 1042"))
    for _ in range(record.MAX_SHOP_TRIES):
        if steps(task)[1].status == "finished":
            break
        task = desk.wake(task)

    assert steps(task)[1].attempts == record.MAX_SHOP_TRIES
    assert steps(task)[1].error == "unavailable"
    assert task.status == "succeeded"
    assert desk.shop.effects() == []


def test_an_approved_change_waits_for_a_shop_that_is_away(desk: Desk):
    task = desk.work(desk.ask("Please refund order 1042"))
    desk.shop.fault("error_before", scope={"path": "/api/orders/1042", "method": "GET"}, status=503)

    task = desk.say_yes(task)

    assert task.status == "waiting_outcome"
    assert operation(task).state == "approved"
    assert desk.shop.effects() == []

    desk.shop.clear_faults()
    task = desk.wake(task)
    assert (task.status, task.outcome) == ("succeeded", "done")
    assert len(desk.shop.effects()) == 1


def test_a_refund_whose_answer_is_lost_is_looked_up_and_told_truthfully(desk: Desk):
    task = desk.work(desk.ask("Please refund order 1042"))
    desk.shop.fault("timeout_after", scope={"path": "/refunds"}, times=1, ms=2500)

    task = desk.say_yes(task)
    assert task.status == "waiting_outcome"
    assert operation(task).state == "unknown"
    assert Message.objects.filter(task=task, author="agent").count() == 0

    task = desk.wake(task)

    assert (task.status, task.outcome) == ("succeeded", "done")
    assert operation(task).state == "succeeded"
    assert len(desk.shop.effects()) == 1


def test_a_worker_lost_in_mid_send_is_followed_by_a_look_up_and_no_second_refund(
    desk: Desk, monkeypatch
):
    task = desk.work(desk.ask("Please refund order 1042"))
    task = desk.decide(task, is_yes=True)
    held = claim(task)
    outcome = runner.run(held)
    assert operation(task).state == "succeeded"
    assert not isinstance(outcome, ShopAway)
    let_lease_run_out(task)  # and it is never recorded

    task = desk.work(task)

    assert (task.status, task.outcome) == ("succeeded", "done")
    assert len(desk.shop.effects()) == 1
    sent = [
        call
        for call in desk.shop.calls()
        if call["method"] == "POST" and "/refunds" in call["path"]
    ]
    assert len(sent) == 1


def test_a_budget_that_is_spent_ends_with_a_person_and_no_call(desk: Desk):
    task = desk.ask("Please refund order 1042")
    Task.objects.filter(pk=task.pk).update(max_tokens=100)

    task = desk.work(task)

    assert (task.status, task.reason) == ("handed_off", "task_budget_spent")
    assert desk.model.calls() == []


def test_tokens_are_reserved_before_the_call_and_settled_after(desk: Desk):
    task = desk.ask("hello")
    held = claim(task)
    row = Task.objects.get(pk=task.pk)
    assert held.model_request is not None
    assert (row.tokens_reserved, row.tokens_spent) == (held.model_request.worst.tokens, 0)

    record.record(held, runner.run(held))

    row = Task.objects.get(pk=task.pk)
    step = steps(task)[0]
    assert row.tokens_reserved == 0
    assert row.tokens_spent == step.tokens_in + step.tokens_out > 0
    assert row.cost_spent == step.cost > 0


def test_a_missing_usage_is_charged_at_the_maximum(desk: Desk):
    desk.model.fault("missing_usage")
    task = desk.ask("hello")
    held = claim(task)
    record.record(held, runner.run(held))

    assert held.model_request is not None
    assert Task.objects.get(pk=task.pk).tokens_spent == held.model_request.worst.tokens


def test_a_step_cap_ends_with_a_person(desk: Desk):
    task = desk.ask("Please refund order 1042")
    Task.objects.filter(pk=task.pk).update(max_steps=3)

    task = desk.work(task)

    assert (task.status, task.reason) == ("handed_off", "step_limit")
    assert [step.n for step in steps(task)] == [1, 2, 3]
    assert desk.shop.effects() == []


def test_an_active_time_cap_ends_with_a_person(desk: Desk):
    task = desk.ask("Please refund order 1042")
    Task.objects.filter(pk=task.pk).update(max_active_ms=0)

    assert desk.work(task).reason == "time_limit"


def test_a_model_that_repeats_itself_is_told_once_then_a_person_takes_over(desk: Desk, settings):
    desk.model.script(
        "loop", [{"tool_calls": [{"name": "find_orders", "arguments": {"order_id": "1042"}}]}]
    )
    settings.MODEL = "script:loop"

    task = desk.work(desk.ask("Please refund order 1042"))

    assert (task.status, task.reason) == ("handed_off", "same_call_repeated")
    assert line(task).count("find_orders:ok") == 2
    told = desk.model.calls(bodies=True)[-1]["body"]["messages"][-1]
    assert told["role"] == "system"
    assert "twice" in told["content"]


def test_cancelling_while_a_yes_is_awaited_withdraws_the_change(desk: Desk):
    task = desk.work(desk.ask("Please refund order 1042"))

    services.cancel(task_id=task.pk, by="customer:ada", now=timezone.now())

    task = Task.objects.get(pk=task.pk)
    assert task.status == "cancelled"
    assert operation(task).state == "cancelled"
    assert operation(task).approvals.get().status == "withdrawn"
    assert [step.status for step in steps(task)] == ["finished"] * 4
    assert desk.work(task).status == "cancelled"
    assert desk.shop.effects() == []


def test_cancelling_in_mid_step_ends_the_task_after_that_step(desk: Desk):
    task = desk.ask("Please refund order 1042")
    held = claim(task)
    services.cancel(task_id=task.pk, by="customer:ada", now=timezone.now())
    assert Task.objects.get(pk=task.pk).status == "running"

    record.record(held, runner.run(held))

    # What the model said is kept and charged, and nobody acts on it.
    task = Task.objects.get(pk=task.pk)
    assert task.status == "cancelled"
    (step,) = steps(task)
    assert step.result is not None
    assert [call["name"] for call in step.result["tool_calls"]] == ["find_orders"]
    assert step.tokens_in > 0
    assert (task.tokens_spent, task.tokens_reserved) == (step.tokens_in + step.tokens_out, 0)
    assert desk.shop.effects() == []


def test_cancelling_what_is_already_sent_tells_what_happened(desk: Desk):
    task = desk.decide(desk.work(desk.ask("Please refund order 1042")), is_yes=True)
    held = claim(task)
    outcome = runner.run(held)
    services.cancel(task_id=task.pk, by="customer:ada", now=timezone.now())

    record.record(held, outcome)

    task = Task.objects.get(pk=task.pk)
    assert task.status == "cancelled"
    assert len(desk.shop.effects()) == 1
    assert "already being sent" in reply(task)


def test_what_may_have_been_sent_before_the_stop_comes_to_its_end(desk: Desk, monkeypatch):
    known = replace(capabilities.for_provider("orders_stub"), lookup_lag_seconds=0)
    monkeypatch.setitem(capabilities._PROVIDERS, "orders_stub", known)
    task = desk.decide(desk.work(desk.ask("Please refund order 1042")), is_yes=True)
    desk.shop.fault("error_before", scope={"path": "/refunds"}, times=1)
    task = desk.work(task)
    assert operation(task).state == "unknown"

    services.cancel(task_id=task.pk, by="customer:ada", now=timezone.now())
    assert Task.objects.get(pk=task.pk).status == "waiting_outcome"
    task = desk.wake(task)

    assert (task.status, operation(task).state) == ("cancelled", "succeeded")
    assert len(desk.shop.effects()) == 1
    assert "already being sent" in reply(task)
    assert operation(task).reference in reply(task)


def test_cancelling_between_the_yes_and_the_send_wins(desk: Desk):
    task = desk.decide(desk.work(desk.ask("Please refund order 1042")), is_yes=True)
    held = claim(task)
    services.cancel(task_id=task.pk, by="customer:ada", now=timezone.now())

    record.record(held, runner.run(held))

    task = Task.objects.get(pk=task.pk)
    assert (task.status, operation(task).state) == ("cancelled", "cancelled")
    assert desk.shop.effects() == []


def by_the_customer(task: Task) -> None:
    services.cancel(task_id=task.pk, by="customer:ada", now=timezone.now())


def by_staff(task: Task) -> None:
    staff = User.objects.get(username="staff")
    services.take_over(ticket_id=task.ticket_id, user=staff, now=timezone.now())


STOPS = pytest.mark.parametrize(
    ("stop", "end"), [(by_the_customer, "cancelled"), (by_staff, "handed_off")]
)


@STOPS
@pytest.mark.parametrize(
    ("point", "path"), [(Point.C12, "/api/orders/1042"), (Point.C14, "/refunds")]
)
def test_what_was_stopped_and_certainly_not_sent_is_never_sent(
    desk: Desk, monkeypatch, stop, end: str, point: Point, path: str
):
    task = desk.decide(desk.work(desk.ask("Please refund order 1042")), is_yes=True)
    desk.shop.fault("error_before", scope={"path": path}, times=1, status=429, retry_after=200)
    reached: list[Point] = []

    def stop_there(here: Point) -> None:
        if here is point and not reached:
            reached.append(here)
            stop(task)

    monkeypatch.setattr(trigger, "handler", stop_there)

    task = desk.work(task)

    assert reached == [point]
    assert (task.status, operation(task).state) == (end, "cancelled")
    assert {one.status for one in operation(task).approvals.all()} == {"approved"}
    assert desk.wake(task).status == end
    assert desk.shop.effects() == []


@STOPS
def test_a_change_that_is_proposed_after_the_stop_is_asked_of_nobody(desk: Desk, stop, end: str):
    task = desk.ask("Please refund order 1042")
    while steps(task)[-1].tool != "refund_order":
        task = desk.advance(task)
    held = claim(task)
    outcome = runner.run(held)
    stop(task)

    record.record(held, outcome)

    task = Task.objects.get(pk=task.pk)
    assert task.status == end
    assert not Operation.objects.filter(task_id=task.pk).exists()
    assert steps(task)[-1].error == "cancelled"


@STOPS
def test_a_stopped_task_does_not_wait_for_a_model_that_is_away(desk: Desk, stop, end: str):
    task = desk.ask("Please refund order 1042")
    held = claim(task)
    stop(task)

    record.record(held, ModelFailed("rate_limited", retry_after=3000))

    task = Task.objects.get(pk=task.pk)
    assert (task.status, task.wake_at) == (end, None)
    assert task.tokens_reserved == 0


def test_a_message_in_mid_task_is_heard_at_the_next_model_step(desk: Desk):
    submitted = desk.submit("hello")
    assert submitted.task is not None
    held = claim(submitted.task)
    joined = desk.submit("Where is my order 1045?", ticket_id=submitted.ticket.pk)
    assert joined.task == submitted.task
    assert not joined.is_new

    record.record(held, runner.run(held))
    task = desk.work(submitted.task)

    assert task.status == "succeeded"
    assert "1045" in reply(task)
    assert [step.heard_seq for step in steps(task) if step.kind == "model"][:2] == [1, 2]


def test_the_same_client_message_is_one_message_and_one_task(desk: Desk):
    first = desk.submit("hello", client_message_id="m1")
    again = desk.submit("hello", client_message_id="m1")

    assert again.task == first.task
    assert (Task.objects.count(), Message.objects.count()) == (1, 1)

    with pytest.raises(services.MessageReusedError):
        desk.submit("another text", client_message_id="m1")
    assert Message.objects.count() == 1


def test_more_open_tasks_than_the_shop_allows_are_refused(desk: Desk):
    for _ in range(3):
        desk.ask("hello")

    with pytest.raises(services.TooManyOpenTasksError):
        desk.ask("hello")

    assert (Task.objects.count(), Message.objects.count()) == (3, 3)


def test_asking_too_fast_is_refused_with_the_time_to_wait(desk: Desk):
    task = desk.work(desk.ask("hello"))
    task.shop.tasks_per_minute_per_customer = 1
    task.shop.save(update_fields=["tasks_per_minute_per_customer"])

    with pytest.raises(services.TooManyRequestsError) as refused:
        desk.ask("hello")

    assert 0 < refused.value.retry_after <= 61
    assert Task.objects.count() == 1


def test_a_busy_shop_asks_for_patience_and_makes_nothing(desk: Desk):
    task = desk.ask("hello")
    task.shop.max_running_tasks = 1
    task.shop.save(update_fields=["max_running_tasks"])

    with pytest.raises(services.TooManyRequestsError) as refused:
        desk.ask("hello", customer="bob")

    assert refused.value.retry_after > 0
    assert (Task.objects.count(), Ticket.objects.count()) == (1, 1)


def test_waiting_tasks_do_not_make_a_shop_busy(desk: Desk):
    task = desk.work(desk.ask("Please refund order 1042"))
    task.shop.max_running_tasks = 1
    task.shop.save(update_fields=["max_running_tasks"])

    assert desk.ask("hello", customer="bob").status == "queued"


def test_anothers_ticket_is_not_there(desk: Desk):
    ticket = desk.submit("hello", customer="bob").ticket

    with pytest.raises(services.TicketNotFoundError):
        desk.submit("hello", customer="ada", ticket_id=ticket.pk)

    assert Message.objects.count() == 1


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE agents_step SET result = '{}' WHERE status = 'finished'",
        "DELETE FROM agents_step",
        "UPDATE agents_task SET status = 'running', outcome = '', finished_at = NULL",
        "UPDATE agents_task SET epoch = 0",
        "UPDATE agents_task SET tokens_spent = 0",
        "UPDATE agents_task SET tokens_reserved = 10000000",
        "DELETE FROM agents_task",
        "UPDATE agents_message SET text = 'other'",
        (
            "INSERT INTO agents_step (task_id, n, kind, status, tool, call_id, arguments, verdict, error,"
            " attempts, lost, prompt_version, model, tokens_in, tokens_cached, tokens_out, cost,"
            " tokens_reserved, cost_reserved, planned_at) SELECT task_id, 99, kind, 'planned', '', '',"
            " '', '', '', 0, 0, '', '', 0, 0, 0, 0, 0, 0, now() FROM agents_step LIMIT 1"
        ),
    ],
)
def test_the_database_refuses_to_rewrite_history(desk: Desk, sql: str):
    desk.work(desk.ask("hello"))

    with (
        pytest.raises((DatabaseError, IntegrityError)),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_with_the_same_message_one_claims(desk: Desk):
    task = desk.ask("hello")
    won: list[int] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        won.append(len(store.claim([task.pk])))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(won) == [0, 0, 0, 1]
    assert Task.objects.get(pk=task.pk).epoch == 1


@pytest.mark.django_db(transaction=True)
def test_a_claim_passes_over_a_task_whose_row_somebody_holds(desk: Desk):
    held, free = desk.ask("hello"), desk.ask("hello again")
    is_held, may_go = threading.Event(), threading.Event()

    def stand_still() -> None:
        with transaction.atomic():
            Task.objects.select_for_update().get(pk=held.pk)
            is_held.set()
            may_go.wait(20)
        connection.close()

    frozen = threading.Thread(target=stand_still)
    frozen.start()
    assert is_held.wait(10)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '3s'")  # of a claim that waits after all

    taken = [claimed.task.pk for claimed in store.claim([held.pk, free.pk])]
    may_go.set()
    frozen.join()

    assert taken == [free.pk]
    assert [claimed.task.pk for claimed in store.claim([held.pk, free.pk])] == [held.pk]
    connection.close()


def test_a_transaction_that_stands_still_is_ended_by_the_database(db, settings):
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")

        assert cursor.fetchone() == ("15s",)
    assert settings.LEASE_SECONDS > 15


def test_a_message_that_comes_in_vain_costs_one_statement(desk: Desk, django_assert_num_queries):
    task = desk.ask("hello")
    claim(task)

    with django_assert_num_queries(3):  # SAVEPOINT, the claim, RELEASE
        assert store.claim([task.pk]) == []
