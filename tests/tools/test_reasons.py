"""Why, in words: every rule has its own, and they say what it looked at."""

import re
from pathlib import Path

import pytest

from tools import reasons
from tools.models import Finding, Verdict

TOOLS = Path(reasons.__file__).parent
# The first text after `require(`, or the second argument of `deny(` and `ask(`.
NAMED = re.compile(
    r"ruling\.(?:require\(\s*|(?:deny|ask)\(\s*(?:Gate\.\w+|gate),\s*)\"([a-z0-9_]+)\"", re.DOTALL
)


def verdict(rule: str, finding: Finding = Finding.DENY, **inputs) -> Verdict:
    return Verdict(rule=rule, finding=finding, inputs=inputs)


def said(rule: str, finding: Finding = Finding.DENY, **inputs) -> tuple[str, str]:
    (reason,) = reasons.reasons_of([verdict(rule, finding, **inputs)])
    return reason.why, reason.change


def test_every_rule_that_can_refuse_or_ask_has_its_words():
    code = "\n".join(path.read_text() for path in sorted(TOOLS.rglob("*.py")))

    named = set(NAMED.findall(code))

    assert len(named) > 20
    assert named - set(reasons.RULES) == set()
    assert set(reasons.RULES) - named == set()


LIMITS = {"staff_over_limit", "second_staff_over_limit"}


@pytest.mark.parametrize("rule", sorted(set(reasons.RULES) - LIMITS))
def test_words_come_even_where_an_older_verdict_looked_at_less(rule: str):
    why, change = said(rule)

    assert why.endswith(".")
    assert change.endswith((".", '".'))


def test_over_the_limit_the_sum_and_what_was_free_are_said():
    why, change = said(
        "staff_over_limit",
        Finding.ASK,
        amount=6000,
        other_refunds_24h=6000,
        limit=10_000,
        currency="USD",
    )

    assert "$60.00 of the last 24 hours and $60.00 now is more than $100.00" in why
    assert "up to $40.00" in change


def test_over_the_second_limit_it_is_said_that_two_people_were_asked():
    why, change = said(
        "second_staff_over_limit",
        Finding.ASK,
        amount=60_000,
        other_refunds_24h=0,
        limit=50_000,
        currency="USD",
    )

    assert why.startswith("$600.00 is more than $500.00, so two different members of staff")
    assert "With one of them this customer could have had up to $500.00" in change


def test_when_the_day_is_used_up_nothing_was_free():
    _, change = said(
        "staff_over_limit",
        Finding.ASK,
        amount=100,
        other_refunds_24h=10_000,
        limit=10_000,
        currency="USD",
    )

    assert "nothing more today" in change


def test_outside_the_window_the_day_of_delivery_is_said():
    why, _ = said("within_refund_window", delivered_at="2026-09-01T10:00:00+00:00", window_days=30)

    assert why == "It was delivered on 01 Sep 2026, and the shop refunds for 30 days."


def test_a_rule_that_is_gone_is_named():
    why, change = said("once_upon_a_time\u202e")

    assert "once_upon_a_time[U+202E] refused it" in why
    assert change == ""


def test_a_plain_yes_needs_no_reason():
    assert reasons.reasons_of([verdict("tool_is_on", Finding.ALLOW)]) == []
