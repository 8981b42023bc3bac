"""Somebody who believes every word of the OpenAPI document: schemathesis, in this process.

It sends what the document allows and what it forbids, follows ids from answer to request, and
compares status, media type, headers and body of each answer with what is written.
"""

import itertools
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from django.utils import timezone
from schemathesis.engine import events, from_schema

from agents.api.idempotency import KEY_PATTERN
from config.asgi import application as product
from tests.desk.telling import signature

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HOST = {"Host": "127.0.0.1"}
ACCEPTED = {"expected-statuses": ["2xx", "401", "403", "404", "409", "422", "429"]}
PHASES = ("examples", "coverage", "fuzzing", "stateful")


@dataclass
class Report:
    """What came of a run: each fault once, and how often each status was seen."""

    faults: dict[str, str] = field(default_factory=dict)
    statuses: dict[tuple[str, int], int] = field(default_factory=dict)

    def seen(self, label: str) -> set[int]:
        """The statuses that an operation answered with."""
        return {status for found, status in self.statuses if found == label}

    def add(self, event: events.ScenarioFinished) -> None:
        recorder = event.recorder
        for interaction in recorder.interactions.values():
            if interaction.response is not None:
                key = (recorder.label, interaction.response.status_code)
                self.statuses[key] = self.statuses.get(key, 0) + 1
        for check in (check for checks in recorder.checks.values() for check in checks):
            if (found := check.failure_info) is not None:
                title = f"{recorder.label}: {found.failure.title}"
                self.faults.setdefault(title, f"{found.failure.message}\n{found.code_sample}")


def believe(
    headers: dict[str, str],
    *,
    examples: int,
    seed: int = 1,
    phases: tuple[str, ...] = PHASES,
    ended_task: int = 1,
    shop: str = "",
    secret: str = "",
    tries_other_credentials: bool = True,
    only: str = "",
) -> Report:
    """Try the whole document with these headers; the same for the same seed.

    Event streams are asked for `ended_task` alone: no other would come to an end. With a `secret`
    events of `shop` are signed, so that what is in them matters. `only` is a pattern of paths.
    """
    config = schemathesis.Config.from_dict(
        {
            "seed": seed,
            "headers": HOST | headers,
            "workers": 1,
            "continue-on-failure": True,
            "request-timeout": 60,
            # NUL is refused in every text (tests/api/test_hostile_requests.py); a schema would have
            # to say so of each text in data of any shape.
            "generation": {
                "deterministic": True,
                "max-examples": examples,
                "no-shrink": True,
                "database": "none",
                "allow-x00": False,
                "with-security-parameters": tries_other_credentials,
            },
            "phases": {name: {"enabled": name in phases} for name in PHASES},
            "operations": [
                # What the tool that it names makes of a form's arguments is the tool's business.
                {"include-path": "/v1/forms", "checks": {"positive_data_acceptance": ACCEPTED}},
                {"include-path-regex": "/events$", "parameters": {"path.task_id": ended_task}},
                {"include-path-regex": "/webhooks/", "parameters": {"path.shop": shop}},
            ],
        }
    )
    application = _InBetween(product, secret)
    schema = schemathesis.openapi.from_asgi(
        "/v1/openapi.json", application, config=config, headers=HOST
    )
    report = Report()
    for event in from_schema(schema.include(path_regex=only) if only else schema).execute():
        if isinstance(event, events.ScenarioFinished):
            report.add(event)
        elif isinstance(event, events.NonFatalError):
            report.faults[event.label] = f"{event.value!r}"
        elif isinstance(event, events.FatalError):
            raise event.exception
    return report


class _InBetween:
    """What no document can say: a key is for one request alone, and a shop signs what it sends.

    Only what the document allows is changed, so that all else is refused as it should be.
    """

    def __init__(self, application: Any, secret: str) -> None:
        self._application = application
        self._secret = secret
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {
                name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]
            }
            if re.fullmatch(KEY_PATTERN, headers.get("idempotency-key", "")):
                headers["idempotency-key"] = str(next(self._numbers))
            if self._could_be_signed(scope["path"], headers):
                body = await _all_of(receive)
                self._sign(headers, body)
                receive = _again(body, receive)
            sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
            scope = {**scope, "headers": sent}
        await self._application(scope, receive, send)

    def _could_be_signed(self, path: str, headers: dict[str, str]) -> bool:
        return (
            self._secret != ""
            and path.startswith("/v1/webhooks/")
            and "webhook-signature" in headers
            and re.fullmatch("[0-9]{1,12}", headers.get("webhook-timestamp", "")) is not None
        )

    def _sign(self, headers: dict[str, str], body: bytes) -> None:
        now = str(int(timezone.now().timestamp()))
        headers["webhook-timestamp"] = now
        headers["webhook-signature"] = signature(
            self._secret, headers.get("webhook-id", ""), now, body
        )


async def _all_of(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return parts.pop() if parts else await receive()

    return give
