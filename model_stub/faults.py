"""Faults that tests and demonstrations switch on: slow, refusing, cut off, malformed answers."""

import itertools
import threading
from dataclasses import dataclass, field
from typing import Any

from model_stub.errors import ApiError, missing, wrong_type, wrong_value
from model_stub.wire import ChatRequest

# Each fault with the parameters it knows and their defaults.
KNOWN: dict[str, dict[str, int]] = {
    "latency": {"ms": 1000},
    "rate_limit": {"retry_after": 1},
    "error": {"status": 500},
    "hang": {"ms": 60_000},
    "down": {},
    "cut_stream": {"after_chunks": 3},
    "malformed_tool_json": {},
    "missing_usage": {},
    "empty_choices": {},
    "endless": {"chunks": 100_000},
}
# The first of these that matches answers the request; the others are kept for later requests.
TERMINAL = ("rate_limit", "error", "hang", "down")
_SCOPES = ("contains", "model")


@dataclass
class Fault:
    """One rule. `times` counts down with every use; None lasts until it is deleted."""

    id: str
    fault: str
    times: int | None
    params: dict[str, int]
    scope: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the rule as the control endpoint shows it."""
        return {
            "id": self.id,
            "fault": self.fault,
            "times": self.times,
            "params": self.params,
            "scope": self.scope,
        }

    def matches(self, request: ChatRequest) -> bool:
        """Tell whether the rule is meant for this request."""
        if self.scope.get("model") not in (None, request.model):
            return False
        wanted = self.scope.get("contains")
        return wanted is None or wanted.casefold() in request.last_user_text.casefold()


class FaultBook:
    """The rules in force, in the order they were made. Safe to use from several threads."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def add(self, body: dict[str, Any]) -> Fault:
        """Make a rule from the JSON of the control endpoint; raise ApiError (400) for a bad one."""
        name = body.get("fault")
        if name is None:
            raise missing("fault")
        if name not in KNOWN:
            raise wrong_value("fault", f"'{name}'. Known are: {', '.join(KNOWN)}.")
        unknown = sorted(set(body) - {"fault", "times", "params", "scope"})
        if unknown:
            raise wrong_value(unknown[0], "unknown field.")
        rule = Fault(
            id=f"fault-{next(self._numbers)}",
            fault=name,
            times=_times(body.get("times", 1)),
            params=_params(name, body.get("params", {})),
            scope=_scope(body.get("scope", {})),
        )
        with self._lock:
            self._rules.append(rule)
        return rule

    def listed(self) -> list[dict[str, Any]]:
        """Return the rules in force as JSON."""
        with self._lock:
            return [rule.as_json() for rule in self._rules]

    def remove(self, rule_id: str | None = None) -> int:
        """Remove one rule, or all of them; return how many there were."""
        with self._lock:
            kept = [r for r in self._rules if rule_id is not None and r.id != rule_id]
            removed = len(self._rules) - len(kept)
            self._rules = kept
        return removed

    def take(self, request: ChatRequest, *, calls_tool: bool) -> list[Fault]:
        """Return the rules that apply to this request, each used up by one.

        One rule per kind applies, and one that ends the request (TERMINAL) at most.
        `malformed_tool_json` waits for a reply that calls a tool, `cut_stream` and `endless`
        spend themselves on any reply.
        """
        taken: dict[str, Fault] = {}
        with self._lock:
            for rule in self._rules:
                slot = "terminal" if rule.fault in TERMINAL else rule.fault
                if slot in taken or not rule.matches(request):
                    continue
                if rule.fault == "malformed_tool_json" and not calls_tool:
                    continue
                taken[slot] = rule
            if "terminal" in taken:
                taken = {k: v for k, v in taken.items() if k in ("terminal", "latency")}
            for rule in taken.values():
                if rule.times is not None:
                    rule.times -= 1
            self._rules = [rule for rule in self._rules if rule.times != 0]
        return list(taken.values())


def _times(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type("times", "an integer or null", value)
    if value < 1:
        raise wrong_value("times", "at least 1 is expected.")
    return value


def _params(name: str, value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise wrong_type("params", "an object", value)
    for key, number in value.items():
        if key not in KNOWN[name]:
            raise wrong_value(f"params.{key}", f"not a parameter of '{name}'.")
        if isinstance(number, bool) or not isinstance(number, int):
            raise wrong_type(f"params.{key}", "an integer", number)
        if number < 0:
            raise wrong_value(f"params.{key}", "a negative number.")
    params = {**KNOWN[name], **value}
    if name == "error" and not 400 <= params["status"] <= 599:
        raise wrong_value("params.status", "400 to 599 is expected.")
    return params


def _scope(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise wrong_type("scope", "an object", value)
    for key, text in value.items():
        if key not in _SCOPES:
            raise wrong_value(f"scope.{key}", f"known are: {', '.join(_SCOPES)}.")
        if not isinstance(text, str):
            raise wrong_type(f"scope.{key}", "a string", text)
    return dict(value)


def as_error(rule: Fault) -> ApiError | None:
    """Return the error answer of a `rate_limit` or `error` rule, None for every other rule."""
    if rule.fault == "rate_limit":
        seconds = rule.params["retry_after"]
        return ApiError(
            429,
            f"Rate limit reached for requests. Please try again in {seconds}s.",
            kind="requests",
            code="rate_limit_exceeded",
            headers={
                "retry-after": str(seconds),
                "retry-after-ms": str(seconds * 1000),
                "x-ratelimit-remaining-requests": "0",
            },
        )
    if rule.fault != "error":
        return None
    status = rule.params["status"]
    if status >= 500:
        message = "The server had an error while processing your request. Sorry about that!"
        return ApiError(status, message, kind="server_error")
    return ApiError(status, "The request was refused on purpose by a fault rule.")
