"""The web process: HTTP and WebSocket."""

import os

import django
from asgiref.sync import sync_to_async
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import path, re_path
from typing_extensions import override

from config.checks import refuse_unsafe

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


class ThreadedHandler(ASGIHandler):
    """Django's handler, with all middleware and the view of a request in one go on one thread.

    Every view here is synchronous, and so is some of the middleware. Around such a view Django's own
    handler goes back and forth between the event loop and the thread for each asynchronous layer,
    twenty times for one request: most of what a short answer cost, and each time a wait for whoever
    runs meanwhile. The answer itself is still sent on the event loop, streams included.
    """

    @override
    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    @override
    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        answer: HttpResponseBase = await sync_to_async(self.get_response)(request)
        return answer


refuse_unsafe()
django.setup(set_prefix=False)

# Only once Django is set up can an application with models be imported.
from agents.api.door import Door  # noqa: E402
from agents.consumers import chat, nobody  # noqa: E402

sockets = URLRouter(
    [
        path("ws/chat/", chat),  # type: ignore[arg-type]
        re_path("", nobody),  # type: ignore[arg-type]
    ]
)
application = ProtocolTypeRouter({"http": Door(ThreadedHandler()), "websocket": sockets})
