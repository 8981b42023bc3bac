"""Errors that no view answers: problem documents under /v1/, Django's own pages elsewhere."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views import defaults

from agents.api import problems
from agents.api.problems import ProblemError, ProblemType


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _problem(problems.NOT_FOUND, request) or defaults.page_not_found(request, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _problem(problems.BAD_REQUEST, request) or defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _problem(problems.FORBIDDEN, request) or defaults.permission_denied(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    return _problem(problems.INTERNAL, request) or defaults.server_error(request)


def _problem(kind: ProblemType, request: HttpRequest) -> HttpResponse | None:
    if not request.path.startswith("/v1/"):
        return None
    return problems.respond(ProblemError(kind), request)
