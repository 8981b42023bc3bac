"""The pretend shop's own door: ledger, faults, the back office. No sign-in, loopback only.

Whoever can reach it can do anything with the pretend shop, so it answers only to this machine:
the peer has to be on loopback, the Host has to be a loopback name (no DNS rebinding), and no
page of another origin may have sent the request.
"""

import ipaddress
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_stub import effects, ledger, mailroom, orders, outbox, shapes, times
from orders_stub.calls import read_body, refused
from orders_stub.effects import Origin
from orders_stub.errors import RefusalError, invalid_request, not_found
from orders_stub.shop import Shop

Handle = Callable[[Shop, Request, Any], Response]
MOST_LIFETIME = 366 * 24 * 60 * 60


def door(handle: Handle) -> Callable[[Request], Awaitable[Response]]:
    """Make an endpoint that answers to this machine only and reads strict JSON."""

    async def answer(request: Request) -> Response:
        if not is_local(request):
            return refused(RefusalError(403, "forbidden", "Only this machine may do that."))
        try:
            body = await _json(request)
            return handle(request.app.state.shop, request, body)
        except shapes.ShapeError as exc:
            return refused(invalid_request(str(exc)))
        except RefusalError as refusal:
            return refused(refusal)

    return answer


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine and from no foreign page."""
    peer = request.client.host if request.client else ""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    origin = request.headers.get("origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return _is_loopback(peer) and _is_loopback(host) and origin in {None, own}


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _json(request: Request) -> Any:
    body = await read_body(request)
    if body is None:
        raise RefusalError(413, "too_large", "The body is too large.")
    if not body:
        return None
    try:
        return shapes.parse_json(body)
    except ValueError as exc:
        raise invalid_request(f"The body is not valid JSON: {exc}") from exc


def show_ledger(shop: Shop, request: Request, _: Any) -> Response:
    """`GET /control/ledger`."""
    order_id = request.query_params.get("order_id")
    key = request.query_params.get("idempotency_key")
    body = {
        "effects": ledger.list_effects(shop.db, order_id, key),
        "calls": ledger.list_calls(shop.db, order_id, key),
    }
    return JSONResponse(body)


def forget_calls(shop: Shop, _request: Request, _: Any) -> Response:
    """`DELETE /control/ledger`: the calls only."""
    ledger.forget_calls(shop.db)
    return Response(status_code=204)


def show_mail(shop: Shop, request: Request, _: Any) -> Response:
    """`GET /control/mail`."""
    return JSONResponse(
        {"mails": mailroom.list_mails(shop.db, request.query_params.get("recipient"))}
    )


def list_faults(shop: Shop, _request: Request, _: Any) -> Response:
    """`GET /control/faults`."""
    return JSONResponse({"faults": shop.faults.list()})


def add_fault(shop: Shop, _request: Request, body: Any) -> Response:
    """`POST /control/faults`."""
    return JSONResponse(shop.faults.add(body).public(), 201)


def clear_faults(shop: Shop, _request: Request, _: Any) -> Response:
    """`DELETE /control/faults`: all of them."""
    shop.faults.clear()
    return Response(status_code=204)


def remove_fault(shop: Shop, request: Request, _: Any) -> Response:
    """`DELETE /control/faults/{id}`."""
    if not shop.faults.remove(request.path_params["rule_id"]):
        raise not_found()
    return Response(status_code=204)


def show_order(shop: Shop, request: Request, _: Any) -> Response:
    """`GET /control/orders/{id}`: as the shop's staff see it, tracking and owner included."""
    return _order(orders.get_any_order(shop.db, request.path_params["order_id"]))


def edit_order(shop: Shop, request: Request, body: Any) -> Response:
    """`PATCH /control/orders/{id}`: the shop's own staff edit an order."""
    with shop.db.transaction():
        order = orders.edit(shop.db, request.path_params["order_id"], body, at=times.now())
    return _order(order)


def refund_by_hand(shop: Shop, request: Request, body: Any) -> Response:
    """`POST /control/orders/{id}/refunds`: a refund made in the shop's back office."""
    with shop.db.transaction():
        order = orders.get_any_order(shop.db, request.path_params["order_id"])
        if isinstance(body, dict):
            body = {"currency": order.currency} | body
        origin = Origin(client_id=None, idempotency_key=None, at=times.now())
        done = effects.refund(shop.db, order, body, origin)
    return JSONResponse(done, 201)


