"""What customers were told, held against the shop's ledger as it was at that moment."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from script.lib.prove.evidence import NEVER_SENT, Effect, Evidence, Operation, Said
from script.lib.prove.words import Claim, claims

# Two programs of one machine read its clock; this much is rounding.
TOLERANCE = timedelta(milliseconds=50)
Contradiction = tuple[str, str, dict[str, Any]]


def contradictions(evidence: Evidence) -> Iterator[Contradiction]:
    """Each as (subject, what is wrong, what shows it)."""
    yield from _ended_otherwise(evidence)
    yield from _shown_otherwise(evidence)
    for said in evidence.said:
        yield from _said_otherwise(evidence, said)


def _ended_otherwise(evidence: Evidence) -> Iterator[Contradiction]:
    """A final state is what every later card and receipt shows."""
    for operation in evidence.operations:
        effects = evidence.effects_of(operation)
        if operation.state in NEVER_SENT and effects:
            says = f"its customer is told {operation.state}, and the shop has done it"
            yield f"operation {operation.key}", says, {"effect": effects[0].id}
        if operation.state == "succeeded" and effects and _is_foreign(operation, effects):
            says = f"the receipt's reference {operation.reference} is not that of the effect"
            yield f"operation {operation.key}", says, {"effect": effects[0].id}


def _is_foreign(operation: Operation, effects: list[Effect]) -> bool:
    return operation.reference not in {effect.id for effect in effects}


def _shown_otherwise(evidence: Evidence) -> Iterator[Contradiction]:
    by_key: dict[str, list[Effect]] = {}
    for effect in evidence.of_agent():
        by_key.setdefault(effect.key or "", []).append(effect)
    for shown in evidence.shown:
        effects = by_key.get(shown.key, [])
        when = {"at": shown.at.isoformat()}
        if shown.state == "succeeded" and not _before(effects, shown.at):
            yield f"operation {shown.key}", "shown as done before it was", when
        if shown.state in NEVER_SENT and effects:
            says = f"shown as {shown.state}, and the shop has done it"
            yield f"operation {shown.key}", says, when


def _said_otherwise(evidence: Evidence, said: Said) -> Iterator[Contradiction]:
    told = claims(said.text)
    done = {(claim.kind, claim.order_id) for claim in told if claim.is_done}
    for claim in told:
        if claim.is_done:
            wrong = _not_done(evidence, said, claim)
        elif (claim.kind, claim.order_id) in done:
            wrong = ""
        else:
            wrong = _done_after_all(evidence, said, claim)
        if wrong:
            shows = {"text": said.text, "at": said.at.isoformat(), "sentence": claim.sentence}
            yield f"ticket {said.ticket_id}, task {said.task_id}", wrong, shows


def _not_done(evidence: Evidence, said: Said, claim: Claim) -> str:
    """Why a claim that something was done is not true, or an empty text."""
    effects = [
        effect
        for effect in _before(evidence.effects, said.at)
        if effect.kind == claim.kind and claim.order_id in {"", effect.order_id}
    ]
    if not effects:
        return f"told that a {claim.kind} was made, and the shop's ledger had none"
    if claim.reference and claim.reference not in {effect.id for effect in effects}:
        return f"told the reference {claim.reference}, which the ledger does not have"
    sums = {effect.amount for effect in effects} | {sum(effect.amount or 0 for effect in effects)}
    if claim.kind == "refund" and claim.amount is not None and claim.amount not in sums:
        return f"told of {claim.amount}, and the ledger has {sorted(sums, key=str)}"
    return ""


def _done_after_all(evidence: Evidence, said: Said, claim: Claim) -> str:
    """Why a claim that something was not done is not true, or an empty text.

    It speaks of the task's own changes: another chat's may have been made.
    """
    for operation in evidence.operations:
        is_meant = operation.kind == claim.kind and claim.order_id in {"", operation.order_id}
        if is_meant and operation.task_id == said.task_id and evidence.effects_of(operation):
            return f"told that no {claim.kind} was made, and the shop did it under {operation.key}"
    return ""


def _before(effects: list[Effect], at: datetime) -> list[Effect]:
    return [effect for effect in effects if effect.at <= at + TOLERANCE]
