"""The one table, and the same as JSON."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from script.lib.prove.aimed import Aimed
from script.lib.prove.evidence import Evidence
from script.lib.prove.oracle import RULES, Violation

# What each rule's row is called. Every one of these must be 0.
MUST_BE_ZERO = {
    "duplicate": "duplicates: effects beyond one for an operation, or beyond what was captured",
    "unauthorised": "unauthorised: effects or sends without every yes before the first byte",
    "differing": "differing: effects that are not the sealed bytes",
    "lost": "lost: done without an effect, or accepted and not ended",
    "contradiction": "contradictions between what was told and what happened",
    "undecided": "undecided: left open although the shop could tell",
    "sends": "operations sent more than five times",
    "stale": "writes by a worker whose claim was over",
}
SHOWN_AT_MOST = 12


@dataclass
class Report:
    """What a run came to."""

    seed: int
    ablated: str
    violations: list[Violation]
    figures: dict[str, dict[str, int]]
    chain: str
    chain_holds: bool
    aimed: list[Aimed]
    problems: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    chaos: list[dict[str, Any]] = field(default_factory=list)
    slowest: list[dict[str, Any]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Every promise was kept, and every aimed situation arose so that it could be broken."""
        return not self.violations and not self.problems and all(one.arose for one in self.aimed)

    def as_json(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            **asdict(self),
            "must_be_zero": counts(self.violations),
        }


def figures(evidence: Evidence) -> dict[str, dict[str, int]]:
    """The counts that are neither good nor bad."""
    operations, attempts = (
        evidence.operations,
        [attempt for operation in evidence.operations for attempt in operation.attempts],
    )
    return {
        "tasks": _counted(_outcome(task.status, task.outcome) for task in evidence.tasks),
        "handed off": _counted(
            task.reason for task in evidence.tasks if task.status == "handed_off"
        ),
        "operations": _counted(operation.state for operation in operations),
        "two of staff": _counted(
            operation.state
            for operation in operations
            if "second_staff" in operation.required_roles
        ),
        "attempts": _counted(attempt.outcome or "open" for attempt in attempts),
        "sends": {
            "requests that reached the shop": len(evidence.calls),
            "operations sent": sum(1 for operation in operations if operation.was_sent),
            "operations sent more than once": sum(
                1 for item in operations if sum(a.outcome != "not_sent" for a in item.attempts) > 1
            ),
        },
        "effects": _counted(effect.kind for effect in evidence.effects),
    }


def counts(violations: list[Violation]) -> dict[str, int]:
    """How many of each kind, those that are 0 too."""
    found = Counter(violation.kind for violation in violations)
    return {kind: found[kind] for kind in RULES}


def table(report: Report) -> str:
    """For people."""
    lines = [""]
    for name, counted in report.figures.items():
        told = ", ".join(f"{what} {number}" for what, number in counted.items()) or "none"
        lines.append(f"  {name:<12} {sum(counted.values()) if name != 'sends' else '':>5}  {told}")
    lines.append("")
    found = counts(report.violations)
    for kind, name in MUST_BE_ZERO.items():
        lines.append(f"  {found[kind]:>5}  {name}{'' if found[kind] == 0 else '   <-- must be 0'}")
    lines += [
        "",
        f"  audit trail   {report.chain.splitlines()[0] if report.chain else 'not checked'}",
    ]
    unresolved = report.figures["operations"].get("needs_person", 0)
    lines.append(f"  unresolved    {unresolved} left to a person, with the evidence")
    lines += ["", *_aimed(report)]
    return "\n".join(lines)


def explanation(report: Report) -> str:
    """What broke, by name, or that nothing did."""
    if report.holds:
        return f"Every promise held ({_seconds(report)}; seed {report.seed})."
    lines = [f"BROKEN (seed {report.seed}):"]
    for violation in report.violations[:SHOWN_AT_MOST]:
        lines.append(f"  {violation.kind}: {violation.subject}: {violation.says}")
        lines += (f"      {name}: {value}" for name, value in violation.shows.items())
    if len(report.violations) > SHOWN_AT_MOST:
        lines.append(f"  … and {len(report.violations) - SHOWN_AT_MOST} more (see --json)")
    lines += (f"  not shown: {problem}" for problem in report.problems)
    lines += (
        f"  not shown: the situation aimed at {one.guard} did not arise: {one.story}"
        for one in report.aimed
        if not one.arose
    )
    return "\n".join(lines)


def _aimed(report: Report) -> list[str]:
    return [
        f"  {'aimed at ' + one.guard:<20} {'' if one.arose else 'did not arise: '}{one.story}"
        f" ({_tries(one)})"
        for one in report.aimed
    ]


def _tries(one: Aimed) -> str:
    return f"{one.tries} {'try' if one.tries == 1 else 'tries'}, {one.seconds:.0f} s"


def _seconds(report: Report) -> str:
    return ", ".join(f"{name} {round(value)} s" for name, value in report.seconds.items())


def _counted(words: Any) -> dict[str, int]:
    return dict(Counter(words).most_common())


def _outcome(status: str, outcome: str) -> str:
    return outcome or status.replace("_", " ")
