"""The true state of operations in plain words, written by code and by nothing a model said."""

from collections.abc import Sequence
from dataclasses import dataclass

from tools.language import Text, pick
from tools.text import clean

NOTHING_CHANGED: Text = ("Nothing has been changed so far.", "Bisher wurde nichts geändert.")
MAX_TOLD = 6
MAX_REASON = 200

_NOUNS: dict[str, Text] = {
    "refund": ("The refund", "Die Erstattung"),
    "cancel": ("The cancellation", "Die Stornierung"),
    "change_address": ("The address change", "Die Adressänderung"),
    "close_ticket": ("The closing of this conversation", "Die Beendigung dieser Unterhaltung"),
    "email": ("The e-mail", "Die E-Mail"),
}
_CHANGE: Text = ("The change", "Die Änderung")
_OF: Text = (" of {amount}", " von {amount}")
_FOR: Text = (" for order {order}", " für Bestellung {order}")
_OPEN: dict[str, Text] = {
    "awaiting_approval": (
        "is waiting for a yes. Nothing has been sent yet.",
        "wartet auf ein Ja. Es wurde noch nichts gesendet.",
    ),
    "approved": (
        "has its yes and goes to the shop next. It is not confirmed yet.",
        "hat ihr Ja und geht als Nächstes an den Shop. Sie ist noch nicht bestätigt.",
    ),
    "sending": (
        "is with the shop now. It is not confirmed yet.",
        "liegt jetzt beim Shop. Sie ist noch nicht bestätigt.",
    ),
    "unknown": (
        "is still being checked with the shop. It will not be sent twice.",
        "wird noch mit dem Shop geklärt. Sie wird nicht zweimal gesendet.",
    ),
    "needs_person": (
        "is still being checked, now by a colleague. It will not be sent twice.",
        "wird noch geklärt, jetzt von jemandem aus dem Team. Sie wird nicht zweimal gesendet.",
    ),
}
_ENDED: dict[str, Text] = {
    "denied": (
        "was not made: the shop's rules do not allow it.",
        "wurde nicht ausgeführt: Die Regeln des Shops erlauben es nicht.",
    ),
    "expired": (
        "was not made: nobody said yes in time.",
        "wurde nicht ausgeführt: Niemand hat rechtzeitig Ja gesagt.",
    ),
    "superseded": (
        "was not made: the order changed in the meantime.",
        "wurde nicht ausgeführt: Die Bestellung hat sich inzwischen geändert.",
    ),
    "cancelled": (
        "was not made: it was withdrawn before it was sent.",
        "wurde nicht ausgeführt: Sie wurde vor dem Senden zurückgezogen.",
    ),
    "failed": (
        "was not made: the shop refused it.",
        "wurde nicht ausgeführt: Der Shop hat sie abgelehnt.",
    ),
}
# The same states for another reason than the usual one.
_ENDED_FOR: dict[tuple[str, str], Text] = {
    ("expired", "not_sent_in_time"): (
        "was not made: it could not be sent to the shop while its yes was good.",
        "wurde nicht ausgeführt: Sie ließ sich nicht an den Shop senden, solange ihr Ja galt.",
    ),
    ("superseded", "policy_changed"): (
        "was not made: by the shop's rules it has to be decided differently by now.",
        "wurde nicht ausgeführt: Nach den Regeln des Shops ist inzwischen anders darüber zu entscheiden.",
    ),
    ("superseded", "ticket_changed"): (
        "was not made: this conversation went on in the meantime.",
        "wurde nicht ausgeführt: Diese Unterhaltung ging inzwischen weiter.",
    ),
    ("superseded", "approval_no_longer_valid"): (
        "was not made: a yes that it needs is not valid any more.",
        "wurde nicht ausgeführt: Ein Ja, das sie braucht, gilt nicht mehr.",
    ),
    ("superseded", "order_not_found"): (
        "was not made: the shop does not show this order any more.",
        "wurde nicht ausgeführt: Der Shop zeigt diese Bestellung nicht mehr.",
    ),
    ("cancelled", "access_revoked"): (
        "was not made: the shop no longer lets us act for you.",
        "wurde nicht ausgeführt: Der Shop lässt uns nicht mehr für Sie handeln.",
    ),
    ("failed", "settled_by_staff"): (
        "was not made: a colleague has checked it with the shop.",
        "wurde nicht ausgeführt: Jemand aus dem Team hat es mit dem Shop geklärt.",
    ),
}
# What failed since somebody else came first, by its kind.
_NOT_NEEDED: dict[str, Text] = {
    "cancel": (
        "was not needed: the order had been cancelled elsewhere already.",
        "war nicht nötig: Die Bestellung war schon anderswo storniert worden.",
    ),
    "refund": (
        "was not made: nothing is left to refund on the order.",
        "wurde nicht ausgeführt: Für die Bestellung ist keine Erstattung mehr offen.",
    ),
}
_CAME_BACK: Text = (
    "was made, but the money came back to the shop since. A colleague takes care of it.",
    (
        "wurde ausgeführt, aber das Geld kam inzwischen an den Shop zurück. Jemand aus dem Team kümmert "
        "sich darum."
    ),
)
_AFTER_ALL: Text = (
    "was said not to be made, but the shop says now that it was. A colleague takes care of it.",
    (
        "sollte nicht ausgeführt worden sein, doch der Shop sagt jetzt, dass sie es wurde. Jemand aus dem "
        "Team kümmert sich darum."
    ),
)
_DONE: Text = ("is done.", "ist erledigt.")
_DONE_AS: Text = ("is done (reference {reference}).", "ist erledigt (Beleg {reference}).")
_ON_ITS_WAY: Text = (
    "is on its way (reference {reference}).",
    "ist unterwegs (Beleg {reference}).",
)
_BEING_CHECKED: Text = ("is still being checked.", "wird noch geklärt.")
_TURNED_DOWN: Text = ("was not made: {who}.", "wurde nicht ausgeführt: {who}.")
_DECIDERS: dict[str, Text] = {
    "customer": ("you said no", "Sie haben Nein gesagt"),
    "staff": ("the shop's staff said no", "Das Team des Shops hat Nein gesagt"),
}
_SOMEBODY: Text = ("it was turned down", "Sie wurde abgelehnt")
_THEIR_REASON: Text = (' Their reason: "{reason}"', ' Die Begründung: "{reason}"')


