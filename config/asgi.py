"""The web process: HTTP and WebSocket."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import path, re_path

from config.checks import refuse_unsafe

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

refuse_unsafe()
http = get_asgi_application()

# Only once Django is set up can an application with models be imported.
from agents.consumers import chat, nobody  # noqa: E402

sockets = URLRouter(
    [
        path("ws/chat/", chat),  # type: ignore[arg-type]
        re_path("", nobody),  # type: ignore[arg-type]
    ]
)
application = ProtocolTypeRouter({"http": http, "websocket": sockets})
