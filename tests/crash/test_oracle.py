"""The oracle can see: each invariant speaks up when what it guards is otherwise."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.crash import oracle
from tests.crash.evidence import Evidence, gather
from tests.crash.faults import Fault, Strike, struck
from tests.crash.world import World
from tools.trigger import Point

pytestmark = pytest.mark.django_db(transaction=True)

Change = Callable[[Evidence], Evidence]


def told(text: str) -> Change:
    def change(seen: Evidence) -> Evidence:
        said = [other(message, text=text) for message in seen.messages[-1:]]
        return replace(seen, messages=[*seen.messages[:-1], *said])

    return change


def other(row: Any, **fields: Any) -> Any:
    """A row like this one, not saved."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return type(row)(**values | fields)


def effect(**fields: Any) -> Change:
    return lambda seen: replace(seen, effects=[dict(seen.effects[0]) | fields])


def operation(**fields: Any) -> Change:
    return lambda seen: replace(seen, operations=[other(seen.operations[0], **fields)])


WRONG: list[tuple[str, Change]] = [
    ("i01", lambda seen: replace(seen, effects=[*seen.effects, *seen.effects])),
    ("i01", effect(amount=4001)),
    ("i02", lambda seen: replace(seen, order=lambda _: _overpaid())),
    ("i03", effect(idempotency_key="task-0-step-0")),
    ("i03", effect(at=datetime(2020, 1, 1, tzinfo=UTC).isoformat())),
    ("i03", operation(granted_roles=[])),
    ("i03", lambda seen: replace(seen, approvals=[other(seen.approvals[0], digest="0" * 64)])),
    ("i04", effect(amount=3999)),
    ("i04", effect(kind="cancel")),
    ("i04", effect(detail={"lines": [], "reason": "other"})),
    ("i05", lambda seen: replace(seen, effects=[])),
    ("i05", operation(state="failed")),
    ("i06", lambda seen: replace(told("I have refunded $40.00.")(seen), effects=[])),
    ("i06", told("I have cancelled order 1.")),
    ("i06", told("We have e-mailed you.")),
    ("i06", told("The refund was not made.")),
    ("i06", told("Well. Nothing has been changed so far.")),
    ("i06", told("So your money was not refunded.")),
    ("i07", operation(state="unknown")),
    ("i08", lambda seen: replace(seen, sends=list(seen.sends) * 6)),
    ("i08", lambda seen: replace(seen, attempts=[])),
    ("i08", lambda seen: replace(seen, attempts=[other(seen.attempts[0], request_digest="0")])),
    (
        "i09",
        lambda seen: replace(
            seen, operations=[other(one, state="unknown") for one in list(seen.operations) * 2]
        ),
    ),
    ("i12", lambda seen: replace(seen, events=list(seen.events) * 2)),
    ("i12", lambda seen: replace(seen, model_calls=[{"usage": None}] * 9)),
    ("i15", lambda seen: replace(seen, steps=seen.steps[1:])),
    (
        "i15",
        lambda seen: replace(seen, steps=[other(seen.steps[0], status="started"), *seen.steps[1:]]),
    ),
    ("i20", lambda seen: replace(seen, attempts=list(seen.attempts) * 2)),
    ("i20", operation(epoch=10**6)),
    ("i23", lambda seen: replace(seen, approvals=list(seen.approvals) * 2)),
    ("i23", lambda seen: replace(seen, approvals=[other(seen.approvals[0], status="open")])),
    ("i36", lambda seen: replace(seen, tasks=[other(seen.tasks[0], tokens_spent=10**9)])),
    ("i38", lambda seen: replace(seen, tasks=[other(seen.tasks[0], tokens_reserved=1)])),
    ("i38", lambda seen: replace(seen, tasks=[other(seen.tasks[0], cost_spent=1)])),
    ("i38", lambda seen: replace(seen, days=[])),
    ("i38", lambda seen: replace(seen, model_calls=[{"usage": {"total_tokens": 10**6}}])),
    ("i41", lambda seen: replace(seen, events=seen.events[1:-1])),
    ("told_exactly_once", lambda seen: replace(seen, messages=seen.messages[:1])),
    ("told_exactly_once", lambda seen: replace(seen, messages=list(seen.messages) * 2)),
    (
        "every_task_rests",
        lambda seen: replace(seen, tasks=[other(seen.tasks[0], status="running")]),
    ),
]


def _overpaid() -> dict[str, Any]:
    return {
        "payments": [{"amount": 100, "status": "captured"}],
        "refunds": [{"amount": 101}],
        "lines": [],
    }


def test_every_invariant_is_one_of_those_that_are_shown_to_see():
    shown = {name for name, _ in WRONG}

    assert {check.__name__.split("_")[0] for check in oracle.AT_REST} == {
        name.split("_")[0] for name in shown
    }


def test_what_is_wrong_is_named(world: World):
    case = world.case("refund")
    case.live()
    seen = gather(case.customer, world.shop, world.postbox, world.model.calls())
    assert oracle.wrong(seen) == []

    for name, change in WRONG:
        found = oracle.wrong(change(seen))

        assert [what for what in found if what.startswith(name)], f"{name} overlooks it: {found}"


def test_an_oversleeper_brings_its_answer_home_as_evidence_and_nothing_else(world: World):
    case = world.case("refund")

    with struck(Strike(case, Point.C15, Fault.OVERSLEPT, 1)):
        case.live()

    seen = gather(case.customer, world.shop)
    assert [attempt.detail for attempt in seen.attempts] == ["worker_lost"]
    assert [one.body["outcome"] for one in seen.observations] == ["succeeded"]
    assert [send["path"].rpartition("/")[2] for send in seen.sends] == ["refunds"]


def test_who_oversleeps_before_the_first_byte_sends_nothing(world: World):
    case = world.case("refund")

    with struck(Strike(case, Point.C14, Fault.OVERSLEPT, 1)):
        case.live()

    seen = gather(case.customer, world.shop)
    assert "lease_too_short" in [one.body.get("detail") for one in seen.observations]
    assert len(seen.sends) == len(seen.effects) == 1
