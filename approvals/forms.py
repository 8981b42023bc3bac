"""The shapes of what the approvals' pages are asked and told."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django import forms

from approvals import inbox
from audit import currencies
from tools.models import Kind

ANY = [("", "Any")]

APPROVE, REJECT = "approve", "reject"


class DecisionForm(forms.Form):
    """One of two words, for one digest. Nothing else counts as a decision."""

    decision = forms.ChoiceField(choices=[(APPROVE, "Approve"), (REJECT, "Reject")])
    digest = forms.RegexField(r"^[0-9a-f]{64}$")
    decision_id = forms.RegexField(r"^[0-9a-f-]{36}$")
    reason = forms.CharField(max_length=500, required=False)
    password = forms.CharField(max_length=500, required=False, strip=False)
    code = forms.CharField(max_length=100, required=False)

    @property
    def is_yes(self) -> bool:
        return bool(self.cleaned_data["decision"] == APPROVE)


class NarrowingForm(forms.Form):
    """What narrows a list of cases, in its address. Amounts are written as people write them: 40.00."""

    q = forms.CharField(max_length=120, required=False, label="Customer, order or ticket")
    kind = forms.ChoiceField(choices=ANY + Kind.choices, required=False, label="Action")
    least = forms.DecimalField(
        min_value=Decimal(0), max_digits=12, decimal_places=3, required=False, label="Amount from"
    )
    most = forms.DecimalField(
        min_value=Decimal(0), max_digits=12, decimal_places=3, required=False, label="Amount to"
    )
    older = forms.TypedChoiceField(
        choices=[*ANY, ("1", "1 hour"), ("4", "4 hours"), ("24", "a day"), ("72", "3 days")],
        required=False,
        coerce=int,
        empty_value=None,
        label="Waiting longer than",
    )
    person = forms.RegexField(
        rf"^({inbox.MINE}|{inbox.NOBODY}|[0-9]{{1,18}})$", required=False, label="Whose"
    )
    flagged = forms.BooleanField(required=False, label="Only flagged")

    def narrowed(self, currency: str) -> dict[str, Any]:
        """What is asked for, with amounts in minor units of this currency. Only after is_valid()."""
        given = self.cleaned_data
        return {
            "kind": given["kind"],
            "least": _minor(given["least"], currency),
            "most": _minor(given["most"], currency),
            "older": given["older"],
            "person": given["person"],
            "text": given["q"],
            "only_flagged": given["flagged"],
        }

    @property
    def narrows_more(self) -> bool:
        """Is one of the rarer fields filled in? Then they are shown."""
        return any(self[name].value() for name in ("least", "most", "older", "flagged"))


class InboxFilterForm(NarrowingForm):
    """The filter in the address of the inbox."""

    status = forms.ChoiceField(
        choices=[
            ("", "Waiting"),
            (inbox.SNOOZED, "Put off"),
            (inbox.ANSWERED, "Answered or over"),
        ],
        required=False,
    )

    def filter_for(self, currency: str) -> inbox.InboxFilter:
        return inbox.InboxFilter(status=self.cleaned_data["status"], **self.narrowed(currency))


def _minor(value: Decimal | None, currency: str) -> int | None:
    return None if value is None else int(value.scaleb(currencies.precision(currency)))


SNOOZES = [("15", "15 minutes"), ("60", "an hour"), ("240", "4 hours"), ("960", "16 hours")]
REJECT_ALL, ASSIGN, SNOOZE, WAKE = "reject", "assign", "snooze", "wake"


class HandlingForm(forms.Form):
    """What is to become of one question, or of several, short of a yes."""

    what = forms.ChoiceField(
        choices=[
            (REJECT_ALL, "Reject"),
            (ASSIGN, "Assign"),
            (SNOOZE, "Put off"),
            (WAKE, "Bring back"),
        ]
    )
    to = forms.RegexField(r"^[0-9]{1,18}$", required=False)
    minutes = forms.TypedChoiceField(choices=SNOOZES, required=False, coerce=int, empty_value=None)
    reason = forms.CharField(max_length=500, required=False)
    decision_id = forms.RegexField(r"^[0-9a-f-]{36}$", required=False)

    @property
    def length(self) -> timedelta:
        return timedelta(minutes=self.cleaned_data["minutes"] or 60)
