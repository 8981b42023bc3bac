"""The orders API: what one customer's access token opens, and nothing of anybody else's."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_stub import effects, oauth, orders, times
from orders_stub.calls import MOST_KEY, Call, endpoint, refused
from orders_stub.effects import Origin
from orders_stub.errors import RefusalError, invalid_request
from orders_stub.identity import get_customer, is_blocked
from orders_stub.order_shapes import STATUSES
from orders_stub.orders import Order
from orders_stub.shop import key_reused

MOST_ORDERS = 100
KEY = re.compile(r"[\x21-\x7e]{1,255}")

Perform = Callable[[Order, Origin], dict[str, Any]]


def identify(call: Call) -> None:
    """Say whose access token this is."""
    found = oauth.bearer(call.shop, call.request.headers.get("authorization", ""), at=times.now())
    if found is not None:
        call.client_id, call.customer_id = found


def customer(call: Call) -> Response:
    """`GET /api/customer`."""
    return JSONResponse(get_customer(call.shop.db, _customer(call)))


def order_list(call: Call) -> Response:
    """`GET /api/orders`: the customer's own, newest first."""
    customer_id = _customer(call)
    query = call.request.query_params
    status = query.get("status") or None
    if status is not None and status not in STATUSES:
        raise invalid_request(f"status must be one of {', '.join(STATUSES)}.")
    try:
        found, next_cursor = orders.list_orders(
            call.shop.db,
            customer_id,
            status=status,
            limit=_limit(query.get("limit", "50")),
            cursor=query.get("cursor") or None,
        )
    except ValueError as exc:
        raise invalid_request("The cursor is not one that this shop gave.") from exc
    body = {"orders": [order.public() for order in found], "next_cursor": next_cursor}
    return JSONResponse(body)


def order(call: Call) -> Response:
    """`GET /api/orders/{id}`, with the version as ETag."""
    found = orders.get_order(call.shop.db, call.order_id or "", _customer(call))
    return JSONResponse(found.public(), headers={"ETag": found.etag})


def tracking(call: Call) -> Response:
    """`GET /api/orders/{id}/tracking`."""
    found = orders.get_order(call.shop.db, call.order_id or "", _customer(call))
    parcel = found.document["tracking"]
    if parcel is None:
        raise RefusalError(404, "no_tracking", "This order has no parcel on its way.")
    return JSONResponse({"order_id": found.id} | parcel)


def refund(call: Call) -> Response:
    """`POST /api/orders/{id}/refunds`."""

    def perform(found: Order, origin: Origin) -> dict[str, Any]:
        status = effects.PENDING if call.plan.has("pending") else effects.SUCCEEDED
        return effects.refund(call.shop.db, found, call.json(), origin, status=status)

    return _write(call, perform, status=201)


def cancel(call: Call) -> Response:
    """`POST /api/orders/{id}/cancel`."""

    def perform(found: Order, origin: Origin) -> dict[str, Any]:
        # Whatever version is meant, what would be refused anyhow is refused as that (RFC 9110, 13.2.1).
        effects.refuse_if_cancelled(found)
        _match_version(call, found)
        return effects.cancel(call.shop.db, found, call.json(), origin)

    return _write(call, perform, status=200)


def address(call: Call) -> Response:
    """`PUT /api/orders/{id}/address`."""

    def perform(found: Order, origin: Origin) -> dict[str, Any]:
        _match_version(call, found)
        return effects.change_address(call.shop.db, found, call.json(), origin)

    return _write(call, perform, status=200)


def effect(call: Call) -> Response:
    """`GET /api/effects/{key}`: was it done? A look-up may lag behind what was done."""
    customer_id = _customer(call)
    lag = timedelta(seconds=call.plan.value("lookup_lag", "seconds", 0))
    found = effects.find_by_key(
        call.shop.db,
        call.key or "",
        client_id=call.client_id or "",
        customer_id=customer_id,
        before=times.now() - lag,
    )
    return JSONResponse(found)