def reverse_refund(shop: Shop, request: Request, body: Any) -> Response:
    """`POST /control/refunds/{id}/reverse`: a refund's money comes back to the shop."""
    given = shapes.an_object(body or {}, "body", {"reason": False})
    reason = shapes.a_text(given.get("reason", "account_closed"), "body.reason", most=200)
    with shop.db.transaction():
        done = effects.reverse(
            shop.db, request.path_params["refund_id"], reason=reason, at=times.now()
        )
    return JSONResponse(done)


def arrive_refund(shop: Shop, request: Request, _: Any) -> Response:
    """`POST /control/refunds/{id}/arrive`: the money of a pending refund was paid out."""
    with shop.db.transaction():
        done = effects.arrive(shop.db, request.path_params["refund_id"], at=times.now())
    return JSONResponse(done)


def show_events(shop: Shop, request: Request, _: Any) -> Response:
    """`GET /control/webhooks`."""
    events = outbox.list_events(shop.db, request.query_params.get("order_id"))
    return JSONResponse({"webhooks": events})


def block_customer(shop: Shop, request: Request, body: Any) -> Response:
    """`POST /control/customers/{id}`: `{"blocked": true}` ends all access until it is false."""
    given = shapes.an_object(body, "body", {"blocked": True})
    if not isinstance(given["blocked"], bool):
        raise shapes.ShapeError("body.blocked", "must be true or false")
    customer_id = request.path_params["customer_id"]
    changed = shop.db.run(
        "UPDATE customers SET blocked = ? WHERE id = ?", int(given["blocked"]), customer_id
    )
    if changed != 1:
        raise not_found()
    return JSONResponse({"id": customer_id, "blocked": given["blocked"]})


def sign(shop: Shop, _request: Request, body: Any) -> Response:
    """`POST /control/sign`: an identity as the storefront hands it out; odd ones for tests."""
    fields = {"customer": True, "expires_in": False, "claims": False}
    given = shapes.an_object(body, "body", fields)
    customer_id = shapes.a_name(given["customer"], "body.customer")
    seconds = shapes.a_number(
        given.get("expires_in", 600), "body.expires_in", least=-MOST_LIFETIME, most=MOST_LIFETIME
    )
    claims = given.get("claims", {})
    if not isinstance(claims, dict):
        raise shapes.ShapeError("body.claims", "must be an object")
    try:
        token, expires_at = shop.signer.sign(
            customer_id, at=times.now(), lifetime=timedelta(seconds=seconds), claims=claims
        )
    except LookupError as exc:
        raise not_found() from exc
    return JSONResponse({"token": token, "expires_at": times.to_text(expires_at)})


def _order(order: orders.Order) -> Response:
    body = order.public() | {
        "customer": order.customer_id,
        "tracking": order.document["tracking"],
    }
    return JSONResponse(body, headers={"ETag": order.etag})


routes = [
    Route("/control/ledger", door(show_ledger)),
    Route("/control/ledger", door(forget_calls), methods=["DELETE"]),
    Route("/control/mail", door(show_mail)),
    Route("/control/faults", door(list_faults)),
    Route("/control/faults", door(add_fault), methods=["POST"]),
    Route("/control/faults", door(clear_faults), methods=["DELETE"]),
    Route("/control/faults/{rule_id}", door(remove_fault), methods=["DELETE"]),
    Route("/control/orders/{order_id}", door(show_order)),
    Route("/control/orders/{order_id}", door(edit_order), methods=["PATCH"]),
    Route("/control/orders/{order_id}/refunds", door(refund_by_hand), methods=["POST"]),
    Route("/control/refunds/{refund_id}/reverse", door(reverse_refund), methods=["POST"]),
    Route("/control/refunds/{refund_id}/arrive", door(arrive_refund), methods=["POST"]),
    Route("/control/webhooks", door(show_events)),
    Route("/control/customers/{customer_id}", door(block_customer), methods=["POST"]),
    Route("/control/sign", door(sign), methods=["POST"]),
]
