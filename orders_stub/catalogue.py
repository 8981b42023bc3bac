"""Catalogues: a JSON file of customers and orders, checked whole before one row is written.

README.md documents the format with an example.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from orders_stub import order_shapes, orders, shapes
from orders_stub.database import Database
from orders_stub.orders import Order
from orders_stub.shapes import ShapeError

DEMO_FILE = Path(__file__).with_name("demo.json")
MOST_PROBLEMS = 20
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
ORDER_FIELDS = {
    "id": True,
    "customer": True,
    "status": True,
    "placed": True,
    "shipped": False,
    "delivered": False,
    "currency": False,
    "lines": True,
    "shipping_address": False,
    "payments": False,
    "refunds": False,
    "notes": False,
    "tracking": False,
}


class CatalogueError(Exception):
    """A catalogue that was refused: `problems` name each place. Nothing was changed."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Customer:
    """A customer of a catalogue; `address` is used by orders that give none."""

    id: str
    name: str
    email: str
    locale: str
    address: dict[str, str] | None


@dataclass
class Catalogue:
    """A checked catalogue: every order belongs to one of its customers or to a known one."""

    customers: dict[str, Customer] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)


Item = TypeVar("Item", Customer, Order)


@dataclass(frozen=True)
class Loaded:
    """How much of a catalogue was new."""

    customers_added: int
    customers_kept: int
    orders_added: int
    orders_kept: int

    def summary(self) -> str:
        """The counts as one sentence."""
        return (
            f"customers: {self.customers_added} added, {self.customers_kept} already there; "
            f"orders: {self.orders_added} added, {self.orders_kept} already there"
        )


def load_file(db: Database, path: Path, *, at: datetime, others_allowed: bool = False) -> Loaded:
    """Load a catalogue file in one transaction. What is already there stays as it is.

    An order id that another customer has already is refused, unless `others_allowed`: then
    that order, too, stays as it is. Raises CatalogueError, having changed nothing.
    """
    data = read_file(path)
    with db.transaction():
        owners = {
            row["id"]: row["customer_id"] for row in db.rows("SELECT id, customer_id FROM orders")
        }
        known = {row["id"] for row in db.rows("SELECT id FROM customers")}
        catalogue = read(data, at=at, known_customers=known)
        if not others_allowed:
            _refuse_taken(catalogue, owners)
        return _write(db, catalogue, known, set(owners))


