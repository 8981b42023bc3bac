"""The shape of a shop's working hours and reminders."""

import re
from typing import Any, Self

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from typing_extensions import override

from approvals.models import Attention

DAYS = [
    ("1", "Monday"),
    ("2", "Tuesday"),
    ("3", "Wednesday"),
    ("4", "Thursday"),
    ("5", "Friday"),
    ("6", "Saturday"),
    ("7", "Sunday"),
]
MOST_ADDRESSES = 10
A_WEEK = 7 * 24 * 60


class AttentionForm(forms.Form):
    """Hours in the shop's zone, minutes of work, and addresses one a line."""

    opens_at = forms.TimeField(label="Opens")
    closes_at = forms.TimeField(label="Closes")
    weekdays = forms.MultipleChoiceField(choices=DAYS, label="On")
    warn_minutes = forms.IntegerField(min_value=1, max_value=A_WEEK, label="Remind after")
    late_minutes = forms.IntegerField(min_value=1, max_value=A_WEEK, label="Late after")
    escalate_to = forms.CharField(max_length=2600, required=False, label="When late, tell")
    sends_mail = forms.BooleanField(required=False, label="Send e-mail")

    @classmethod
    def of(cls, attention: Attention) -> Self:
        """The form as it is filled in now."""
        return cls(
            {
                "opens_at": f"{attention.opens_at:%H:%M}",
                "closes_at": f"{attention.closes_at:%H:%M}",
                "weekdays": [str(day) for day in attention.weekdays],
                "warn_minutes": attention.warn_minutes,
                "late_minutes": attention.late_minutes,
                "escalate_to": "\n".join(attention.escalate_to),
                "sends_mail": attention.sends_mail,
            }
        )

    def clean_escalate_to(self) -> list[str]:
        found = [word for word in re.split(r"[\s,;]+", self.cleaned_data["escalate_to"]) if word]
        if len(found) > MOST_ADDRESSES:
            raise ValidationError(f"At most {MOST_ADDRESSES} addresses.")
        for address in found:
            validate_email(address)
        return found

    @override
    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        opens, closes = given.get("opens_at"), given.get("closes_at")
        if opens and closes and opens >= closes:
            self.add_error("closes_at", "It closes after it opens.")
        warn, late = given.get("warn_minutes"), given.get("late_minutes")
        if warn and late and warn >= late:
            self.add_error("late_minutes", "It is late after the reminder.")
        return given

    def values(self) -> dict[str, Any]:
        """The fields of an Attention. Only after is_valid()."""
        return {**self.cleaned_data, "weekdays": [int(d) for d in self.cleaned_data["weekdays"]]}
