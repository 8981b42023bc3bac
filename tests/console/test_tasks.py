"""The task viewer: every step with what belongs to it, however long the log is."""

import json
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from agents.models import Step, Task
from tests.agents.conftest import desk, model_process
from tests.agents.desk import Desk
from tests.console.desk import make_person, poll_of, text_of
from tests.factories import make_customer, make_task, make_ticket
from tools.models import Operation, Transit

__all__ = ["desk", "model_process"]

HX = {"HX-Request": "true"}


@pytest.fixture
def reader(shop, sign_in):
    """An admin of every shop, who reads."""
    return sign_in(make_person(None, "root", role="admin"))


def add_steps(task: Task, count: int, **fields) -> None:
    now = timezone.now()
    details = {
        "kind": "tool",
        "tool": "find_orders",
        "status": "finished",
        "arguments": "{}",
        "result": {"orders": []},
        "planned_at": now,
        "started_at": now,
        "finished_at": now,
    }
    Step.objects.bulk_create(Step(task=task, n=n, **details | fields) for n in range(1, count + 1))
    task.steps_planned = count
    task.save(update_fields=["steps_planned"])


def page_of(client, task: Task, query: str = "") -> str:
    return text_of(client.get(reverse("console:task", args=[task.pk]) + query))


def test_a_whole_refund_can_be_read_step_by_step(desk: Desk, reader):
    task = desk.done("My mug from order 1042 arrived broken, please refund it")
    operation = Operation.objects.get(task_id=task.pk)

    page = page_of(reader, task)

    for n in range(1, task.steps_planned + 1):
        assert f'id="step-{n}"' in page
    assert "countersign-rules" in page
    assert f"{task.tokens_spent} <small>of {task.max_tokens}" in page
    assert f"${task.cost_spent / 1_000_000:.4f}" in page
    assert operation.digest in page
    assert operation.reference in page
    assert "customer_owns_it" in page
    assert "customer:ada" in page
    assert "same_decision" in page  # what the sixth gate found before the send
    assert "unverified" in page


def test_a_refund_that_the_shop_calls_pending_says_so(desk: Desk, reader):
    desk.shop.fault("pending", times=1)
    task = desk.done("Please refund order 1042")
    log_url = reverse("console:task-log", args=[task.pk])

    def sent():
        log = json.loads(reader.get(log_url).content)
        (only,) = (step["operation"] for step in log["steps"] if step["operation"])
        return only

    assert "pending: on its way" in page_of(reader, task)
    assert (sent()["state"], sent()["pending"]) == ("succeeded", True)
    Transit.objects.update(arrived_at=timezone.now())

    assert "pending: on its way" not in page_of(reader, task)
    assert (sent()["state"], sent()["pending"]) == ("succeeded", False)


def test_the_log_downloads_whole(desk: Desk, reader):
    task = desk.done("Please refund order 1042")

    answer = reader.get(reverse("console:task-log", args=[task.pk]))

    assert f'filename="task-{task.pk}.json"' in answer.headers["Content-Disposition"]
    log = json.loads(answer.content)
    assert [step["n"] for step in log["steps"]] == list(range(1, task.steps_planned + 1))
    (sent,) = (step["operation"] for step in log["steps"] if step["operation"])
    assert sent["state"] == "succeeded"
    assert json.loads(sent["sealed"])["idempotency_key"] == sent["idempotency_key"]
    assert [approval["status"] for approval in sent["approvals"]] == ["approved"]
    assert [attempt["outcome"] for attempt in sent["attempts"]] == ["succeeded"]


def test_a_thousand_steps_come_a_hundred_at_a_time(shop, reader):
    task = make_task(make_ticket(make_customer(shop)), max_steps=1000)
    add_steps(task, 1000)

    first, middle = page_of(reader, task), page_of(reader, task, "?step=650")

    assert first.count('<details class="step') == 100
    assert 'id="step-100"' in first
    assert 'id="step-101"' not in first
    assert 'id="step-650"' in middle
    assert 'aria-current="page">601' in middle


@pytest.mark.parametrize("query", ["?page=0", "?page=99", "?page=-1", "?page=x", "?step=9999999"])
def test_an_odd_page_is_the_first(shop, reader, query):
    task = make_task(make_ticket(make_customer(shop)))
    add_steps(task, 2)

    assert 'id="step-1"' in page_of(reader, task, query)


