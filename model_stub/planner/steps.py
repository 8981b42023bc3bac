"""What to do next for one request: a tool call, an answer, or a question back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from model_stub.planner import addresses, intents, items, outcomes, phrase, reports, slots
from model_stub.planner.facts import FIND, SEARCH, TOOLS, TRACK, Facts, order_in, orders_of
from model_stub.planner.formats import address, decimal, is_refunded, money, order_lines
from model_stub.planner.outcomes import refused, told
from model_stub.planner.request import Request
from model_stub.planner.words import plain

_UNSHIPPED = ("pending", "processed")
_MANY_SUPERSEDED = 2


@dataclass(frozen=True)
class Call:
    """Call a tool."""

    name: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Say:
    """The request is finished, and this is to be told."""

    text: str


@dataclass(frozen=True)
class Ask:
    """The request lacks something, and this asks for it."""

    text: str


Step = Call | Say | Ask
Order = Mapping[str, Any]


@dataclass(frozen=True)
class Desk:
    """What a request is worked on with: the facts of this task and the tools offered."""

    facts: Facts
    offered: frozenset[str]

    def call(self, tool: str, args: dict[str, Any]) -> Step:
        """Call a tool if it is offered, else say that it is not."""
        return Call(tool, args) if tool in self.offered else Say(outcomes.tool_off(tool))


def next_step(request: Request, desk: Desk) -> Step:
    """Return the next step for a request. Never the same effect twice."""
    return _HANDLERS[request.kind](request, desk)


def done_for_withdrawn(request: Request, desk: Desk) -> Say | None:
    """Return what to tell about a request that was taken back: what was done is still told."""
    effects = desk.facts.effects(request)
    if effects:
        return Say(told(effects[-1]))
    return None if request.replaced else Say(phrase.taken_back(request.kind, request.order_id))


def _with_order(request: Request, desk: Desk, then: Callable[[Order], Step]) -> Step:
    """Find out which order is meant, look it up, and go on with what the shop says of it."""
    unclear = _settle_order(request, desk)
    if unclear is not None:
        return unclear
    order_id = str(request.order_id)
    lookup = desk.facts.lookup(order_id)
    if lookup is None:
        return Call(FIND, {"order_id": order_id}) if FIND in desk.offered else then({})
    if lookup.error is not None and lookup.error != "not_found":
        return Say(refused(lookup))
    order = order_in(lookup, order_id)
    return Say(outcomes.not_found(order_id)) if order is None else then(order)


def _with_effect(request: Request, desk: Desk, then: Callable[[Order], Step]) -> Step:
    """Tell how the action went once it was tried; before that, look the order up and propose it."""
    unclear = _settle_order(request, desk)
    if unclear is not None:
        return unclear
    return _finished(request, desk) or _with_order(request, desk, then)


def _settle_order(request: Request, desk: Desk) -> Step | None:
    """Give the request its order; return the step to take while it is not known."""
    if request.order_id is None:
        found = _choose_order(request, desk)
        if not isinstance(found, dict):
            return found
        request.order_id = str(found.get("order_id"))
    return None


def _choose_order(request: Request, desk: Desk) -> dict[str, Any] | Step:
    """Find the one order the words fit, or ask. The order is returned when it is the only one."""
    listing = desk.facts.listing(None)
    if listing is None:
        if FIND in desk.offered and items.wants_lookup(request.text):
            return Call(FIND, {})
        return Ask(phrase.which_order(request.kind, []))
    if listing.error is not None:
        return Say(refused(listing))
    orders = orders_of(listing)
    scores = [
        max((items.mentions(request.text, i) for i in order_lines(o)), default=0) for o in orders
    ]
    best = max(scores, default=0)
    fitting = [o for o, score in zip(orders, scores, strict=True) if score == best]
    if best == 0:
        fitting = _eligible(request.kind, fitting)
    else:
        fitting = _eligible(request.kind, fitting) or fitting
    if items.asks_for_last(request.text) and fitting:
        return max(fitting, key=lambda order: str(order.get("placed_on")))
    if len(fitting) == 1:
        return fitting[0]
    if not orders:
        return Say("I can't find any orders in your account.")
    return Ask(phrase.which_order(request.kind, [*fitting]))


def _eligible(kind: str, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the orders for which such a request makes sense."""
    if kind in (intents.CANCEL, intents.ADDRESS):
        return [order for order in orders if order.get("status") in _UNSHIPPED]
    if kind in (intents.REFUND, intents.COMPLAINT):
        states = ("shipped", "delivered")
        return [o for o in orders if o.get("status") in states and not is_refunded(o)]
    if kind == intents.TRACK:
        for wanted in (("shipped",), _UNSHIPPED):
            found = [order for order in orders if order.get("status") in wanted]
            if found:
                return found
    return orders


