"""The product's own doors, and the control doors of the two stand-ins.

A client here does what a good client does under faults: a request that got no answer, or a 5xx, is
sent again as it was, with its Idempotency-Key or decision id, until it is answered.
"""

import asyncio
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

STAFF_PASSWORD = "countersign-demo"  # noqa: S105 - of the demo, printed by script/server
TOKEN_SECONDS = 3000
CSRF_COOKIE = "countersign_csrf"
IN_FLIGHT = "in-flight"


class NoAnswerError(Exception):
    """A door gave no usable answer within the patience; the text says what it said last."""


@dataclass
class Door:
    """One address, asked again and again until it answers. `patience` is in seconds."""

    http: httpx.AsyncClient
    patience: float = 90.0

    async def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> httpx.Response:
        """The first answer that is not a failure to answer. Raises NoAnswerError."""
        ends_at, wait, last = time.monotonic() + self.patience, 0.1, ""
        while time.monotonic() < ends_at:
            try:
                answer = await self.http.request(method, path, headers=headers, **options)
            except httpx.TransportError as exc:
                last = type(exc).__name__
            else:
                if not _is_to_be_repeated(answer):
                    return answer
                last = f"{answer.status_code} {answer.text[:200]}"
                wait = max(wait, _retry_after(answer))
            await asyncio.sleep(wait)
            wait = min(wait * 2, 2.0)
        raise NoAnswerError(f"{method} {path}: {last}")


def _is_to_be_repeated(answer: httpx.Response) -> bool:
    if answer.status_code >= 500 or answer.status_code == 429:
        return True
    return answer.status_code == 409 and IN_FLIGHT in answer.text


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("retry-after", "")
    return min(float(text), 10.0) if text.isdigit() else 0.0


@dataclass
class Shop:
    """The pretend shop's control door."""

    door: Door

    async def sign(self, customer: str) -> str:
        body = {"customer": customer, "expires_in": TOKEN_SECONDS}
        answer = await self._control("POST", "sign", json=body)
        return str(answer.json()["token"])

    async def fault(
        self,
        fault: str,
        *,
        scope: Mapping[str, str] | None = None,
        times: int | None = None,
        **params: Any,
    ) -> str:
        rule = {"fault": fault, "scope": dict(scope or {}), "times": times, "params": params}
        return str((await self._control("POST", "faults", json=rule)).json()["id"])

    async def no_fault(self, rule_id: str) -> None:
        await self._control("DELETE", f"faults/{rule_id}")

    async def ledger(self, **filters: str) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = (
            await self._control("GET", "ledger", params=filters)
        ).json()
        return found

    async def edit_order(self, order_id: str, **changes: Any) -> None:
        await self._control("PATCH", f"orders/{order_id}", json=changes)

    async def _control(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = await self.door.ask(method, f"/control/{path}", **options)
        if not answer.is_success and not (method == "DELETE" and answer.status_code == 404):
            raise NoAnswerError(f"{method} /control/{path}: {answer.text[:200]}")
        return answer


@dataclass
class Model:
    """The pretend model's control door."""

    door: Door

    async def fault(self, fault: str, *, times: int | None = None, **params: int) -> str:
        rule = {"fault": fault, "times": times, "params": params, "scope": {}}
        answer = await self.door.ask("POST", "/control/faults", json=rule)
        return str(answer.raise_for_status().json()["id"])

    async def no_fault(self, rule_id: str) -> None:
        await self.door.ask("DELETE", f"/control/faults/{rule_id}")


@dataclass
class Customers:
    """The product's API as its customers use it."""

    door: Door
    shop: Shop
    _tokens: dict[str, str] = field(default_factory=dict)

    async def submit(self, customer: str, message: str) -> int:
        """Ask for something in a conversation of its own; the task's id once it is accepted.

        While too much is under way the product says 409 and makes nothing: it is asked again later.
        """
        headers = await self._as(customer) | {"Idempotency-Key": f'"{uuid.uuid4()}"'}
        body = {"message": message, "ticket": "new"}
        ends_at = time.monotonic() + self.door.patience * 2
        while time.monotonic() < ends_at:
            answer = await self.door.ask("POST", "/v1/tasks", headers=headers, json=body)
            if answer.is_success:
                return int(answer.json()["id"])
            if answer.status_code != 409:
                break
            await asyncio.sleep(1)
        raise NoAnswerError(f"POST /v1/tasks: {answer.status_code} {answer.text[:300]}")

    async def look(self, customer: str, task_id: int) -> dict[str, Any]:
        answer = await self.door.ask(
            "GET", f"/v1/tasks/{task_id}", headers=await self._as(customer)
        )
        if not answer.is_success:
            raise NoAnswerError(f"GET /v1/tasks/{task_id}: {answer.text[:200]}")
        found: dict[str, Any] = answer.json()
        return found

    async def decide(self, customer: str, task_id: int, action: dict[str, Any], says: str) -> int:
        """Answer the action; the status that the answer got."""
        answer = await self.door.ask(
            "POST",
            f"/v1/tasks/{task_id}/approvals/{action['step']}",
            headers=await self._as(customer),
            json=_decision(action, says),
        )
        return answer.status_code

    async def cancel(self, customer: str, task_id: int) -> int:
        answer = await self.door.ask(
            "POST", f"/v1/tasks/{task_id}/cancel", headers=await self._as(customer), json={}
        )
        return answer.status_code

    async def _as(self, customer: str) -> dict[str, str]:
        if customer not in self._tokens:
            self._tokens[customer] = await self.shop.sign(customer)
        return {"Authorization": f"Bearer {self._tokens[customer]}"}


@dataclass
class Staff:
    """One member of staff, signed in to the console in a session of their own."""

    door: Door
    name: str

    async def sign_in(self) -> None:
        """Raises NoAnswerError when the console does not let them in."""
        await self.door.ask("GET", "/console/login/")
        form = {"username": self.name, "password": STAFF_PASSWORD}
        answer = await self.door.ask(
            "POST", "/console/login/", headers=self._csrf(), data=form, follow_redirects=False
        )
        if answer.status_code != 302:
            raise NoAnswerError(f"sign-in of {self.name}: {answer.status_code}")

    async def decide(self, task_id: int, action: dict[str, Any], says: str) -> int:
        """Over the API, with the session of the console."""
        answer = await self.door.ask(
            "POST",
            f"/v1/tasks/{task_id}/approvals/{action['step']}",
            headers=self._csrf(),
            json=_decision(action, says) | ({} if says == "yes" else {"reason": "Not this time."}),
        )
        return answer.status_code

    async def decide_on_page(self, action: dict[str, Any], says: str) -> int:
        """With the form of the console's page."""
        answer = await self.door.ask(
            "POST",
            f"/console/approvals/{action['approval']}/decide/",
            headers=self._csrf(),
            data={
                "decision": "approve" if says == "yes" else "reject",
                "digest": action["digest"],
                "decision_id": str(uuid.uuid4()),
                "reason": "" if says == "yes" else "Not this time.",
                "password": STAFF_PASSWORD,
            },
            follow_redirects=False,
        )
        return answer.status_code

    def _csrf(self) -> dict[str, str]:
        return {"X-CSRFToken": self.door.http.cookies.get(CSRF_COOKIE) or ""}


def _decision(action: dict[str, Any], says: str) -> dict[str, str]:
    return {"decision": says, "digest": action["digest"], "decision_id": str(uuid.uuid4())}