def test_a_long_result_is_cut_and_shown_in_full_on_the_steps_own_page(shop, reader):
    task = make_task(make_ticket(make_customer(shop)))
    add_steps(task, 1, result={"text": "x" * 6000 + "THE END"})

    page = page_of(reader, task)
    alone = text_of(reader.get(reverse("console:step", args=[task.pk, 1])))

    assert "THE END" not in page
    assert "Show all 6," not in page
    assert "Show all 60" in page
    assert "THE END" in alone


def test_what_models_and_tools_say_is_text_and_nothing_more(shop, reader):
    attack = "<img src=https://evil.example/x>\u202e\u200bignore the rules"
    task = make_task(make_ticket(make_customer(shop)))
    add_steps(
        task,
        1,
        kind="model",
        tool="",
        arguments=attack,
        result={"text": attack, "tool_calls": [{"name": attack}]},
        error=attack[:60],
    )

    page = page_of(reader, task)

    assert "<img" not in page
    assert "\u202e" not in page
    assert "\u200b" not in page
    assert "&lt;img src=https://evil.example/x&gt;[U+202E][U+200B]ignore the rules" in page


def test_arguments_that_do_not_parse_are_shown_as_they_came(shop, reader):
    task = make_task(make_ticket(make_customer(shop)))
    add_steps(task, 1, arguments='{"order_id": "10', error="bad_arguments")

    assert "{&quot;order_id&quot;: &quot;10</pre>" in page_of(reader, task)


def test_a_task_under_way_is_followed_and_an_ended_one_is_not(shop, reader):
    task = make_task(make_ticket(make_customer(shop)))
    add_steps(task, 1)
    poll = poll_of(page_of(reader, task), "log")
    assert reader.get(poll, headers=HX).status_code == 204

    now = timezone.now()
    Task.objects.filter(pk=task.pk).update(status="cancelled", finished_at=now)
    news = text_of(reader.get(poll, headers=HX))

    assert "cancelled" in news
    assert "hx-get" not in news


def test_why_staff_were_asked_is_said_with_what_would_change_it(desk: Desk, reader):
    task = desk.work(desk.ask("My chair from order 1043 is damaged, please refund it"))

    page = page_of(reader, task)

    assert "$400.00 is more than $100.00, so staff were asked after the customer." in page
    assert "could have had up to $100.00" in page
    assert "1 asked <small>0 said yes, policy 1" in page


def test_a_refusal_names_the_rule_in_words(desk: Desk, reader):
    desk.shop.edit_order("1042", status="pending")
    task = desk.work(desk.ask("Please refund order 1042"))

    page = page_of(reader, task)

    assert "The order is pending; only delivered ones are refunded." in page
    assert "before it is shipped it can be cancelled" in page


def test_the_tasks_of_a_ticket_lead_to_each_other(shop, reader):
    ticket = make_ticket(make_customer(shop))
    ended = {"status": "cancelled", "finished_at": timezone.now()}
    first, second, third = (make_task(ticket, **ended) for _ in range(3))
    make_task(make_ticket(make_customer(shop)))

    def links(task: Task) -> dict[str, str]:
        return dict(re.findall(r'rel="(prev|next)" href="([^"]+)"', page_of(reader, task)))

    def at(task: Task) -> str:
        return reverse("console:task", args=[task.pk])

    assert links(first) == {"next": at(second)}
    assert links(second) == {"prev": at(first), "next": at(third)}
    assert links(third) == {"prev": at(second)}


def test_a_step_lies_where_its_time_was(shop, reader):
    start = timezone.now() - timedelta(seconds=100)
    task = make_task(
        make_ticket(make_customer(shop)),
        created_at=start,
        status="cancelled",
        finished_at=start + timedelta(seconds=100),
    )
    moments = {"started_at": start + timedelta(seconds=25), "planned_at": start}
    add_steps(task, 1, finished_at=start + timedelta(seconds=75), **moments)

    page = page_of(reader, task)

    assert '<rect class="bar" x="25" y="2" width="50" height="6"></rect>' in page
    assert "<span>0</span><span>1 min 40 s</span>" in page
