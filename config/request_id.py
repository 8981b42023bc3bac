"""A name for every request: in its answer, in problem documents, in our log lines.

None is taken from outside, so nobody can make two requests share one or forge a line of the log.
"""

import uuid
from collections.abc import Callable

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from agents.api.problems import REQUEST_ID


@sync_and_async_middleware
def request_id(get_response: Callable[[HttpRequest], object]) -> Callable[[HttpRequest], object]:
    """Middleware: sets `request.request_id` (32 hex digits) and the X-Request-ID header."""
    if iscoroutinefunction(get_response):

        async def named_async(request: HttpRequest) -> HttpResponseBase:
            name = _name(request)
            response: HttpResponseBase = await get_response(request)
            response.headers[REQUEST_ID] = name
            return response

        return named_async

    def named(request: HttpRequest) -> HttpResponseBase:
        name = _name(request)
        response: HttpResponseBase = get_response(request)  # type: ignore[assignment]
        response.headers[REQUEST_ID] = name
        return response

    return named


def _name(request: HttpRequest) -> str:
    name = uuid.uuid4().hex
    request.request_id = name  # type: ignore[attr-defined]
    return name
