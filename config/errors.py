"""Errors that no view answers: problem documents under /v1/, pages in the console's dress elsewhere."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views import defaults

from agents.api import problems
from agents.api.problems import ProblemError, ProblemType


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _problem(problems.NOT_FOUND, request) or _page(request, "not_there", 404)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _problem(problems.BAD_REQUEST, request) or _page(request, "unreadable", 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _problem(problems.FORBIDDEN, request) or defaults.permission_denied(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    return _problem(problems.INTERNAL, request) or _page(request, "trouble", 500)


def _page(request: HttpRequest, name: str, status: int) -> HttpResponse:
    """A page in the console's own dress. It asks nothing of the session or the database."""
    told = {"request_id": getattr(request, "request_id", "")}
    return HttpResponse(render_to_string(f"console/{name}.html", told), status=status)


def _problem(kind: ProblemType, request: HttpRequest) -> HttpResponse | None:
    if not request.path.startswith("/v1/"):
        return None
    return problems.respond(ProblemError(kind), request)