def _effect(desk: Desk, tool: str, args: dict[str, Any]) -> Step:
    """Propose an action, once; what people turned down is not raised again."""
    declined = desk.facts.declined(tool, args)
    if declined is not None:
        return Say(told(declined))
    return desk.call(tool, args)


def _finished(request: Request, desk: Desk) -> Step | None:
    """Return the answer when the action has been tried; None while it is to be proposed.

    An order that changed in the meantime is looked at again and the action proposed once more.
    """
    effects = desk.facts.effects(request)
    if not effects:
        return None
    last = effects[-1]
    superseded = sum(call.state == "superseded" for call in effects)
    if last.state == "superseded" and superseded < _MANY_SUPERSEDED:
        return None
    if last.error is not None:
        return Say(refused(last, order=_known_order(request, desk)))
    lead = ""
    if last.name == "refund_order" and last.state == "succeeded":
        lead = phrase.sympathy(request.refund_reason)
    return Say(lead + told(last))


def _known_order(request: Request, desk: Desk) -> Order | None:
    for call in reversed(desk.facts.calls):
        order = order_in(call, request.order_id or "") if call.name == FIND else None
        if order is not None:
            return order
    return None


def _refund(request: Request, desk: Desk) -> Step:
    return _with_effect(request, desk, lambda order: _propose_refund(request, desk, order))


def _propose_refund(request: Request, desk: Desk, order: Order) -> Step:
    order_id = str(request.order_id)
    if is_refunded(order):
        refunded = money(order.get("refunded"), order.get("currency"))
        return Say(outcomes.already_refunded(order_id, refunded))
    args: dict[str, Any] = {"order_id": order_id}
    choice = _what_to_refund(request, order_lines(order))
    if isinstance(choice, slots.Amount):
        return _refund_amount(request, desk, order, choice)
    if choice.unsure:
        return Ask(phrase.which_item(order_id, choice))
    if choice.lines:
        args["items"] = [
            {"item_id": str(line["item_id"]), "quantity": count} for line, count in choice.lines
        ]
    args["reason"] = request.refund_reason
    return _effect(desk, "refund_order", args)


def _what_to_refund(request: Request, lines: list[dict[str, Any]]) -> items.Choice | slots.Amount:
    """Return what the newest words say: a sum, lines, or the whole order.

    A bare number ("just one") counts what the words before it name.
    """
    count: int | None = None
    for text in reversed(request.texts):
        bare = items.bare_count(text)
        if bare is not None:
            count = bare if count is None else count
            continue
        amount = slots.amount(text)
        if amount is not None:
            return amount
        choice = items.choose(text, lines)
        if choice is not None:
            return items.counted(choice, lines, count)
    return items.counted(items.Choice(), lines, count)


def _refund_amount(request: Request, desk: Desk, order: Order, asked: slots.Amount) -> Step:
    """Refund a sum; one that is all that is left of the order is a plain refund of the whole."""
    order_id, currency = str(request.order_id), plain(order.get("currency"), 3)
    if asked.currency is not None and currency and asked.currency != currency:
        return Ask(phrase.which_amount(order_id, currency))
    total = decimal(order.get("total")) or Decimal(0)
    value = asked.of(total)
    if value <= 0:
        return Ask(f"How much should I refund for order {order_id}?")
    args: dict[str, Any] = {"order_id": order_id}
    if value != total - (decimal(order.get("refunded") or "0") or Decimal(0)):
        places = -int(total.as_tuple().exponent) if total else 2
        args["amount"] = f"{value:.{max(places, 0)}f}"
    args["reason"] = request.refund_reason
    return _effect(desk, "refund_order", args)


def _cancel(request: Request, desk: Desk) -> Step:
    return _with_effect(request, desk, lambda order: _propose_cancel(request, desk, order))


def _propose_cancel(request: Request, desk: Desk, order: Order) -> Step:
    if order.get("status") == "cancelled":
        return Say(
            f"There is nothing left to cancel: order {request.order_id} shows as cancelled already."
        )
    if request.with_refund and order.get("status") in ("shipped", "delivered"):
        return _propose_refund(request, desk, order)
    args = {"order_id": request.order_id, "reason": request.cancel_reason}
    return _effect(desk, "cancel_order", args)


def _change_address(request: Request, desk: Desk) -> Step:
    return _with_effect(request, desk, lambda order: _propose_address(request, desk, order))


