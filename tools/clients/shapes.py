"""What a shop's answers look like, bounded: identifiers refuse, free text is cut.

Money is integer minor units beside an ISO 4217 currency. Texts are data with an author.
"""

from datetime import date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


def _cut(length: int) -> BeforeValidator:
    def cut(value: Any) -> Any:
        return value[:length] if isinstance(value, str) else value

    return BeforeValidator(cut)


def _last(count: int) -> BeforeValidator:
    def last(value: Any) -> Any:
        return value[-count:] if isinstance(value, list) else value

    return BeforeValidator(last)


def _aware(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time needs its zone")
    return value


OrderId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Id = Annotated[str, Field(min_length=1, max_length=120)]
Word = Annotated[str, Field(min_length=1, max_length=40)]
Text = Annotated[str, _cut(1000)]
ShortText = Annotated[str, _cut(200)]
Money = Annotated[int, Field(strict=True, ge=0, le=10**15)]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Count = Annotated[int, Field(strict=True, ge=0, le=10**6)]
Moment = Annotated[datetime, AfterValidator(_aware)]


class Shape(BaseModel):
    """Immutable; fields that we don't know are ignored, so that a shop can add some."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Address(Shape):
    name: ShortText
    line1: ShortText
    line2: ShortText = ""
    city: ShortText
    region: ShortText = ""
    postal_code: ShortText
    country: Annotated[str, Field(pattern=r"^[A-Z]{2}$")]


class Line(Shape):
    id: Id
    sku: ShortText = ""
    title: ShortText
    variant: ShortText = ""
    quantity: Count
    unit_price: Money
    refunded_quantity: Count = 0


class Payment(Shape):
    id: Id
    amount: Money
    currency: Currency
    status: Word


class RefundLine(Shape):
    line_id: Id
    quantity: Count


class Refund(Shape):
    id: Id
    amount: Money
    currency: Currency
    created_at: Moment
    lines: tuple[RefundLine, ...] = ()
    reason: ShortText = ""


class Note(Shape):
    author: ShortText
    text: Text
    at: Moment


class Order(Shape):
    """An order as the shop shows it to its customer. `version` changes with every edit."""

    id: OrderId
    version: Annotated[int, Field(strict=True, ge=0, le=2**53)]
    status: Word
    placed_at: Moment
    shipped_at: Moment | None = None
    delivered_at: Moment | None = None
    currency: Currency
    total: Money
    captured: Money
    refunded: Money
    lines: Annotated[tuple[Line, ...], Field(max_length=500)]
    shipping_address: Address
    payments: Annotated[tuple[Payment, ...], Field(max_length=100)] = ()
    refunds: Annotated[tuple[Refund, ...], Field(max_length=500)] = ()
    notes: Annotated[tuple[Note, ...], _last(50)] = ()


class OrderPage(Shape):
    orders: Annotated[tuple[Order, ...], Field(max_length=100)]
    next_cursor: Annotated[str, Field(max_length=500)] | None = None


class TrackingEvent(Shape):
    at: Moment
    place: ShortText = ""
    text: ShortText = ""


class Tracking(Shape):
    """Where a parcel is. `events` holds the newest 50, in the shop's order."""

    order_id: OrderId
    carrier: ShortText
    tracking_number: ShortText
    status: Word
    expected_on: date | None = None
    events: Annotated[tuple[TrackingEvent, ...], _last(50)] = ()


class Receipt(Shape):
    """The shop's word that an effect happened. `raw` is its whole answer, fit to be stored."""

    id: Id
    kind: Word
    order_id: OrderId
    amount: Money | None = None
    currency: Currency | None = None
    raw: dict[str, Any]
    replayed: bool = False

    @property
    def is_pending(self) -> bool:
        """Has the shop taken a refund whose money it calls pending?"""
        return self.kind == "refund" and self.raw.get("status") == "pending"

    def fits(
        self, *, kind: str, order_id: str, amount: int | None = None, currency: str | None = None
    ) -> bool:
        """Whether this is the effect that was asked for, to the last minor unit."""
        return (self.kind, self.order_id, self.amount, self.currency) == (
            kind,
            order_id,
            amount,
            currency,
        )


class ErrorBody(Shape):
    error: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,60}$")]
    message: Annotated[str, _cut(300)] = ""
