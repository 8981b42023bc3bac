"""Faults: rules, switched on at the control door, that make the shop misbehave for some calls.

Rules live in memory: a restarted shop is a healthy shop.
"""

import math
import secrets
from dataclasses import dataclass, field
from typing import Any

from orders_stub import shapes
from orders_stub.shapes import ShapeError

SCOPES = ("customer", "order", "path", "method")
PARAMS: dict[str, tuple[str, ...]] = {
    "latency": ("ms",),
    "timeout_before": ("ms", "ignore_hangup"),
    "timeout_after": ("ms", "ignore_hangup"),
    "error_before": ("status", "retry_after"),
    "error_after": ("status", "retry_after"),
    "unreadable": (),
    "pending": (),
    "key_window": ("seconds",),
    "lookup_lag": ("seconds",),
    "revoke_customer": (),
    "change_order": ("set",),
    "webhook_twice": (),
    "webhook_late": ("seconds",),
    "webhook_forged": (),
}
REQUIRED = {
    "latency": "ms",
    "key_window": "seconds",
    "lookup_lag": "seconds",
    "change_order": "set",
    "webhook_late": "seconds",
}
DEFAULT_HOLD_MS = 30_000
MOST_MS = 600_000
MOST_SECONDS = 366 * 24 * 60 * 60


@dataclass(frozen=True)
class Target:
    """What a rule's scope is compared with, and what kind of call it is."""

    method: str
    path: str
    customer_id: str | None
    order_id: str | None
    is_write: bool
    is_lookup: bool


@dataclass
class Rule:
    """One fault for the calls in its scope, `times` of them (None: until it is taken away)."""

    id: str
    fault: str
    scope: dict[str, str]
    times: int | None
    params: dict[str, Any]
    hits: int = 0

    @property
    def spent(self) -> bool:
        """Whether it has struck as often as it should."""
        return self.times is not None and self.hits >= self.times

    def covers(self, target: Target) -> bool:
        """Whether this call is in the rule's scope and is one that the fault could touch."""
        return self._in_scope(target) and self._touches(target)

    def _in_scope(self, target: Target) -> bool:
        scope = self.scope
        return (
            scope.get("customer") in {None, target.customer_id}
            and scope.get("order") in {None, target.order_id}
            and scope.get("method") in {None, target.method}
            and scope.get("path", "") in target.path
        )

    def _touches(self, target: Target) -> bool:
        # Events and calls are struck apart: `times` of one is not used up by the other.
        if self.fault.startswith("webhook_") != (target.method == "WEBHOOK"):
            return False
        needs = {
            "key_window": target.is_write,
            "pending": target.is_write and target.path.endswith("/refunds"),
            "lookup_lag": target.is_lookup,
            "revoke_customer": target.customer_id is not None,
            "change_order": target.order_id is not None,
        }
        return needs.get(self.fault, True)

    def public(self) -> dict[str, Any]:
        """The rule as the control door shows it."""
        return {
            "id": self.id,
            "fault": self.fault,
            "scope": self.scope,
            "times": self.times,
            "params": self.params,
            "hits": self.hits,
        }


@dataclass
class Plan:
    """The rules that strike one call, by fault; of two for the same fault the older one counts."""

    rules: dict[str, Rule] = field(default_factory=dict)

    def has(self, fault: str) -> bool:
        """Whether this fault strikes."""
        return fault in self.rules

    def value(self, fault: str, name: str, default: Any) -> Any:
        """One parameter of a fault that strikes, or the default."""
        rule = self.rules.get(fault)
        return default if rule is None else rule.params.get(name, default)

    def names(self) -> str | None:
        """The faults' names for the ledger."""
        return ", ".join(self.rules) or None


class Faults:
    """The rules in force."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}

    def add(self, body: Any) -> Rule:
        """Switch a fault on; a rule with a known id takes that one's place. Raises ShapeError."""
        rule = read_rule(body)
        self._rules[rule.id] = rule
        return rule

    def list(self) -> list[dict[str, Any]]:
        """All rules, the spent ones too, oldest first."""
        return [rule.public() for rule in self._rules.values()]

    def remove(self, rule_id: str) -> bool:
        """Switch one fault off; says whether there was one."""
        return self._rules.pop(rule_id, None) is not None

    def clear(self) -> None:
        """Switch all faults off."""
        self._rules.clear()

    def strike(self, target: Target) -> Plan:
        """Decide what befalls a call, and count it against each rule that strikes."""
        plan = Plan()
        for rule in self._rules.values():
            if rule.spent or plan.has(rule.fault) or not rule.covers(target):
                continue
            rule.hits += 1
            plan.rules[rule.fault] = rule
        return plan


def read_rule(body: Any) -> Rule:
    """A rule from the control door's JSON. Raises ShapeError."""
    fields = {"id": False, "fault": True, "scope": False, "times": False, "params": False}
    given = shapes.an_object(body, "rule", fields)
    fault = shapes.a_choice(given["fault"], "rule.fault", tuple(PARAMS))
    scope = shapes.an_object(given.get("scope", {}), "rule.scope", dict.fromkeys(SCOPES, False))
    for name, value in scope.items():
        shapes.a_text(value, f"rule.scope.{name}", most=200)
    strikes = given.get("times")
    if strikes is not None:
        shapes.a_number(strikes, "rule.times", least=1, most=1_000_000)
    rule_id = given.get("id", f"fault-{secrets.token_hex(4)}")
    return Rule(
        id=shapes.a_name(rule_id, "rule.id"),
        fault=fault,
        scope=scope | ({"method": scope["method"].upper()} if "method" in scope else {}),
        times=strikes,
        params=_params(fault, given.get("params", {})),
    )


def _params(fault: str, value: Any) -> dict[str, Any]:
    names = PARAMS[fault]
    required = REQUIRED.get(fault)
    params = shapes.an_object(value, "rule.params", {name: name == required for name in names})
    for name, given in params.items():
        _check_param(name, given, f"rule.params.{name}")
    return params


def _check_param(name: str, value: Any, place: str) -> None:
    if name == "ms":
        shapes.a_number(value, place, least=0, most=MOST_MS)
    elif name == "status":
        shapes.a_number(value, place, least=400, most=599)
    elif name == "set":
        if not isinstance(value, dict) or not value:
            raise ShapeError(place, "must be an object with the fields to change")
    elif name == "ignore_hangup":
        if not isinstance(value, bool):
            raise ShapeError(place, "must be true or false")
    elif not _is_seconds(value):
        raise ShapeError(place, f"must be a number of seconds; got {shapes.shown(value)}")


def _is_seconds(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value <= MOST_SECONDS
