"""The shop as one web application: storefront, orders API, token endpoints, control door."""

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orders_stub import api, control, oauth, storefront
from orders_stub.mailroom import open_mailroom
from orders_stub.shop import Shop
from orders_stub.webhooks import open_messenger


async def healthz(_: Request) -> Response:
    """`GET /healthz`."""
    return JSONResponse({"status": "ok"})


def build_app(shop: Shop, mail: socket.socket | None = None) -> Starlette:
    """The application of an open shop; with a listening socket it takes e-mails there too."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(open_messenger(shop))
            if mail is not None:
                await stack.enter_async_context(open_mailroom(shop, mail))
            yield

    app = Starlette(
        lifespan=lifespan,
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
