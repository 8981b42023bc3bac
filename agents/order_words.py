"""Orders and parcels as looked up, in plain words. Pure."""

from collections.abc import Sequence
from typing import Any

from tools.language import Text, pick
from tools.text import clean

NOT_FOUND: Text = (
    "I can't find order {order} in your account.",
    "Bestellung {order} finde ich nicht in Ihrem Konto.",
)
NOT_SEEN: Text = (
    "I can't see order {order} at the moment. Please try again in a little while.",
    "Ich kann Bestellung {order} gerade nicht sehen. Bitte versuchen Sie es in einer Weile noch einmal.",
)
_NONE: Text = ("You have no orders here yet.", "Sie haben hier noch keine Bestellungen.")
_STATUS: dict[str, Text] = {
    "pending": (
        "Order {order} has been received and is not packed yet.",
        "Bestellung {order} ist eingegangen und noch nicht gepackt.",
    ),
    "processed": (
        "Order {order} is packed and about to be shipped.",
        "Bestellung {order} ist gepackt und wird bald versandt.",
    ),
    "shipped": ("Order {order} is on its way.", "Bestellung {order} ist unterwegs."),
    "delivered": (
        "Order {order} was delivered on {delivered}.",
        "Bestellung {order} wurde am {delivered} geliefert.",
    ),
    "cancelled": ("Order {order} is cancelled.", "Bestellung {order} ist storniert."),
}
# The same in a word, for a list.
_SHORT: dict[str, Text] = {
    "pending": ("Received", "Eingegangen"),
    "processed": ("Packed", "Gepackt"),
    "shipped": ("On its way", "Unterwegs"),
    "delivered": ("Delivered", "Geliefert"),
    "cancelled": ("Cancelled", "Storniert"),
}
_OTHER: Text = ("Order {order} is {status}.", "Bestellung {order}: {status}.")
_CARRIED: Text = (
    "{carrier} carries it under the number {number}.",
    "{carrier} befördert sie unter der Nummer {number}.",
)
_EXPECTED: Text = ("It is expected on {day}.", "Sie wird am {day} erwartet.")
_LAST_SEEN: Text = ("Last seen: {text}, {place}.", "Zuletzt gesehen: {text}, {place}.")


def status(name: str, locale: str) -> str:
    """Where an order stands, in a word; a status that we do not know, as the shop calls it."""
    return pick(_SHORT[name], locale) if name in _SHORT else clean(name, 40)


def order(found: dict[str, Any], parcel: dict[str, Any], locale: str) -> str:
    """One order and, where it is under way, its parcel. An empty or failed look-up adds nothing."""
    return " ".join([_sentence(found, locale), *_of_parcel(parcel, locale)])


def orders(found: Sequence[dict[str, Any]], parcel: dict[str, Any], locale: str) -> str:
    """The orders of a look-up: one with its parcel, several with a line for each."""
    if not found:
        return pick(_NONE, locale)
    if len(found) == 1:
        return order(found[0], parcel, locale)
    return "\n".join(_sentence(one, locale) for one in found)


def address_lines(address: dict[str, Any]) -> list[str]:
    """An address as it is written on a parcel."""
    if not address:
        return []
    names = ("city", "region", "postal_code")
    place = " ".join(str(address[name]) for name in names if address.get(name))
    lines = (address.get("name"), address.get("line1"), address.get("line2"), place)
    return [str(line) for line in (*lines, address.get("country")) if line]


def _sentence(found: dict[str, Any], locale: str) -> str:
    status = str(found.get("status"))
    return pick(_STATUS.get(status, _OTHER), locale).format(
        order=found.get("order_id"), status=status, delivered=found.get("delivered_on")
    )


def _of_parcel(parcel: dict[str, Any], locale: str) -> list[str]:
    if not parcel or "error" in parcel:
        return []
    sentences = [
        pick(_CARRIED, locale).format(carrier=parcel["carrier"], number=parcel["tracking_number"])
    ]
    if parcel.get("expected_on"):
        sentences.append(pick(_EXPECTED, locale).format(day=parcel["expected_on"]))
    events = parcel.get("events") or []
    if events:
        last = pick(_LAST_SEEN, locale)
        sentences.append(last.format(text=events[-1]["text"], place=events[-1]["place"]))
    return sentences
