"""The shop's own website: sign-in, my orders, one order, and the chat widget on every page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from orders_stub import mailroom, orders, shapes, times
from orders_stub.calls import read_body
from orders_stub.errors import RefusalError
from orders_stub.identity import get_customer, is_blocked
from orders_stub.order_shapes import STATUSES
from orders_stub.shop import Shop

HERE = Path(__file__).parent
COOKIE = "shop_session"
PAGE_SIZE = 24
FACES = 12
DECIMALS = {"JPY": 0, "KRW": 0, "CLP": 0, "ISK": 0, "VND": 0, "BHD": 3, "KWD": 3, "TND": 3}
SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}


def money(amount: int, currency: str) -> str:
    """An amount as people read it: `$1,240.00`; a currency without a sign is named."""
    places = DECIMALS.get(currency, 2)
    whole, part = divmod(amount, 10**places)
    digits = f"{whole:,}.{part:0{places}d}" if places else f"{whole:,}"
    return f"{SIGNS[currency]}{digits}" if currency in SIGNS else f"{digits} {currency}"


def day(moment: str) -> str:
    """A moment as a date that people read: `3 Mar 2026`."""
    read = times.from_text(moment)
    return f"{read.day} {read:%b %Y}"


def clock(moment: str) -> str:
    """A moment with its time of day: `3 Mar, 14:05 UTC`."""
    read = times.from_text(moment)
    return f"{read.day} {read:%b, %H:%M} UTC"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"money": money, "day": day, "clock": clock}
    return environment


PAGES = _environment()


def page(
    request: Request, template: str, context: Mapping[str, Any], status: int = 200
) -> Response:
    """A page of the shop under its content security policy: no inline script, no inline style."""
    shop: Shop = request.app.state.shop
    agent = shop.config.agent_url
    policy = (
        f"default-src 'none'; script-src 'self' {agent}; frame-src {agent}; style-src 'self';"
        " img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    )
    everywhere = {
        "customer": _signed_in(request),
        "agent_url": agent,
        "widget_key": shop.config.widget_key,
    }
    headers = {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    html = PAGES.get_template(template).render(everywhere | dict(context))
    return HTMLResponse(html, status, headers)


def _signed_in(request: Request) -> dict[str, str] | None:
    shop: Shop = request.app.state.shop
    return shop.sessions.customer(request.cookies.get(COOKIE), at=times.now())


def is_same_origin(request: Request) -> bool:
    """Whether a request was not sent by a page of another origin (as far as browsers tell)."""
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    origin = request.headers.get("origin", own)
    site = request.headers.get("sec-fetch-site", "same-origin")
    return origin == own and site in {"same-origin", "none"}


async def home(request: Request) -> Response:
    """`GET /`: the sign-in page, or on to the orders."""
    if _signed_in(request) is not None:
        return RedirectResponse("/orders", 303)
    return _sign_in_page(request)


def _sign_in_page(request: Request, problem: str = "", status: int = 200) -> Response:
    shop: Shop = request.app.state.shop
    faces = shop.db.rows("SELECT id, name FROM customers ORDER BY rowid LIMIT ?", FACES)
    return page(request, "sign_in.html", {"faces": faces, "problem": problem}, status)


async def sign_in(request: Request) -> Response:
    """`POST /sign-in` with `customer=…`, as a form or as JSON: a demo needs no password."""
    if not is_same_origin(request):
        return _refused(403, "cross_origin", "Only this shop's own pages may do that.")
    shop: Shop = request.app.state.shop
    customer_id = _chosen(await read_body(request), request)
    wants_json = "json" in request.headers.get("content-type", "") or (
        "application/json" in request.headers.get("accept", "")
    )
    found = get_customer(shop.db, customer_id)
    if found is None or is_blocked(shop.db, customer_id):
        problem = "This shop has no such customer, or has closed the account."
        if wants_json:
            return _refused(404, "unknown_customer", problem)
        return _sign_in_page(request, problem, 404)
    shop.sessions.end(request.cookies.get(COOKIE))
    session = shop.sessions.start(customer_id, at=times.now())
    response: Response = JSONResponse({"customer": found})
    if not wants_json:
        response = RedirectResponse("/orders", 303)
    lifetime = int(shop.sessions.LIFETIME.total_seconds())
    response.set_cookie(COOKIE, session, max_age=lifetime, httponly=True, samesite="lax")
    return response


def _chosen(body: bytes | None, request: Request) -> str:
    """The customer id in a sign-in's body, or an empty text."""
    try:
        if "json" in request.headers.get("content-type", ""):
            given = shapes.an_object(shapes.parse_json(body or b""), "body", {"customer": True})
            return shapes.a_name(given["customer"], "customer")
        return dict(parse_qsl((body or b"").decode(), max_num_fields=10)).get("customer", "")
    except ValueError:
        return ""