def read_file(path: Path) -> Any:
    """The JSON of a file. Raises CatalogueError with the line and column of what is wrong."""
    try:
        return shapes.parse_json(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise CatalogueError([f"{path}: {exc.strerror}"]) from exc
    except ValueError as exc:
        raise CatalogueError([f"{path}: not valid JSON: {exc}"]) from exc


def read(data: Any, *, at: datetime, known_customers: set[str]) -> Catalogue:
    """Check a catalogue's JSON and settle its relative times on `at`.

    Raises CatalogueError with one problem a customer or order, the first twenty.
    """
    problems: list[str] = []
    catalogue = Catalogue()
    try:
        top = shapes.an_object(data, "catalogue", {"customers": False, "orders": False})
        customers = shapes.a_list(top.get("customers", []), "customers")
        listed = shapes.a_list(top.get("orders", []), "orders", most=1_000_000)
    except ShapeError as exc:
        raise CatalogueError([str(exc)]) from exc
    catalogue.customers = _read_all(customers, "customers", problems, _customer)

    def read_one(value: Any, place: str) -> Order:
        return _order(value, place, catalogue.customers, known_customers, at)

    catalogue.orders = _read_all(listed, "orders", problems, read_one)
    if problems:
        raise CatalogueError(_cut(problems))
    return catalogue


def _read_all(
    values: list[Any], place: str, problems: list[str], read_one: Callable[[Any, str], Item]
) -> dict[str, Item]:
    """Read every item, by id; what is wrong with one goes to `problems` and the next is read."""
    found: dict[str, Item] = {}
    for n, value in enumerate(values):
        where = f"{place}[{n}]"
        try:
            item = read_one(value, where)
        except ShapeError as exc:
            problems.append(str(exc))
            continue
        if item.id in found:
            problems.append(f"{where}.id: {shapes.shown(item.id)} stands here twice")
        found[item.id] = item
    return found


def _cut(problems: list[str]) -> list[str]:
    more = len(problems) - MOST_PROBLEMS
    return [*problems[:MOST_PROBLEMS], f"… and {more} more"] if more > 0 else problems


def _customer(value: Any, place: str) -> Customer:
    fields = {"id": True, "name": True, "email": True, "locale": False, "address": False}
    given = shapes.an_object(value, place, fields)
    email = shapes.a_text(given["email"], f"{place}.email", most=254)
    if not EMAIL.fullmatch(email):
        raise ShapeError(f"{place}.email", f"must be an e-mail address; got {shapes.shown(email)}")
    locale = shapes.a_text(given.get("locale", "en-US"), f"{place}.locale", most=20)
    if not LOCALE.fullmatch(locale):
        raise ShapeError(f"{place}.locale", f'must be like "en-US"; got {shapes.shown(locale)}')
    address = given.get("address")
    return Customer(
        id=shapes.a_name(given["id"], f"{place}.id"),
        name=shapes.a_text(given["name"], f"{place}.name", most=120),
        email=email,
        locale=locale,
        address=None if address is None else shapes.an_address(address, f"{place}.address"),
    )


def _order(
    value: Any,
    place: str,
    customers: dict[str, Customer],
    known_customers: set[str],
    at: datetime,
) -> Order:
    given = shapes.an_object(value, place, ORDER_FIELDS)
    order_id = shapes.a_name(given["id"], f"{place}.id")
    customer_id = shapes.a_name(given["customer"], f"{place}.customer")
    if customer_id not in customers and customer_id not in known_customers:
        raise ShapeError(f"{place}.customer", f"there is no customer {shapes.shown(customer_id)}")
    order = Order(
        id=order_id,
        customer_id=customer_id,
        version=1,
        status=shapes.a_choice(given["status"], f"{place}.status", order_shapes.STATUSES),
        placed_at=order_shapes.read_time(given["placed"], f"{place}.placed", at=at),
        document={},
    )
    order.document = _document(given, place, order, at) | {
        "shipping_address": _address(given, place, customers.get(customer_id))
    }
    order.document["payments"] = _payments(given, place, order)
    if order.refunded > order.captured:
        message = f"come to {order.refunded}, more than the {order.captured} captured"
        raise ShapeError(f"{place}.refunds", message)
    return order


def _document(given: dict[str, Any], place: str, order: Order, at: datetime) -> dict[str, Any]:
    currency = shapes.a_currency(given.get("currency", "USD"), f"{place}.currency")
    lines = order_shapes.read_lines(given["lines"], f"{place}.lines", order.id)
    refunds = order_shapes.read_refunds(
        given.get("refunds", []), f"{place}.refunds", order.id, currency, at=at
    )
    _count_refunded(lines, refunds, f"{place}.refunds")
    tracking = given.get("tracking")
    if tracking is not None:
        tracking = order_shapes.read_tracking(tracking, f"{place}.tracking", at=at)
    return {
        "currency": currency,
        "shipped_at": _moment(given, "shipped", place, order, at),
        "delivered_at": _moment(given, "delivered", place, order, at),
        "lines": lines,
        "refunds": refunds,
        "notes": order_shapes.read_notes(given.get("notes", []), f"{place}.notes", at=at),
        "tracking": tracking,
    }


def _moment(given: dict[str, Any], name: str, place: str, order: Order, at: datetime) -> str | None:
    """When it was shipped or delivered; an order in that state has to say so."""
    if given.get(name) is not None:
        return order_shapes.read_time(given[name], f"{place}.{name}", at=at)
    if name == order.status:
        raise ShapeError(place, f"is {name}, so it needs {shapes.shown(name)}: a time")
    return None


def _count_refunded(lines: list[dict[str, Any]], refunds: list[dict[str, Any]], place: str) -> None:
    by_id = {line["id"]: line for line in lines}
    for refund in refunds:
        for part in refund["lines"]:
            line = by_id.get(part["line_id"])
            if line is None:
                raise ShapeError(place, f"there is no line {shapes.shown(part['line_id'])}")
            line["refunded_quantity"] += part["quantity"]
            if line["refunded_quantity"] > line["quantity"]:
                raise ShapeError(place, f"more of {shapes.shown(line['id'])} than was bought")


def _address(given: dict[str, Any], place: str, customer: Customer | None) -> dict[str, str]:
    if given.get("shipping_address") is not None:
        return shapes.an_address(given["shipping_address"], f"{place}.shipping_address")
    if customer is None or customer.address is None:
        raise ShapeError(place, 'lacks "shipping_address", and its customer has no address here')
    return customer.address


def _payments(given: dict[str, Any], place: str, order: Order) -> list[dict[str, Any]]:
    """The payments given, or one of the whole total: voided when the order was cancelled."""
    whole = {
        "amount": order.total,
        "status": "voided" if order.status == "cancelled" else "captured",
    }
    return order_shapes.read_payments(
        given.get("payments", [whole]), f"{place}.payments", order.id, order.currency
    )


def _refuse_taken(catalogue: Catalogue, owners: dict[str, str]) -> None:
    taken = [
        f"order {order.id}: exists already, and belongs to another customer"
        for order in catalogue.orders.values()
        if owners.get(order.id, order.customer_id) != order.customer_id
    ]
    if taken:
        raise CatalogueError(_cut(taken))


def _write(
    db: Database, catalogue: Catalogue, known_customers: set[str], known_orders: set[str]
) -> Loaded:
    new_customers = [c for c in catalogue.customers.values() if c.id not in known_customers]
    new_orders = [order for order in catalogue.orders.values() if order.id not in known_orders]
    for customer in new_customers:
        db.run(
            "INSERT INTO customers (id, name, email, locale) VALUES (?, ?, ?, ?)",
            customer.id,
            customer.name,
            customer.email,
            customer.locale,
        )
    for order in new_orders:
        orders.insert(db, order)
    return Loaded(
        customers_added=len(new_customers),
        customers_kept=len(catalogue.customers) - len(new_customers),
        orders_added=len(new_orders),
        orders_kept=len(catalogue.orders) - len(new_orders),
    )
