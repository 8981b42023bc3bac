"""The judge: evidence in, violations out. Nothing here reads a clock, a row or a socket."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import rfc8785

from script.lib.prove.evidence import (
    ENDED,
    UNDECIDED,
    Approval,
    Call,
    Effect,
    Evidence,
    Operation,
)
from script.lib.prove.told import contradictions

MAX_SENDS = 5
STAFF, SECOND, CUSTOMER = "staff", "second_staff", "customer"


@dataclass(frozen=True)
class Violation:
    """A promise that was broken: which, about what, and what shows it."""

    kind: str
    subject: str
    says: str
    shows: dict[str, Any] = field(default_factory=dict)


def judge(evidence: Evidence) -> list[Violation]:
    """Everything that must not be, in the order of the table's rows."""
    return [violation for rule in RULES.values() for violation in rule(evidence)]


# --- Effects ------------------------------------------------------------------------------------


def duplicates(evidence: Evidence) -> Iterator[Violation]:
    """More at the shop than was approved: for a key, for an order, for what was captured."""
    repeated: set[str] = set()
    for key, effects in _grouped(evidence.of_agent(), lambda effect: effect.key or ""):
        if len(effects) > 1:
            repeated.add(effects[0].order_id)
            yield _duplicate(f"operation {key}", f"{len(effects)} effects under one key", effects)
    sent = [operation for operation in evidence.operations if operation.was_sent]
    for (order_id, kind), effects in _grouped(
        evidence.of_agent(), lambda effect: (effect.order_id, effect.kind)
    ):
        approved = [item for item in sent if (item.order_id, item.kind) == (order_id, kind)]
        if len(effects) > len(approved) and order_id not in repeated:
            says = f"{len(effects)} times {kind} for {len(approved)} operation(s) that were sent"
            yield _duplicate(f"order {order_id}", says, effects)
    yield from _beyond_captured(evidence)


def _beyond_captured(evidence: Evidence) -> Iterator[Violation]:
    refunds = [effect for effect in evidence.effects if effect.kind == "refund"]
    for order_id, effects in _grouped(refunds, lambda effect: effect.order_id):
        total = sum(effect.amount or 0 for effect in effects)
        captured = evidence.captured.get(order_id)
        if captured is not None and total > captured:
            says = f"refunds of {total} for {captured} captured"
            yield _duplicate(f"order {order_id}", says, effects)
        lines: dict[str, int] = defaultdict(int)
        for effect in effects:
            for line in effect.detail.get("lines", []):
                lines[line["line_id"]] += line["quantity"]
        for line_id, quantity in lines.items():
            bought = evidence.quantities.get(line_id)
            if bought is not None and quantity > bought:
                says = f"{quantity} refunded of {bought} bought"
                yield _duplicate(f"line {line_id}", says, effects)


def _duplicate(subject: str, says: str, effects: list[Effect]) -> Violation:
    return Violation("duplicate", subject, says, {"effects": [_brief(item) for item in effects]})


def unauthorised(evidence: Evidence) -> Iterator[Violation]:
    """At the shop without an operation that had every yes before its first byte."""
    known = evidence.by_key()
    first_byte: dict[str, Call] = {}
    for call in sorted(evidence.calls, key=lambda call: call.at):
        first_byte.setdefault(call.key or "", call)
    for key, call in first_byte.items():
        if key not in known:
            says = f"{call.method} {call.path} was sent under a key that no operation has"
            yield Violation("unauthorised", f"key {key}", says, {"at": _text(call.at)})
    for effect in evidence.of_agent():
        operation = known.get(effect.key or "")
        if operation is None:
            says = f"{effect.kind} of order {effect.order_id} belongs to no operation"
            yield Violation("unauthorised", f"key {effect.key}", says, {"effect": _brief(effect)})
    for operation in evidence.operations:
        begun = [call.at for call in evidence.calls if call.key == operation.key]
        begun += [effect.at for effect in evidence.effects_of(operation)]
        if begun:
            yield from _missing_yes(operation, min(begun), _roles(evidence, operation))
            yield from _same_person_twice(evidence, operation)
            yield from _without_right(evidence, operation)