async def sign_out(request: Request) -> Response:
    """`POST /sign-out`."""
    if not is_same_origin(request):
        return _refused(403, "cross_origin", "Only this shop's own pages may do that.")
    shop: Shop = request.app.state.shop
    shop.sessions.end(request.cookies.get(COOKIE))
    response = RedirectResponse("/", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return response


async def identity(request: Request) -> Response:
    """`GET /identity`: the signed-in customer's identity, for this origin's own pages only."""
    if not is_same_origin(request):
        return _refused(403, "cross_origin", "Only this shop's own pages may ask that.")
    shop: Shop = request.app.state.shop
    customer = _signed_in(request)
    if customer is None:
        return _refused(401, "signed_out", "Nobody is signed in.")
    token, expires_at = shop.signer.sign(customer["id"], at=times.now())
    return _json({"token": token, "expires_at": times.to_text(expires_at)})


async def order_list(request: Request) -> Response:
    """`GET /orders`: my orders."""
    customer = _signed_in(request)
    if customer is None:
        return RedirectResponse("/", 303)
    shop: Shop = request.app.state.shop
    status = request.query_params.get("status", "")
    status = status if status in STATUSES else ""
    try:
        found, more = orders.list_orders(
            shop.db,
            customer["id"],
            status=status or None,
            limit=PAGE_SIZE,
            cursor=request.query_params.get("cursor") or None,
        )
    except ValueError:
        return RedirectResponse("/orders", 303)
    context = {"orders": found, "more": more, "status": status, "statuses": STATUSES}
    return page(request, "orders.html", context)


async def order(request: Request) -> Response:
    """`GET /orders/{id}`: one of my orders; somebody else's is not there."""
    customer = _signed_in(request)
    if customer is None:
        return RedirectResponse("/", 303)
    shop: Shop = request.app.state.shop
    try:
        found = orders.get_order(shop.db, request.path_params["order_id"], customer["id"])
    except RefusalError:
        return missing(request)
    return page(request, "order.html", {"order": found})


async def mail(request: Request) -> Response:
    """`GET /mail`: the e-mails that came for the signed-in customer."""
    customer = _signed_in(request)
    if customer is None:
        return RedirectResponse("/", 303)
    shop: Shop = request.app.state.shop
    mails = mailroom.list_mails(shop.db, customer["email"])[::-1]
    return page(request, "mail.html", {"mails": mails})


def missing(request: Request, status: int = 404) -> Response:
    """The page for what is not there."""
    return page(request, "missing.html", {}, status)


def _refused(status: int, code: str, message: str) -> Response:
    return _json({"error": code, "message": message}, status)


def _json(body: dict[str, Any], status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin"}
    return JSONResponse(body, status, headers)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Wrong addresses and methods: a page for people, an error object for programs."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(getattr(error, "headers", None) or {})
    if request.url.path.startswith(("/api/", "/oauth/", "/control/")):
        code = "method_not_allowed" if status == 405 else "not_found"
        body = {"error": code, "message": "There is nothing here by that name."}
        return JSONResponse(body, status, headers)
    response = missing(request, status)
    response.headers.update(headers)
    return response


routes = [
    Route("/", home),
    Route("/sign-in", sign_in, methods=["POST"]),
    Route("/sign-out", sign_out, methods=["POST"]),
    Route("/identity", identity),
    Route("/mail", mail),
    Route("/orders", order_list),
    Route("/orders/{order_id}", order),
    Mount("/static", StaticFiles(directory=HERE / "static")),
]