def _propose_address(request: Request, desk: Desk, order: Order) -> Step:
    """Name and country stay as they are unless the customer gives others."""
    order_id = str(request.order_id)
    current = order.get("ship_to")
    current = current if isinstance(current, dict) else {}
    if not request.address and order.get("status") in ("shipped", "delivered", "cancelled"):
        return Say(
            f"The address of order {order_id} cannot be changed any more. {reports.state_of(order)}"
        )
    wanted = {key: str(current[key]) for key in ("name", "country") if current.get(key)}
    wanted |= request.address
    missing = addresses.missing_fields(wanted)
    if missing:
        return Ask(phrase.which_address(order_id, missing, address(request.address)))
    fields = ("name", "line1", "line2", "city", "region", "postal_code", "country")
    if all(str(current.get(f) or "").lower() == wanted.get(f, "").lower() for f in fields):
        return Say(f"Order {order_id} goes to that address already: {address(current)}.")
    args = {"order_id": order_id, "address": {f: wanted[f] for f in fields if wanted.get(f)}}
    return _effect(desk, "change_address", args)


def _status(request: Request, desk: Desk) -> Step:
    def report(order: Order) -> Step:
        if not order:
            return Say(outcomes.tool_off(FIND))
        asks_refund = "refund" in request.text.lower() or "money" in request.text.lower()
        return Say(reports.order_report(order, refunds=asks_refund))

    return _with_order(request, desk, report)


def _track(request: Request, desk: Desk) -> Step:
    return _with_order(request, desk, lambda order: _track_order(request, desk, order))


def _track_order(request: Request, desk: Desk, order: Order) -> Step:
    order_id = str(request.order_id)
    if order.get("status") in (*_UNSHIPPED, "cancelled"):
        return Say(reports.order_report(order))
    call = desk.facts.newest(TRACK, order_id=order_id)
    if call is None:
        if TRACK in desk.offered or not order:
            return desk.call(TRACK, {"order_id": order_id})
        return Say(reports.order_report(order))
    if call.error is not None:
        about = f"{reports.order_report(order)} " if order else ""
        return Say(
            about + refused(call)
            if call.error != "not_found" or not order
            else about + _NO_TRACKING
        )
    hint = f" {_IF_LOST}" if intents.is_late(request.text.lower()) else ""
    return Say(reports.parcel_report(call) + hint)


_IF_LOST = "If it does not turn up, I can ask for a refund: just say so."
_NO_TRACKING = "There is no tracking for it."


def _list(request: Request, desk: Desk) -> Step:
    status = _status_word(request.text)
    listing = desk.facts.listing(status)
    if listing is None:
        return desk.call(FIND, {"status": status} if status else {})
    return Say(refused(listing) if listing.error else reports.list_report(listing))


def _status_word(text: str) -> str | None:
    words = text.lower()
    for word, status in (
        ("pending", "pending"), ("processed", "processed"), ("processing", "processed"),
        ("shipped", "shipped"), ("on the way", "shipped"), ("on their way", "shipped"),
        ("delivered", "delivered"), ("cancelled", "cancelled"), ("canceled", "cancelled"),
    ):  # fmt: skip
        if word in words and f"not {word}" not in words:
            return status
    return None


def _policy(request: Request, desk: Desk) -> Step:
    question = " ".join(request.text.split())[:300]
    call = desk.facts.newest(SEARCH, question=question)
    if call is None:
        return desk.call(SEARCH, {"question": question})
    return Say(refused(call) if call.error else reports.policy_report(call, question))


def _complaint(request: Request, desk: Desk) -> Step:
    """A complaint that asks for nothing is answered with the offer of a refund."""

    def offer(order: Order) -> Step:
        order_id = str(request.order_id)
        if is_refunded(order):
            return Say(
                outcomes.already_refunded(order_id, money(order["refunded"], order.get("currency")))
            )
        return Ask(phrase.offer_refund(order, order_id))

    return _with_order(request, desk, offer)


def _unsupported(request: Request, desk: Desk) -> Step:
    return Ask(phrase.offer_person(request.text))


def _close(request: Request, desk: Desk) -> Step:
    done = _finished(request, desk)
    return done or desk.call(
        TOOLS[intents.CLOSE], {"resolution": "The customer has no further questions."}
    )


def _hand_off(request: Request, desk: Desk) -> Step:
    call = next((c for c in desk.facts.effects(request)), None)
    if call is not None:
        return Say(outcomes.handed_off(call))
    words = plain(request.text, 200)
    return desk.call(
        TOOLS[intents.HAND_OFF], {"reason": f"The customer asks for a person: {words}"}
    )


_HANDLERS: Mapping[str, Callable[[Request, Desk], Step]] = {
    intents.REFUND: _refund,
    intents.CANCEL: _cancel,
    intents.ADDRESS: _change_address,
    intents.STATUS: _status,
    intents.TRACK: _track,
    intents.LIST: _list,
    intents.POLICY: _policy,
    intents.COMPLAINT: _complaint,
    intents.UNSUPPORTED: _unsupported,
    intents.CLOSE: _close,
    intents.HAND_OFF: _hand_off,
}
