"""Put the results of calls that code made into words, when no tool may be called."""

from model_stub.planner.facts import EFFECT_TOOLS, FIND, SEARCH, TRACK, Facts, orders_of
from model_stub.planner.outcomes import handed_off, not_found, refused, told
from model_stub.planner.reports import list_report, order_report, parcel_report, policy_report
from model_stub.planner.transcript import Called


def narrate(facts: Facts, question: str) -> list[str]:
    """Return a short text for each result, the newest of each tool and order.

    An order whose parcel was found is told by its parcel alone.
    """
    newest = {(call.name, call.order_id): call for call in facts.calls}
    tracked = {call.order_id for call in newest.values() if call.name == TRACK and not call.error}
    told = [c for c in newest.values() if c.name != FIND or c.order_id not in tracked]
    return [_words(call, question) for call in told]


def _words(call: Called, question: str) -> str:
    if call.name in EFFECT_TOOLS:
        return told(call)
    if call.name == "hand_off":
        return handed_off(call)
    if call.error is not None:
        return refused(call)
    if call.name == TRACK:
        return parcel_report(call)
    if call.name == SEARCH:
        return policy_report(call, question)
    return _orders(call) if call.name == FIND else "That is done."


def _orders(call: Called) -> str:
    orders = orders_of(call)
    if call.order_id is None:
        return list_report(call)
    return " ".join(map(order_report, orders)) if orders else not_found(call.order_id)
