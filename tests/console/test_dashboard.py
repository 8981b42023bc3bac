"""The dashboard: each number counted from the rows, drawn by the server, and there as a table too."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from agents.console.charts import HEIGHT, Chart, Series
from agents.console.numbers import SPANS, Numbers
from agents.models import DayBudget, Step, Task
from tests.console.desk import make_question, poll_of, text_of
from tests.factories import make_customer, make_shop, make_task, make_ticket

HX = {"HX-Request": "true"}
PAGE = "/console/dashboard/"


def end(shop, status: str = "succeeded", *, ago: float = 0, took: float = 10, **fields) -> Task:
    """A task that ended so many hours ago, after so many seconds."""
    finished = timezone.now() - timedelta(hours=ago)
    if status == "succeeded":
        fields.setdefault("outcome", "done")
    return make_task(
        make_ticket(make_customer(shop)),
        status=status,
        created_at=finished - timedelta(seconds=took),
        finished_at=finished,
        **fields,
    )


def call(task: Task, n: int, tool: str = "find_orders", **fields: Any) -> None:
    now = timezone.now()
    details = {"kind": "tool", "tool": tool, "status": "finished", "result": {}}
    times = {"planned_at": now, "started_at": now, "finished_at": now}
    Step.objects.create(task=task, n=n, **details | times | fields)


def numbers(user, span: str = "week") -> Numbers:
    return Numbers(user, SPANS[span], now=timezone.now())


def today(user, key: str) -> dict[str, float | None]:
    """The last piece of each series of a plot."""
    (chart,) = (chart for chart in numbers(user).charts() if chart.key == key)
    return {each.name: each.values[-1] for each in chart.series}


def test_tasks_are_counted_by_how_they_ended(shop, approver):
    for outcome in ("answered", "answered", "done", "refused"):
        end(shop, outcome=outcome)
    for status in ("handed_off", "cancelled", "failed"):
        end(shop, status)
    end(make_shop())
    make_task(make_ticket(make_customer(shop)))

    assert today(approver, "ends") == {
        "answered": 2,
        "done": 1,
        "refused": 1,
        "handed off": 1,
        "cancelled": 1,
        "failed": 1,
    }


def test_an_admin_of_every_shop_sees_them_all_and_others_only_theirs(shop, approver):
    end(shop)
    end(make_shop())

    assert today(approver, "ends")["done"] == 1
    approver.shop = None
    approver.role = "admin"
    assert today(approver, "ends")["done"] == 2


def test_half_and_nine_of_ten_ended_within_so_long(shop, approver):
    for seconds in range(1, 12):
        end(shop, took=seconds)

    assert today(approver, "time") == {"half within": 6, "nine of ten within": 10}


def test_tokens_and_cost_are_those_of_resolved_tasks(shop, approver):
    end(shop, tokens_spent=1000, cost_spent=2000)
    end(shop, tokens_spent=3000, cost_spent=4000)
    end(shop, "handed_off", tokens_spent=9000, cost_spent=9000)

    assert today(approver, "tokens") == {"tokens": 2000}
    assert today(approver, "cost") == {"US dollars": 0.003}


def test_what_was_asked_of_staff_counts_as_escalated(shop, approver):
    make_question(shop)
    end(shop, "handed_off")

    assert today(approver, "escalated") == {"handed off": 1, "asked of staff": 1}


def test_a_proposal_that_was_there_already_is_a_duplicate_prevented(shop, approver):
    task = end(shop)
    call(task, 1, "refund_order", result={"operation": "task-1-step-1"})
    call(task, 2, "refund_order", result={})

    assert today(approver, "duplicates") == {"proposals that were there already": 1}


def test_tools_are_listed_by_what_went_wrong(shop, approver):
    task = end(shop)
    for n, (tool, error) in enumerate(
        [
            ("find_orders", ""),
            ("find_orders", "not_found"),
            ("refund_order", "outside_window"),
            ("refund_order", "outside_window"),
            ("refund_order", "rejected"),
            ("sudo", "unknown_tool"),
        ],
        start=1,
    ):
        call(task, n, tool, error=error)

    found = [
        (row.tool, row.calls, row.faults, row.share, row.commonest)
        for row in numbers(approver).tools()
    ]

    assert found == [
        ("refund_order", 3, 3, 100, "outside_window"),
        ("find_orders", 2, 1, 50, "not_found"),
        ("no such tool", 1, 1, 100, "unknown_tool"),
    ]


def test_what_is_left_of_todays_budget_is_what_is_neither_spent_nor_set_aside(shop, approver):
    assert numbers(approver).now().tokens_left is None
    DayBudget.objects.create(
        shop=shop,
        day=timezone.localdate(),
        max_tokens=1000,
        tokens_spent=300,
        tokens_reserved=100,
        max_cost=50,
        cost_spent=20,
        cost_reserved=5,
    )

    now = numbers(approver).now()

    assert (now.tokens_left, now.tokens_max, now.cost_left, now.cost_max) == (600, 1000, 25, 50)


def test_the_lag_is_that_of_ones_own_shop(shop, approver):
    late = timezone.now() - timedelta(seconds=90)
    task = make_task(make_ticket(make_customer()), wake_at=late, steps_planned=1)
    Step.objects.create(task=task, n=1, kind="model", planned_at=late)

    assert numbers(approver).now().lag == 0
    approver.shop = None
    assert 90 <= numbers(approver).now().lag < 120


def test_a_piece_without_tasks_is_empty_and_not_nothing_seconds_long(shop, approver):
    end(shop, ago=49)

    (chart,) = (chart for chart in numbers(approver).charts() if chart.key == "time")

    assert chart.series[0].values[-1] is None
    assert [value for value in chart.series[0].values if value is not None] == [10]
    assert chart.rows[-1][1] == [
        ("half within", "\N{EN DASH}"),
        ("nine of ten within", "\N{EN DASH}"),
    ]


def test_days_are_those_of_the_shops_calendar():
    now = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
    with timezone.override("America/New_York"):
        starts = SPANS["week"].starts(now)

    assert [start.isoformat() for start in starts[-2:]] == [
        "2026-11-28T00:00:00-05:00",
        "2026-11-29T00:00:00-05:00",
    ]


def test_a_week_with_a_changed_clock_still_has_its_days(shop, approver, sign_in):
    with timezone.override("America/New_York"):
        starts = SPANS["week"].starts(datetime(2026, 11, 4, 12, tzinfo=UTC))

    assert [f"{start:%d %H}" for start in starts][:2] == ["29 00", "30 00"]
    assert len({start.date() for start in starts}) == 7


def test_bars_stand_on_each_other_and_fit_their_box():
    chart = Chart("x", "X", ["a", "b"], [Series("p", [3, None]), Series("q", [1, 0])])

    first, second = chart.boxes

    assert chart.top == 5
    assert first.y == pytest.approx(second.y + second.height)
    assert first.y + first.height <= HEIGHT
    assert first.height == pytest.approx(3 * second.height, abs=0.02)
    assert [box.kind for box in chart.boxes] == [0, 1]


def test_a_line_breaks_where_nothing_is_known():
    values = [1, 2, None, 3, 4, None, 5]
    chart = Chart("x", "X", list("abcdefg"), [Series("p", values)], is_lines=True)

    (line,) = chart.lines

    assert [piece.count(",") for piece in line.pieces] == [2, 2]
    assert len(line.dots) == 5


def test_the_page_draws_every_plot_and_its_table_without_style_or_script(shop, approver, sign_in):
    end(shop)

    page = text_of(sign_in(approver).get(PAGE))

    for title in (
        "Tasks by how they ended",
        "Time from a request to its end",
        "Escalated to people",
        "Duplicates prevented",
        "Tokens for each resolved task",
        "Cost of each resolved task",
        "Tool calls that did not end well",
    ):
        assert title in page
    assert page.count("<caption") >= 6
    assert re.search(
        r'<rect class="k1" x="[\d.]+" y="[\d.]+" width="[\d.]+" height="[\d.]+">', page
    )
    assert "style=" not in page
    assert "Nothing in this time." in page


def test_it_is_asked_again_and_answered_only_when_something_is_new(shop, approver, sign_in):
    client = sign_in(approver)
    poll = poll_of(text_of(client.get(PAGE, {"span": "day"})), "plots")
    assert client.get(poll, headers=HX).status_code == 204

    end(shop)

    assert client.get(poll, headers=HX).status_code == 200


@pytest.mark.parametrize("span", ["day", "week", "month", "year", "", "<script>"])
def test_an_odd_span_is_the_week(approver, sign_in, span):
    page = text_of(sign_in(approver).get(reverse("console:dashboard"), {"span": span}))

    known = SPANS.get(span, SPANS["week"])
    assert f'?span={known.key}" aria-current="page"' in page
