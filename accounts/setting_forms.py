"""A shop's settings as people read and write them: money as decimals, lists a line each."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from typing_extensions import override

from accounts.models import Shop
from accounts.shop_settings import HUGE, MAX_REASON
from audit import currencies

MODEL_CURRENCY = "USD"
MODEL_PLACES = 6  # model costs are kept in millionths of a dollar


class Kind(Enum):
    MONEY = "money"  # minor units of the shop's currency
    COST = "cost"  # millionths of a US dollar
    NUMBER = "number"
    SECONDS = "seconds"
    FLAG = "flag"
    LIST = "list"
    TEXT = "text"
    ZONE = "zone"


@dataclass(frozen=True)
class Setting:
    """One setting: its column, what people call it, and what it decides."""

    name: str
    label: str
    kind: Kind
    hint: str = ""
    # Empty means that there is none.
    may_be_empty: bool = False

    @property
    def takes_two(self) -> bool:
        return self.name in Shop.LOOSENED_BY_TWO


@dataclass(frozen=True)
class Section:
    """Settings that are changed together, by one form."""

    key: str
    title: str
    words: str
    settings: tuple[Setting, ...]

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.settings]

    @property
    def takes_two(self) -> bool:
        return any(each.takes_two for each in self.settings)


SECTIONS = (
    Section(
        "money",
        "Money and approvals",
        "Tighter counts at once. Looser waits for a second admin.",
        (
            Setting("staff_limit", "Refunds above this need staff", Kind.MONEY,
                    "Alone, or as a customer's sum in 24 hours. Exactly this much does not."),
            Setting("second_limit", "Refunds above this need two of staff", Kind.MONEY,
                    "Counted in the same way. Two different people. Empty: one is enough for any sum. "
                    "In an upgrade from a version without it: set it once every process runs the new one.",
                    may_be_empty=True),
            Setting("staff_also_for_cancel", "Cancellations count toward these limits", Kind.FLAG),
            Setting("refund_window_days", "Days after delivery in which an order is refunded", Kind.NUMBER),
            Setting("countries_served", "Countries that an address may be in", Kind.LIST,
                    "Two letters each, one a line."),
            Setting("customer_approval_seconds", "Time for a customer's yes", Kind.SECONDS, "In seconds."),
            Setting("staff_approval_seconds", "Time for staff after that", Kind.SECONDS,
                    "In seconds. Twice as long where two are asked."),
        ),
    ),
    Section(
        "budgets",
        "Budgets of the model",
        "What it may cost. Lower counts at once, higher waits for a second admin.",
        (
            Setting("max_cost", "One task", Kind.COST, "In US dollars."),
            Setting("max_tokens", "One task, in tokens", Kind.NUMBER),
            Setting("customer_day_max_cost", "One customer a day", Kind.COST, "In US dollars."),
            Setting("customer_day_max_tokens", "One customer a day, in tokens", Kind.NUMBER),
            Setting("shop_day_max_cost", "The shop a day", Kind.COST, "In US dollars."),
            Setting("shop_day_max_tokens", "The shop a day, in tokens", Kind.NUMBER),
        ),
    ),
    Section(
        "limits",
        "How much at once",
        "Counts from the next request on.",
        (
            Setting("max_steps", "Steps of one task", Kind.NUMBER, "The hand-off included."),
            Setting("max_active_seconds", "Time in which a task is worked on", Kind.SECONDS,
                    "In seconds. Waiting does not count."),
            Setting("max_running_tasks", "Tasks of the shop under way", Kind.NUMBER,
                    "Ready or worked on. Those that wait do not count."),
            Setting("max_open_tasks_per_customer", "Tasks of one customer under way", Kind.NUMBER),
            Setting("tasks_per_minute_per_customer", "New tasks of one customer in a minute", Kind.NUMBER),
        ),
    ),
    Section(
        "shop",
        "The shop",
        "Names, times and places.",
        (
            Setting("name", "Name", Kind.TEXT),
            Setting("time_zone", "Time zone", Kind.ZONE,
                    "Whose midnight ends a day's budget, and the times of these pages."),
            Setting("locale", "Language of amounts", Kind.TEXT, "For customers who told none: en-GB."),
            Setting("mail_from", "Sender of closing e-mails", Kind.TEXT, "Empty: none are sent."),
            Setting("keep_texts_days", "Days that texts are kept", Kind.NUMBER,
                    "After a ticket's last change. 0: for ever."),
            Setting("allowed_origins", "Sites that may show the chat", Kind.LIST,
                    "One a line: https://shop.example"),
        ),
    ),
)  # fmt: skip
BY_KEY = {section.key: section for section in SECTIONS}
BY_NAME = {each.name: each for section in SECTIONS for each in section.settings}


class SectionForm(forms.Form):
    """The fields of one section, filled in from a shop; `wanted` reads them back as columns."""

    seen = forms.RegexField(r"^[0-9a-f]{64}$", widget=forms.HiddenInput)
    reason = forms.CharField(max_length=MAX_REASON, required=False)
    password = forms.CharField(max_length=500, required=False, strip=False)
    code = forms.CharField(max_length=100, required=False)

    def __init__(self, section: Section, shop: Shop, data: Any = None, seen: str = "") -> None:
        super().__init__(data, auto_id=f"{section.key}-%s")
        self.section = section
        self.shop = shop
        self.initial["seen"] = seen
        for each in section.settings:
            self.fields[each.name] = _field(each, shop)
            self.initial[each.name] = _shown(each, getattr(shop, each.name), shop)

    def wanted(self) -> dict[str, Any]:
        """The values as the shop keeps them. Only after is_valid()."""
        return {
            each.name: _kept(each, self.cleaned_data[each.name], self.shop)
            for each in self.section.settings
        }

    def rows(self) -> Iterable[tuple[Setting, forms.BoundField]]:
        return [(each, self[each.name]) for each in self.section.settings]


def in_words(name: str, value: Any, shop: Shop) -> str:
    """A setting's value as people say it: "$100.00", "US, CA", "yes"."""
    setting = BY_NAME.get(name)
    if value is None:
        return "none"
    match setting.kind if setting else Kind.TEXT:
        case Kind.MONEY:
            return currencies.show(value, shop.currency, "en_US")
        case Kind.COST:
            cost = Decimal(value).scaleb(-MODEL_PLACES).normalize()
            return f"${cost:,.2f}" if cost == round(cost, 2) else f"${cost:f}"
        case Kind.FLAG:
            return "yes" if value else "no"
        case Kind.LIST:
            return ", ".join(value) or "none"
        case Kind.SECONDS:
            return f"{value:,} s"
        case Kind.NUMBER:
            return f"{value:,}"
        case _:
            return str(value)


