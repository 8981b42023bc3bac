"""What is asked of the product: customers, orders and requests, made up from a seed.

The same seed makes the same plan. Every request has an order of its own (one kind asks about the
same order from two chats at once), so that what happens to an order can be traced to who asked.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from script.lib.prove.team import SECOND_LIMIT

CUSTOMERS_SHARE = 3  # requests of one customer, at most as many as may be open at once
NAMES = ("Ava", "Ben", "Cora", "Dev", "Elif", "Finn", "Gita", "Hugo", "Iris", "Jon", "Kira", "Liam")
THINGS = ("Enamel kettle", "Wool throw", "Oak stool", "Linen apron", "Brass lamp", "Clay planter")
STREETS = ("Alder Court", "Birch Street", "Cedar Lane", "Dogwood Drive", "Elm Street")
CITIES = (("Salem", "OR", "97301"), ("Boise", "ID", "83702"), ("Tacoma", "WA", "98402"))


@dataclass(frozen=True)
class Request:
    """One request of one customer, and how the people behind it answer what they are asked.

    `customer_says` is yes, late, no, taken_back or cancelled (the task, instead of an answer);
    `staff_says` is yes or no, and so is `second_says`, where two of staff are asked. The first of
    these may try to be the second as well (`first_again`: "self", or "double", by a second account of
    theirs) or lose the right between the two (`first_leaves`). `pause` is in seconds, before a person
    answers.
    """

    kind: str
    customer: str
    order_id: str
    message: str
    customer_says: str = "yes"
    staff_says: str = "yes"
    staff_in_console: bool = False
    second_says: str = "yes"
    first_again: str = ""
    first_leaves: bool = False
    pause: float = 0.0


@dataclass
class Batch:
    """Requests with the catalogue that they need at the shop."""

    requests: list[Request] = field(default_factory=list)
    customers: list[dict[str, Any]] = field(default_factory=list)
    orders: list[dict[str, Any]] = field(default_factory=list)

    def catalogue(self) -> dict[str, Any]:
        """As the pretend shop's `load_shop` reads it."""
        return {"customers": self.customers, "orders": self.orders}


