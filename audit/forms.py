"""The filter of the audit pages, as it stands in their address and in an export's form."""

from typing import Any

from django import forms
from django.utils import timezone
from typing_extensions import override

from audit.models import ACTION_PATTERN, NAME_LENGTH
from audit.selectors import EventFilter

NOUN_OR_ACTION = ACTION_PATTERN.replace(r"\.[a-z][a-z0-9_]*$", r"(\.[a-z][a-z0-9_]*)?$")
BIGGEST = 2**63 - 1
CSV, JSONL = "csv", "jsonl"


class Moment(forms.DateTimeField):
    """A moment in the zone of the page, as a browser's date and time field writes it."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": 1})

    def __init__(self, **options: Any) -> None:
        super().__init__(
            input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"],
            required=False,
            **options,
        )


class EventFilterForm(forms.Form):
    """Which events: from a moment on, before another, and equal in whatever else is filled in."""

    since = Moment(label="From")
    until = Moment(label="Before")
    actor = forms.CharField(max_length=NAME_LENGTH, required=False, label="Who")
    action = forms.RegexField(NOUN_OR_ACTION, max_length=100, required=False, label="What")
    outcome = forms.CharField(max_length=100, required=False)
    customer = forms.CharField(max_length=NAME_LENGTH, required=False)
    order_id = forms.CharField(max_length=NAME_LENGTH, required=False, label="Order")
    tool = forms.CharField(max_length=100, required=False)
    ticket_id = forms.IntegerField(
        min_value=1, max_value=BIGGEST, required=False, label="Ticket", localize=False
    )
    task_id = forms.IntegerField(
        min_value=1, max_value=BIGGEST, required=False, label="Task", localize=False
    )

    @override
    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        since, until = values.get("since"), values.get("until")
        if since and until and since >= until:
            self.add_error("until", "This is not after the other.")
        return values

    def filter_for(self, shop_id: int | None) -> EventFilter:
        """The filter within one shop (None: every shop). Only after is_valid()."""
        return EventFilter(shop_id=shop_id, **self.cleaned_data)


class ExportForm(EventFilterForm):
    """The same filter, and the kind of file."""

    form = forms.ChoiceField(choices=[(CSV, "CSV"), (JSONL, "JSON lines")])

    @override
    def filter_for(self, shop_id: int | None) -> EventFilter:
        wanted = {name: value for name, value in self.cleaned_data.items() if name != "form"}
        return EventFilter(shop_id=shop_id, **wanted)


def file_name(form: str) -> str:
    """A name that sorts by the time of the export."""
    return f"audit-{timezone.now():%Y%m%dT%H%M%SZ}.{form}"