def _customer(call: Call) -> str:
    """The customer whose token this is. Raises RefusalError invalid_token."""
    customer_id = call.customer_id
    revoked = call.plan.has("revoke_customer")
    if customer_id is None or revoked or is_blocked(call.shop.db, customer_id):
        challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
        message = "The access token is missing, expired or revoked."
        raise RefusalError(401, "invalid_token", message, uses_key=False, headers=challenge)
    return customer_id


def _limit(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= MOST_ORDERS:
        raise invalid_request(f"limit must be a whole number, 1 to {MOST_ORDERS}.")
    return int(text)


def _write(call: Call, perform: Perform, *, status: int) -> Response:
    """Do something to an order once for each idempotency key.

    The effect and the answer kept under the key are written in one transaction.
    """
    customer_id = _customer(call)
    if call.key is None or not KEY.fullmatch(call.key):
        message = f"An Idempotency-Key of 1 to {MOST_KEY} visible ASCII characters is needed."
        raise RefusalError(400, "idempotency_key_required", message, uses_key=False)
    db, at = call.shop.db, times.now()
    with db.transaction():
        first = _first_answer(call, at)
        if first is not None:
            return first
        origin = Origin(client_id=call.client_id, idempotency_key=call.key, at=at)
        try:
            found = orders.get_order(db, call.order_id or "", customer_id)
            response: Response = JSONResponse(perform(found, origin), status)
        except RefusalError as refusal:
            response = refused(refusal)
            if not refusal.uses_key:
                return response
        _keep_answer(call, response, at)
    return response


def _first_answer(call: Call, at: datetime) -> Response | None:
    """The answer that this key got before, unless the key is older than the window.

    Raises RefusalError idempotency_key_reused.
    """
    window = call.plan.value("key_window", "seconds", call.shop.config.key_window)
    row = call.shop.db.row(
        "SELECT * FROM answers WHERE client_id = ? AND idempotency_key = ? AND at > ?",
        call.client_id,
        call.key,
        times.to_text(at - timedelta(seconds=window)),
    )
    if row is None:
        return None
    if row["fingerprint"] != call.fingerprint:
        raise key_reused()
    headers = {"Idempotency-Replayed": "true"}
    return Response(row["body"], row["status"], headers, media_type="application/json")


def _keep_answer(call: Call, response: Response, at: datetime) -> None:
    call.shop.db.run(
        "INSERT OR REPLACE INTO answers (client_id, idempotency_key, fingerprint, status, body, at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        call.client_id,
        call.key,
        call.fingerprint,
        response.status_code,
        bytes(response.body).decode(),
        times.to_text(at),
    )


def _match_version(call: Call, found: Order) -> None:
    """Raises RefusalError precondition_required or version_mismatch."""
    given = call.request.headers.get("if-match")
    if given is None:
        message = "If-Match with the order's version is needed."
        raise RefusalError(428, "precondition_required", message, uses_key=False)
    tags = {tag.strip() for tag in given.split(",")}
    if not tags & {found.etag, "*"}:
        message = f"The order is at version {found.version} by now."
        raise RefusalError(412, "version_mismatch", message)


def jwks(call: Call) -> Response:
    """`GET /.well-known/jwks.json`."""
    return JSONResponse(call.shop.signer.jwks(), headers={"Cache-Control": "public, max-age=300"})


def _nobody(_: Call) -> None:
    """Some addresses ask for no identity."""


routes = [
    Route("/.well-known/jwks.json", endpoint(jwks, identify=_nobody)),
    Route("/api/customer", endpoint(customer, identify=identify)),
    Route("/api/orders", endpoint(order_list, identify=identify)),
    Route("/api/orders/{order_id}", endpoint(order, identify=identify)),
    Route("/api/orders/{order_id}/tracking", endpoint(tracking, identify=identify)),
    Route(
        "/api/orders/{order_id}/address",
        endpoint(address, identify=identify, is_write=True),
        methods=["PUT"],
    ),
    Route(
        "/api/orders/{order_id}/cancel",
        endpoint(cancel, identify=identify, is_write=True),
        methods=["POST"],
    ),
    Route(
        "/api/orders/{order_id}/refunds",
        endpoint(refund, identify=identify, is_write=True),
        methods=["POST"],
    ),
    Route("/api/effects/{key:path}", endpoint(effect, identify=identify, is_lookup=True)),
]