def label_of(name: str) -> str:
    setting = BY_NAME.get(name)
    return setting.label if setting else name


class LongSelect(forms.Select):
    """A select of hundreds of plain choices: Django would draw two templates for each of them."""

    @override
    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        chosen = self.format_value(value)
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            (
                (key, flatatt({"selected": str(key) in chosen}), label)
                for key, label in self.choices
            ),
        )
        own = flatatt({"name": name, **self.build_attrs(self.attrs, attrs)})
        return format_html("<select{}>{}</select>", own, options)


def _field(setting: Setting, shop: Shop) -> forms.Field:
    names: dict[str, Any] = {"label": setting.label, "help_text": setting.hint}
    match setting.kind:
        case Kind.MONEY:
            places = currencies.precision(shop.currency)
            return _decimal(places, required=not setting.may_be_empty, **names)
        case Kind.COST:
            return _decimal(MODEL_PLACES, **names)
        case Kind.NUMBER | Kind.SECONDS:
            return forms.IntegerField(min_value=0, max_value=HUGE, localize=False, **names)
        case Kind.FLAG:
            return forms.BooleanField(required=False, **names)
        case Kind.LIST:
            area = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
            return forms.CharField(max_length=4000, required=False, widget=area, **names)
        case Kind.ZONE:
            zones = [(zone, zone) for zone in sorted(available_timezones())]
            return forms.ChoiceField(choices=zones, widget=LongSelect, **names)
        case _:
            return forms.CharField(max_length=254, required=setting.name != "mail_from", **names)


def _decimal(places: int, **names: Any) -> forms.Field:
    return forms.DecimalField(
        min_value=Decimal(0), max_digits=15, decimal_places=places, localize=False, **names
    )


def _shown(setting: Setting, value: Any, shop: Shop) -> Any:
    if value is None:
        return ""
    match setting.kind:
        case Kind.MONEY:
            places = currencies.precision(shop.currency)
            return f"{Decimal(value).scaleb(-places):.{places}f}"
        case Kind.COST:
            cost = Decimal(value).scaleb(-MODEL_PLACES)
            return f"{cost:.2f}" if cost == round(cost, 2) else f"{cost.normalize():f}"
        case Kind.LIST:
            return "\n".join(value)
        case _:
            return value


def _kept(setting: Setting, value: Any, shop: Shop) -> Any:
    if value is None:
        return None
    match setting.kind:
        case Kind.MONEY:
            return int(value.scaleb(currencies.precision(shop.currency)))
        case Kind.COST:
            return int(value.scaleb(MODEL_PLACES))
        case Kind.LIST:
            return list(dict.fromkeys(value.split()))
        case _:
            return value
