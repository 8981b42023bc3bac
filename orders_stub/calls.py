"""The way of every call of the agent's: read, written in the ledger, struck by faults, answered.

    identify → ledger → key held → latency → hold before → edit → error before
             → the work, in one transaction → hold after → error after → answer → ledger

The work is synchronous and never awaits; all waiting is asynchronous and holds no transaction,
so a call that a fault holds up delays no other call.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from orders_stub import ledger, orders, shapes, times
from orders_stub.errors import OAuthError, RefusalError, invalid_request
from orders_stub.faults import DEFAULT_HOLD_MS, Plan, Target
from orders_stub.shop import Shop

MOST_BODY = 64 * 1024
MOST_KEY = 255
JUNK = '<!doctype html><title>502</title><p>upstream said: {"ok": tru'


@dataclass
class Call:
    """One call as the shop understands it; `client_id` and `customer_id` are proven or None."""

    shop: Shop
    request: Request
    body: bytes
    client_id: str | None = None
    customer_id: str | None = None
    key: str | None = None
    plan: Plan = field(default_factory=Plan)

    @property
    def order_id(self) -> str | None:
        """The order named in the path."""
        order_id: str | None = self.request.path_params.get("order_id")
        return order_id

    @property
    def fingerprint(self) -> str:
        """What has to be the same for a call to be the same call again."""
        parts = (self.request.method, self.request.url.path, self.customer_id or "")
        head = "\n".join(parts).encode()
        return hashlib.sha256(head + b"\n" + self.body).hexdigest()

    def json(self) -> Any:
        """The body as strict JSON. Raises RefusalError."""
        try:
            return shapes.parse_json(self.body)
        except ValueError as exc:
            raise invalid_request(f"The body is not valid JSON: {exc}") from exc


Identify = Callable[[Call], None]
Work = Callable[[Call], Response]


def endpoint(
    work: Work, *, identify: Identify, is_write: bool = False, is_lookup: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """Make a Starlette endpoint of `work`, which may raise RefusalError or OAuthError."""

    async def answer(request: Request) -> Response:
        body = await read_body(request)
        call = Call(shop=request.app.state.shop, request=request, body=body or b"")
        call.key = _read_key(request)
        identify(call)
        work_or_refuse = _too_large if body is None else work
        try:
            return await _booked(call, work_or_refuse, is_write=is_write, is_lookup=is_lookup)
        except asyncio.CancelledError:
            # Only a server that is told to stop does this, to calls that a fault still holds.
            return refused(RefusalError(503, "unavailable", "The shop is closing."))

    return answer


def refused(refusal: RefusalError) -> Response:
    """A refusal as an HTTP answer."""
    return JSONResponse(refusal.body(), refusal.status, headers=dict(refusal.headers))


async def read_body(request: Request) -> bytes | None:
    """The whole body, or None when it is larger than any request of ours has to be."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            return None
    return body


def _too_large(_: Call) -> Response:
    message = f"A body may have at most {MOST_BODY} bytes."
    raise RefusalError(413, "too_large", message, uses_key=False)


def _read_key(request: Request) -> str | None:
    """The idempotency key; the quotes of a structured-field string are not part of it."""
    key = request.path_params.get("key") or request.headers.get("idempotency-key", "")
    if len(key) >= 2 and key.startswith('"') and key.endswith('"'):
        key = key[1:-1]
    return key or None


async def _booked(call: Call, work: Work, *, is_write: bool, is_lookup: bool) -> Response:
    """Write the call down before it is worked on, and its answer when there is one."""
    shop, request = call.shop, call.request
    n = ledger.open_call(
        shop.db,
        method=request.method,
        path=request.url.path,
        customer_id=call.customer_id,
        order_id=call.order_id,
        key=call.key,
        at=times.now(),
    )
    target = Target(
        method=request.method,
        path=request.url.path,
        customer_id=call.customer_id,
        order_id=call.order_id,
        is_write=is_write,
        is_lookup=is_lookup,
    )
    status: int | None = None
    error: str | None = None
    try:
        response = await _guarded(call, target, work)
        status, error = response.status_code, _error_code(response)
    except ClientDisconnect:
        return Response(status_code=499)
    except Exception:
        status, error = 500, "server_error"
        raise
    finally:
        ledger.close_call(shop.db, n, status=status, error=error, fault=call.plan.names())
    return response


async def _guarded(call: Call, target: Target, work: Work) -> Response:
    """Hold the call's key from its arrival to its answer, faults included."""
    try:
        with _held_key(call, target):
            call.plan = call.shop.faults.strike(target)
            return await _struck(call, work)
    except RefusalError as refusal:
        return refused(refusal)
    except OAuthError as refusal:
        return refusal.response()


def _held_key(call: Call, target: Target) -> AbstractContextManager[None]:
    if not target.is_write or call.key is None or call.client_id is None:
        return nullcontext()
    return call.shop.in_flight.hold(call.client_id, call.key, call.fingerprint)


async def _struck(call: Call, work: Work) -> Response:
    """Do the work between the faults that come before it and those that come after it."""
    plan = call.plan
    await asyncio.sleep(plan.value("latency", "ms", 0) / 1000)
    if plan.has("timeout_before"):
        await _hold(call, "timeout_before")
    if plan.has("change_order"):
        _change_order(call)
    if plan.has("error_before"):
        return _error(plan, "error_before")
    response = _worked(call, work)
    if plan.has("timeout_after"):
        await _hold(call, "timeout_after")
    if plan.has("error_after"):
        return _error(plan, "error_after")
    if plan.has("unreadable"):
        return Response(JUNK, response.status_code, media_type="text/html")
    return response


def _worked(call: Call, work: Work) -> Response:
    """Refusals are answers too, so that what comes after the work comes after them as well."""
    try:
        return work(call)
    except RefusalError as refusal:
        return refused(refusal)
    except OAuthError as refusal:
        return refusal.response()


async def _hold(call: Call, fault: str) -> None:
    """Keep the caller waiting, but (unless the rule says so) not one who has hung up.

    Raises ClientDisconnect when the caller hung up: before the work, then it is never done.
    """
    seconds = call.plan.value(fault, "ms", DEFAULT_HOLD_MS) / 1000
    if call.plan.value(fault, "ignore_hangup", default=False):
        await asyncio.sleep(seconds)
        return
    try:
        async with asyncio.timeout(seconds):
            while (await call.request.receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return
    raise ClientDisconnect


def _change_order(call: Call) -> None:
    """The shop's staff edit the order just before this call is handled."""
    db = call.shop.db
    if call.order_id is None or not db.rows("SELECT 1 FROM orders WHERE id = ?", call.order_id):
        return
    changes = call.plan.value("change_order", "set", {})
    try:
        with db.transaction():
            orders.edit(db, call.order_id, changes, at=times.now())
    except shapes.ShapeError as exc:
        raise RefusalError(500, "bad_fault", f"change_order: {exc}", uses_key=False) from exc


def _error(plan: Plan, fault: str) -> Response:
    status = plan.value(fault, "status", 500)
    codes = {429: "too_many_requests", 503: "unavailable"}
    headers = {}
    retry_after = plan.value(fault, "retry_after", None)
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    body = {"error": codes.get(status, "server_error"), "message": "Something went wrong here."}
    return JSONResponse(body, status, headers=headers)


def _error_code(response: Response) -> str | None:
    if response.status_code < 400:
        return None
    try:
        return str(json.loads(bytes(response.body))["error"])
    except (ValueError, KeyError, TypeError):
        return None
