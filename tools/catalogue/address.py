"""change_address: where an order that has not left the shop is to be delivered."""

import re
import unicodedata
from datetime import datetime

from pydantic import Field

from accounts.models import Shop
from tools.catalogue.base import Arguments, OrderTool
from tools.clients.shapes import Order
from tools.models import Kind
from tools.policy import Ruling
from tools.seal import Intent
from tools.text import clean, normalise_order_id

CHANGEABLE = ("pending", "processed")
_MARKUP = re.compile(r"[<>{}\\]|https?://", re.IGNORECASE)


class Address(Arguments):
    name: str = Field(min_length=1, max_length=100)
    line1: str = Field(min_length=1, max_length=120)
    line2: str | None = Field(default=None, max_length=120)
    city: str = Field(min_length=1, max_length=80)
    region: str | None = Field(default=None, max_length=80)
    postal_code: str = Field(min_length=1, max_length=20)
    country: str = Field(min_length=2, max_length=2, description="ISO 3166 code, like US.")


class ChangeAddress(Arguments):
    order_id: str = Field(max_length=40, description="The order's number.")
    address: Address


def decide(
    arguments: ChangeAddress, order: Order, shop: Shop, _now: datetime, ruling: Ruling
) -> Intent:
    """The change that the rules allow for these facts. Raises DeniedError."""
    ruling.require(
        "order_has_not_shipped",
        holds=order.status in CHANGEABLE,
        code="order_state",
        message=f"Order {order.id} is {order.status}; its address can only change before it ships.",
        status=order.status,
    )
    address = _plain(arguments.address)
    ruling.require(
        "address_is_plain_text",
        holds=all(_is_plain(value) for value in address.values())
        and all(address[name] for name in ("name", "line1", "city", "postal_code")),
        code="bad_address",
        message="The address holds characters that no address has, or a part of it is empty.",
    )
    ruling.require(
        "country_is_served",
        holds=address["country"] in shop.countries_served,
        code="bad_address",
        message=f"The shop delivers to {', '.join(sorted(shop.countries_served))} only.",
        country=address["country"],
        served=sorted(shop.countries_served),
    )
    ruling.require(
        "address_differs",
        holds=address != order.shipping_address.model_dump(),
        code="bad_address",
        message=f"Order {order.id} already goes to this address.",
    )
    return Intent(
        kind=Kind.CHANGE_ADDRESS,
        order_id=order.id,
        request=address,
        shown={
            "from": {
                name: clean(value, 200)
                for name, value in order.shipping_address.model_dump().items()
            },
            "to": address,
        },
    )


def _plain(address: Address) -> dict[str, str]:
    """The address as the shop stores it: blanks trimmed, absent parts empty, country in capitals."""
    values = {name: (value or "").strip() for name, value in address.model_dump().items()}
    values["country"] = values["country"].upper()
    return values


def _is_plain(text: str) -> bool:
    return not _MARKUP.search(text) and all(
        not unicodedata.category(char).startswith("C") and char not in "\u2028\u2029"
        for char in text
    )


CHANGE_ADDRESS = OrderTool(
    name="change_address",
    description=(
        "Propose a new delivery address for an order that has not shipped. The customer is shown "
        "old and new and asked. The result tells what happened."
    ),
    arguments=ChangeAddress,
    permission="orders:write",
    calls_per_minute=10,
    kind=Kind.CHANGE_ADDRESS,
    order_id=lambda arguments: normalise_order_id(arguments.order_id),
    decide=decide,
    bad={"address": "bad_address"},
)