@dataclass(frozen=True)
class OperationView:
    """An operation as it may be told. `amount_text` is ready for people, "$40.00", or empty.

    `came_back`: it succeeded, and the money has come back to the shop since. `is_on_its_way`: it
    succeeded, and the shop calls it pending. `is_contradicted`: it ended unmade, and the shop says
    since that it was made.
    """

    kind: str
    order_id: str
    state: str
    amount_text: str = ""
    reference: str = ""
    reason: str = ""
    decided_by: str = ""
    came_back: bool = False
    is_on_its_way: bool = False
    is_contradicted: bool = False


def true_state(operations: Sequence[OperationView], locale: str = "en") -> str:
    """What has become of these operations, oldest first, one line each, at most the newest six.

    One that did not happen is left out when a later one of the same kind and order is there.
    """
    told = [
        _line(operation, locale)
        for at, operation in enumerate(operations)
        if operation.state == "succeeded"
        or operation.is_contradicted
        or not _is_retold(operation, operations[at + 1 :])
    ]
    return "\n".join(told[-MAX_TOLD:]) or pick(NOTHING_CHANGED, locale)


def _is_retold(operation: OperationView, later: Sequence[OperationView]) -> bool:
    return operation.state not in _OPEN and any(
        (other.kind, other.order_id) == (operation.kind, operation.order_id) for other in later
    )


def _line(operation: OperationView, locale: str) -> str:
    what = pick(_NOUNS.get(operation.kind, _CHANGE), locale)
    if operation.amount_text:
        what += pick(_OF, locale).format(amount=clean(operation.amount_text, 40))
    if operation.order_id:
        what += pick(_FOR, locale).format(order=clean(operation.order_id, 64))
    return f"{what} {_became(operation, locale)}"


def _became(operation: OperationView, locale: str) -> str:
    if operation.state == "succeeded" and operation.came_back:
        return pick(_CAME_BACK, locale)
    if operation.is_contradicted:
        return pick(_AFTER_ALL, locale)
    if operation.state == "succeeded":
        reference = clean(operation.reference, 120)
        if operation.is_on_its_way:
            return pick(_ON_ITS_WAY, locale).format(reference=reference)
        return pick(_DONE_AS if reference else _DONE, locale).format(reference=reference)
    if operation.state == "rejected":
        return _rejected(operation, locale)
    if (operation.state, operation.reason) == ("failed", "already_done"):
        return pick(_NOT_NEEDED.get(operation.kind) or _ENDED["failed"], locale)
    # A state that is new here is no reason to say more than is known.
    known = _ENDED_FOR.get((operation.state, operation.reason)) or _OPEN.get(operation.state)
    return pick(known or _ENDED.get(operation.state) or _BEING_CHECKED, locale)


def _rejected(operation: OperationView, locale: str) -> str:
    who = pick(_DECIDERS.get(operation.decided_by, _SOMEBODY), locale)
    told = pick(_TURNED_DOWN, locale).format(who=who)
    reason = clean(operation.reason, MAX_REASON).strip()
    if not reason or operation.decided_by == "customer":
        return told
    return told + pick(_THEIR_REASON, locale).format(reason=reason)