class Planner:
    """Makes batch after batch. Orders are numbered from `first_order`, above the demo's."""

    def __init__(self, seed: int, *, first_order: int = 20001) -> None:
        self._random = random.Random(f"plan-{seed}")  # noqa: S311 - repeatable on purpose
        self._next_order = first_order
        self._customers = 0
        self._room = 0
        self.batch = Batch()

    def make(self, count: int) -> Batch:
        """The next `count` requests, in the order in which they are to be made."""
        self.batch = Batch()
        self._room = 0
        while len(self.batch.requests) < count:
            left = count - len(self.batch.requests)
            kinds = [kind for kind, _ in KINDS if kind != "twice" or left > 1]
            weights = [weight for kind, weight in KINDS if kind in kinds]
            kind = self._random.choices(kinds, weights)[0]
            self.batch.requests += _MAKERS[kind](self)
        return self.batch

    # --- The kinds ------------------------------------------------------------------------------

    def small_refund(self) -> list[Request]:
        order = self.order("delivered", [self._random.randrange(500, 6000)])
        return [
            self._request("small refund", order, "Please refund order {id}, it arrived broken.")
        ]

    def large_refund(self) -> list[Request]:
        order = self.order("delivered", [self._random.randrange(10001, SECOND_LIMIT)])
        return [self._request("large refund", order, "Please refund order {id}: it never arrived.")]

    def very_large_refund(self) -> list[Request]:
        """Two of staff are asked, and the first of them is not always good or lucky."""
        price = self._random.randrange(SECOND_LIMIT + 1, 60000)
        text = "Please refund order {id}: it never arrived."
        request = self._request("very large refund", self.order("delivered", [price]), text)
        leaves = self._random.random() < 0.3
        return [
            replace(
                request,
                customer_says=request.customer_says if self._random.random() < 0.3 else "yes",
                staff_says="yes" if leaves else request.staff_says,
                second_says=self._random.choices(["yes", "no"], [80, 20])[0],
                first_again=self._random.choices(["", "self", "double"], [30, 40, 30])[0],
                first_leaves=leaves,
            )
        ]

    def part_refund(self) -> list[Request]:
        prices = [self._random.randrange(800, 4000) for _ in range(3)]
        order = self.order("delivered", prices)
        if self._random.random() < 0.5:
            amount = f"${self._random.randrange(200, 700) / 100:.2f}"
            text = f"I would like {amount} back for order {{id}}, please. It arrived damaged."
        else:
            title = order["lines"][self._random.randrange(3)]["title"].lower()
            text = f"Please refund the {title} from order {{id}}. It arrived damaged."
        return [self._request("part refund", order, text)]

    def cancellation(self) -> list[Request]:
        order = self.order("pending", [self._random.randrange(900, 20000)])
        text = "Please cancel order {id}, I no longer need it."
        return [self._request("cancellation", order, text)]

    def new_address(self) -> list[Request]:
        order = self.order("processed", [self._random.randrange(900, 9000)])
        city, region, code = self._random.choice(CITIES)
        street = f"{self._random.randrange(2, 99)} {self._random.choice(STREETS)}"
        text = "Please change the delivery address of order {id} to "
        return [self._request("new address", order, f"{text}{street}, {city}, {region} {code}")]

    def status(self) -> list[Request]:
        order = self.order("shipped", [self._random.randrange(900, 9000)])
        return [self._request("status", order, "Where is my order {id}?")]

    def policy(self) -> list[Request]:
        order = self.order("delivered", [self._random.randrange(900, 9000)])
        return [self._request("policy", order, "How long do I have to return something?")]

    def twice(self) -> list[Request]:
        """The same refund asked for in two chats of one customer."""
        order = self.order("delivered", [self._random.randrange(500, 6000)], requests=2)
        text = "Please refund order {id}, it arrived broken."
        return [self._request("twice", order, text), self._request("twice", order, text)]

    # --- Parts ----------------------------------------------------------------------------------

    def order(self, status: str, prices: list[int], *, requests: int = 1) -> dict[str, Any]:
        """A fresh order of a customer who may still ask for so much."""
        if self._room < requests:
            self._new_customer()
        self._room -= requests
        order_id, self._next_order = str(self._next_order), self._next_order + 1
        titles = self._random.sample(THINGS, len(prices))
        order: dict[str, Any] = {
            "id": order_id,
            "customer": self.batch.customers[-1]["id"],
            "status": status,
            "placed": "-9d",
            "lines": [
                {"title": title, "unit_price": price}
                for title, price in zip(titles, prices, strict=True)
            ],
        }
        if status in {"shipped", "delivered"}:
            order["shipped"] = "-7d"
            order["tracking"] = _parcel(order_id, status)
        if status == "delivered":
            order["delivered"] = "-4d"
        self.batch.orders.append(order)
        return order

    def _new_customer(self) -> None:
        self._customers += 1
        self._room = CUSTOMERS_SHARE
        name = f"{self._random.choice(NAMES)} Prover"
        self.batch.customers.append(customer(f"prove{self._customers}", name))

    def _request(self, kind: str, order: dict[str, Any], text: str) -> Request:
        says = self._random.choices(
            ["yes", "late", "no", "taken_back", "cancelled"], [76, 10, 7, 3, 4]
        )[0]
        return Request(
            kind=kind,
            customer=order["customer"],
            order_id=order["id"],
            message=text.format(id=order["id"]),
            customer_says=says,
            staff_says=self._random.choices(["yes", "no"], [85, 15])[0],
            staff_in_console=self._random.random() < 0.3,
            pause=self._random.uniform(5, 12) if says == "late" else self._random.uniform(0, 0.6),
        )


# Each kind with its weight among a hundred.
KINDS = (
    ("small refund", 24),
    ("large refund", 8),
    ("very large refund", 6),
    ("part refund", 14),
    ("cancellation", 14),
    ("new address", 12),
    ("status", 12),
    ("policy", 4),
    ("twice", 6),
)
_MAKERS: dict[str, Callable[[Planner], list[Request]]] = {
    "small refund": Planner.small_refund,
    "large refund": Planner.large_refund,
    "very large refund": Planner.very_large_refund,
    "part refund": Planner.part_refund,
    "cancellation": Planner.cancellation,
    "new address": Planner.new_address,
    "status": Planner.status,
    "policy": Planner.policy,
    "twice": Planner.twice,
}


def customer(customer_id: str, name: str) -> dict[str, Any]:
    """A customer as a catalogue has them."""
    return {
        "id": customer_id,
        "name": name,
        "email": f"{customer_id}@example.com",
        "locale": "en-US",
        "address": {
            "name": name,
            "line1": "1 Mill Street",
            "city": "Portland",
            "region": "OR",
            "postal_code": "97205",
            "country": "US",
        },
    }


def _parcel(order_id: str, status: str) -> dict[str, Any]:
    return {
        "carrier": "Blue Heron Post",
        "tracking_number": f"BH{order_id}",
        "status": "delivered" if status == "delivered" else "in_transit",
        "expected_on": "-4d" if status == "delivered" else "+1d",
        "events": [{"at": "-6d", "place": "Portland", "text": "Accepted"}],
    }
