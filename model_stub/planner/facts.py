"""What this task has found out and done so far, as its tool results say."""

import json
from dataclasses import dataclass
from typing import Any

from model_stub.planner import intents
from model_stub.planner.request import Request
from model_stub.planner.transcript import Called

TOOLS = {
    intents.REFUND: "refund_order",
    intents.CANCEL: "cancel_order",
    intents.ADDRESS: "change_address",
    intents.CLOSE: "close_ticket",
    intents.HAND_OFF: "hand_off",
}
EFFECT_TOOLS = ("refund_order", "cancel_order", "change_address", "close_ticket")
_NO_ORDER = (intents.CLOSE, intents.HAND_OFF)
FIND, TRACK, SEARCH = "find_orders", "track_parcel", "search_policy"


@dataclass(frozen=True)
class Facts:
    """The tool calls of the present turn, oldest first."""

    calls: list[Called]

    def effects(self, request: Request) -> list[Called]:
        """Return the calls made to carry out a request in its present form."""
        tools = {TOOLS.get(request.kind)}
        if request.with_refund:
            tools = {"refund_order", "cancel_order"}
        return [
            call
            for call in self.calls
            if call.name in tools
            and call.at > request.since
            and (request.kind in _NO_ORDER or same_id(call.order_id, request.order_id))
        ]

    def last_effect_on(self, order_id: str) -> int:
        """Return where an order was last acted on; what was looked up before is out of date."""
        return max(
            (
                call.at
                for call in self.calls
                if call.name in EFFECT_TOOLS and same_id(call.order_id, order_id)
            ),
            default=-1,
        )

    def lookup(self, order_id: str) -> Called | None:
        """Return the newest look-up that answers for an order and is still true, if any."""
        after = self.last_effect_on(order_id)
        for call in reversed(self.calls):
            if call.name != FIND or call.at <= after:
                continue
            if same_id(call.order_id, order_id) or order_in(call, order_id) is not None:
                return call
        return None

    def listing(self, status: str | None) -> Called | None:
        """Return the newest look-up of many orders with this status filter (None: without)."""
        for call in reversed(self.calls):
            if (
                call.name == FIND
                and not call.order_id
                and (call.args.get("status") or None) == status
            ):
                return call
        return None

    def newest(self, name: str, **args: str) -> Called | None:
        """Return the newest call of a tool with these arguments."""
        for call in reversed(self.calls):
            if call.name == name and all(str(call.args.get(k)) == v for k, v in args.items()):
                return call
        return None

    def declined(self, name: str, args: dict[str, Any]) -> Called | None:
        """Return an earlier call of the same action that people turned down or let expire."""
        for call in reversed(self.calls):
            turned_down = call.state in ("rejected", "expired") or call.error == "already_rejected"
            if turned_down and call.name == name and _key(call.args) == _key(args):
                return call
        return None


def order_in(call: Called, order_id: str) -> dict[str, Any] | None:
    """Return an order out of a look-up's result."""
    for order in orders_of(call):
        if same_id(str(order.get("order_id")), order_id):
            return order
    return None


def orders_of(call: Called) -> list[dict[str, Any]]:
    """Return the orders of a look-up's result; none for a result of another shape."""
    orders = call.result.get("orders")
    return (
        [order for order in orders if isinstance(order, dict)] if isinstance(orders, list) else []
    )


def same_id(left: str | None, right: str | None) -> bool:
    """Tell whether two order numbers are the same, whatever the case and a leading '#'."""
    return (
        left is not None
        and right is not None
        and left.lstrip("#").upper() == right.lstrip("#").upper()
    )


def _key(args: dict[str, Any]) -> str:
    return json.dumps({k: v for k, v in args.items() if v is not None}, sort_keys=True)
