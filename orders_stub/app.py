"""The shop as one web application: storefront, orders API, token endpoints, control door."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_stub import api, control, oauth, storefront
from orders_stub.shop import Shop


async def healthz(_: Request) -> Response:
    """`GET /healthz`."""
    return JSONResponse({"status": "ok"})


def build_app(shop: Shop) -> Starlette:
    """The application of an open shop."""
    app = Starlette(
        routes=[
            Route("/healthz", healthz),
            *api.routes,
            *oauth.routes,
            *control.routes,
            *storefront.routes,
        ],
        exception_handlers={HTTPException: storefront.on_http_error},
    )
    app.state.shop = shop
    return app