def _roles(evidence: Evidence, operation: Operation) -> set[str]:
    """Who had to say yes, worked out here once more: what the product required, and staff, or two
    of them, over the limits whatever it thought."""
    roles = {CUSTOMER, *operation.required_roles}
    if operation.kind == "refund":
        earlier = [
            effect.amount or 0
            for other in evidence.operations
            if other.customer == operation.customer and other.id < operation.id
            for effect in evidence.effects_of(other)
            if effect.kind == "refund"
        ]
        total = (operation.amount or 0) + sum(earlier)
        if total > evidence.staff_limit:
            roles.add(STAFF)
        if evidence.second_limit is not None and total > evidence.second_limit:
            roles |= {STAFF, SECOND}
    return roles


def _missing_yes(
    operation: Operation, first_byte: datetime, roles: Iterable[str]
) -> Iterator[Violation]:
    for role in sorted(roles):
        in_time = [
            approval
            for approval in operation.approvals
            if approval.role == role
            and approval.status == "approved"
            and approval.digest == operation.digest
            and approval.decided_at is not None
            and approval.decided_at <= first_byte
        ]
        if not in_time:
            says = f"no yes of the {role} for these bytes before the first one was sent"
            yield Violation(
                "unauthorised", f"operation {operation.key}", says, {"first": _text(first_byte)}
            )


def _same_person_twice(evidence: Evidence, operation: Operation) -> Iterator[Violation]:
    """Two of staff are two people, and two accounts of one address are one."""
    said_yes = [approval.decided_by for approval in _yeses_of_staff(operation)]
    people = {evidence.addresses.get(by, "").strip().casefold() or by for by in said_yes}
    if len(said_yes) != len(people):
        says = f"both yeses of staff are of {' and '.join(dict.fromkeys(said_yes))}"
        yield Violation("unauthorised", f"operation {operation.key}", says)


def _without_right(evidence: Evidence, operation: Operation) -> Iterator[Violation]:
    """A yes counts while whoever said it may say it: each send asks again when it is claimed."""
    for by in {approval.decided_by for approval in _yeses_of_staff(operation)}:
        ended = evidence.rights_ended.get(by)
        late = [
            call.at
            for call in evidence.calls
            if ended is not None and call.key == operation.key and call.at > ended + evidence.lease
        ]
        if ended is not None and late:
            says = f"sent when the right of {by} to say yes had ended"
            shows = {"ended": _text(ended), "sent": _text(min(late))}
            yield Violation("unauthorised", f"operation {operation.key}", says, shows)


def _yeses_of_staff(operation: Operation) -> list[Approval]:
    return [
        approval
        for approval in operation.approvals
        if approval.role in {STAFF, SECOND} and approval.status == "approved"
    ]


def differing(evidence: Evidence) -> Iterator[Violation]:
    """What was sealed, approved, sent and done must be the same thing."""
    for operation in evidence.operations:
        subject = f"operation {operation.key}"
        if hashlib.sha256(operation.seal).hexdigest() != operation.digest:
            yield Violation("differing", subject, "the seal's bytes do not have the seal's digest")
            continue
        content = json.loads(operation.seal)
        sent = hashlib.sha256(rfc8785.dumps(content["request"])).hexdigest()
        for attempt in operation.attempts:
            if attempt.request_digest != sent:
                says = f"attempt {attempt.n} was made with other bytes than the sealed ones"
                yield Violation("differing", subject, says)
        for effect in evidence.effects_of(operation):
            wrong = _differences(content, effect)
            if wrong:
                says = f"the effect is not what was sealed: {', '.join(wrong)}"
                yield Violation("differing", subject, says, {"effect": _brief(effect)})


def _differences(content: dict[str, Any], effect: Effect) -> list[str]:
    """The names of what the shop did otherwise than the sealed content says."""
    asked = content["request"]
    pairs: dict[str, tuple[Any, Any]] = {
        "kind": (content["kind"], effect.kind),
        "order": (content["order"], effect.order_id),
        "customer": (content["customer"], effect.customer),
    }
    if effect.kind == "refund":
        pairs["amount"] = (asked["amount"], effect.amount)
        pairs["currency"] = (asked["currency"], effect.currency)
        pairs["lines"] = (_lines(asked["lines"]), _lines(effect.detail.get("lines", [])))
    if effect.kind == "change_address":
        done = effect.detail.get("to") or {}
        pairs["address"] = (_filled(asked), _filled(done))
    return [name for name, (wanted, got) in pairs.items() if wanted != got]


