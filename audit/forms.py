"""The filter of the audit pages, as it stands in their address and in an export's form."""

from decimal import Decimal
from typing import Any

from django import forms
from typing_extensions import override

from audit import currencies
from audit.export_models import REASON_LENGTH, ExportForm
from audit.models import ACTION_PATTERN, NAME_LENGTH
from audit.selectors import EventFilter

NOUN_OR_ACTION = ACTION_PATTERN.replace(r"\.[a-z][a-z0-9_]*$", r"(\.[a-z][a-z0-9_]*)?$")
BIGGEST = 2**63 - 1
MOST_MONEY = Decimal(10) ** 12
DECISIONS = ["granted", "rejected", "expired", "withdrawn", "superseded", "taken_back"]


class Moment(forms.DateTimeField):
    """A moment in the zone of the page, as a browser's date and time field writes it."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": 1})

    def __init__(self, **options: Any) -> None:
        super().__init__(
            input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"],
            required=False,
            **options,
        )


class Number(forms.IntegerField):
    """The number of a ticket or a task."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=1, max_value=BIGGEST, required=False, localize=False, **options)


class Amount(forms.DecimalField):
    """Money in the currency's own units: 100.00."""

    widget = forms.TextInput(attrs={"inputmode": "decimal", "placeholder": "100.00"})

    def __init__(self, **options: Any) -> None:
        super().__init__(
            min_value=-MOST_MONEY, max_value=MOST_MONEY, required=False, localize=False, **options
        )


class EventFilterForm(forms.Form):
    """Which events: from a moment on, before another, and equal in whatever else is filled in."""

    FIRST = ("since", "until", "actor", "action", "customer", "order_id")

    since = Moment(label="From")
    until = Moment(label="Before")
    actor = forms.CharField(max_length=NAME_LENGTH, required=False, label="Who")
    action = forms.RegexField(NOUN_OR_ACTION, max_length=100, required=False, label="What")
    customer = forms.CharField(max_length=NAME_LENGTH, required=False)
    order_id = forms.CharField(max_length=NAME_LENGTH, required=False, label="Order")
    decision = forms.ChoiceField(
        choices=[("", "Any"), *((one, one.replace("_", " ")) for one in DECISIONS)], required=False
    )
    outcome = forms.CharField(max_length=100, required=False)
    tool = forms.CharField(max_length=100, required=False)
    ticket_id = Number(label="Ticket")
    task_id = Number(label="Task")
    amount_from = Amount(label="Amount from")
    amount_to = Amount(label="Amount to")
    currency = forms.RegexField(
        r"^[A-Za-z]{3}$",
        required=False,
        widget=forms.TextInput(attrs={"maxlength": 3, "placeholder": "USD"}),
        error_messages={"invalid": "Three letters, like USD."},
    )

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()

    @override
    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        since, until = values.get("since"), values.get("until")
        if since and until and since >= until:
            self.add_error("until", "This is not after the other.")
        least, most = values.get("amount_from"), values.get("amount_to")
        if (least, most) == (None, None):
            return values
        if not values.get("currency") and "currency" not in self.errors:
            self.add_error("currency", "Which currency? For instance USD.")
        elif least is not None and most is not None and least > most:
            self.add_error("amount_to", "This is less than the other.")
        for name in ("amount_from", "amount_to"):
            if values.get(name) is not None and not _is_whole(
                values[name], values.get("currency", "")
            ):
                self.add_error(name, "This currency has fewer decimals.")
        return values

    def filter_for(self, shop_id: int | None) -> EventFilter:
        """The filter within one shop (None: every shop). Only after is_valid()."""
        given = {
            name: value
            for name, value in self.cleaned_data.items()
            if name in EventFilterForm.base_fields and not name.startswith("amount_")
        }
        currency = given["currency"]
        return EventFilter(
            shop_id=shop_id,
            amount_min=_minor(self.cleaned_data["amount_from"], currency),
            amount_max=_minor(self.cleaned_data["amount_to"], currency),
            **given,
        )

    def first(self) -> list[forms.BoundField]:
        """The fields that are always in view."""
        return [self[name] for name in self.FIRST]

    def more(self) -> list[forms.BoundField]:
        """The others."""
        return [self[name] for name in EventFilterForm.base_fields if name not in self.FIRST]

    def more_is_used(self) -> bool:
        """Whether one of the others is filled in or wrong."""
        return any(field.data or field.errors for field in self.more())


class AskForm(EventFilterForm):
    """The same filter, the kind of file, and whether people's words are to be in it."""

    form = forms.ChoiceField(choices=ExportForm.choices)
    words = forms.BooleanField(required=False)
    reason = forms.CharField(max_length=REASON_LENGTH, required=False)


def _minor(amount: Decimal | None, currency: str) -> int | None:
    return None if amount is None else int(amount.scaleb(currencies.precision(currency)))


def _is_whole(amount: Decimal, currency: str) -> bool:
    scaled = amount.scaleb(currencies.precision(currency or "USD"))
    return scaled == scaled.to_integral_value()