def _lines(lines: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return sorted((line["line_id"], line["quantity"]) for line in lines)


def _filled(address: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in address.items() if value}


# --- What became of it --------------------------------------------------------------------------


def lost(evidence: Evidence) -> Iterator[Violation]:
    """Said to be done and is not; or accepted and never brought to an end."""
    for operation in evidence.operations:
        if operation.state == "succeeded" and not evidence.effects_of(operation):
            says = f"succeeded ({operation.reference}), and the shop's ledger has no such effect"
            yield Violation("lost", f"operation {operation.key}", says)
    known = {task.id for task in evidence.tasks}
    for task_id in sorted(evidence.accepted - known):
        yield Violation("lost", f"task {task_id}", "accepted with 201, and there is no such row")
    for task_id in sorted(known - evidence.accepted):
        says = "it exists, and nobody was answered with it"
        yield Violation("lost", f"task {task_id}", says)
    for task in evidence.tasks:
        if task.status not in ENDED:
            says = f"still {task.status} after everything had time to end"
            yield Violation("lost", f"task {task.id}", says)
        elif not task.is_whole:
            says = "its steps have a gap, or one was never finished"
            yield Violation("lost", f"task {task.id}", says)


def undecided(evidence: Evidence) -> Iterator[Violation]:
    """Left open although it could be known. A person may be asked only after the shop was."""
    for operation in evidence.operations:
        effects = [_brief(effect) for effect in evidence.effects_of(operation)]
        subject = f"operation {operation.key}"
        if operation.state in UNDECIDED:
            says = f"still {operation.state} after everything had time to end"
            yield Violation("undecided", subject, says, {"effects": effects})
        elif operation.state == "needs_person" and effects and not operation.misses:
            says = f"left to a person ({operation.reason}) although the shop shows it by its key"
            yield Violation("undecided", subject, says, {"effects": effects})


def too_many_sends(evidence: Evidence) -> Iterator[Violation]:
    for key, calls in _grouped(evidence.calls, lambda call: call.key or ""):
        if len(calls) > MAX_SENDS:
            yield Violation("sends", f"operation {key}", f"sent {len(calls)} times")


def stale_writes(evidence: Evidence) -> Iterator[Violation]:
    """A worker whose claim was over changed something all the same."""
    newest: dict[int, int] = {}
    for write in evidence.writes:
        held = newest.get(write.task_id, 0)
        if write.epoch < held:
            says = (
                f"a worker of epoch {write.epoch} wrote {write.action} "
                f"after epoch {held} had taken over"
            )
            yield Violation("stale", f"task {write.task_id}", says, {"at": _text(write.at)})
        newest[write.task_id] = max(held, write.epoch)


def broken_chain(evidence: Evidence) -> Iterator[Violation]:
    if not evidence.chain_holds:
        yield Violation("chain", "audit trail", evidence.chain)


def told_otherwise(evidence: Evidence) -> Iterator[Violation]:
    for subject, says, shows in contradictions(evidence):
        yield Violation("contradiction", subject, says, shows)


# --- Words --------------------------------------------------------------------------------------

RULES: dict[str, Callable[[Evidence], Iterator[Violation]]] = {
    "duplicate": duplicates,
    "unauthorised": unauthorised,
    "differing": differing,
    "lost": lost,
    "contradiction": told_otherwise,
    "undecided": undecided,
    "sends": too_many_sends,
    "stale": stale_writes,
    "chain": broken_chain,
}


def _grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> list[tuple[Any, list[Any]]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return list(groups.items())


def _brief(effect: Effect) -> dict[str, Any]:
    return {
        "id": effect.id,
        "kind": effect.kind,
        "order": effect.order_id,
        "amount": effect.amount,
        "key": effect.key,
        "at": _text(effect.at),
    }


def _text(at: datetime) -> str:
    return at.isoformat()
