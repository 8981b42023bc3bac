"""What every view of the API does before and after its own work."""

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, ClassVar

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.db import connection
from django.http import Http404, HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import MethodNotAllowed, NotAuthenticated
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView
from typing_extensions import override

from accounts.identity import IdentityError
from accounts.models import Role
from accounts.services import DelegationRevokedError, ShopUnavailableError
from agents import services
from agents.api import bodies, problems, throttle
from agents.api.authentication import (
    SAFE_METHODS,
    ConsoleSessionAuthentication,
    CustomerPrincipal,
    Principal,
    WidgetTokenAuthentication,
    unauthenticated,
)
from agents.api.problems import ProblemError
from tools.outages import AWAY

SHOP_RETRY_SECONDS = 5
DATABASE_RETRY_SECONDS = 2

logger = logging.getLogger(__name__)


class IgnoreAccept(BaseContentNegotiation):
    """There is one representation of everything; a view that can stream looks at Accept itself."""

    @override
    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        return next(iter(parsers))

    @override
    def select_renderer(
        self, request: Request, renderers: Iterable[Any], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class ApiView(APIView):
    """One resource: authenticates, limits, refuses what it does not know, tells errors as problems.

    `readers` may look at it, `writers` may do something with it; `parameters` are the query
    parameters that it reads.
    """

    authentication_classes: ClassVar[list[type[BaseAuthentication]]] = [  # type: ignore[misc]
        WidgetTokenAuthentication,
        ConsoleSessionAuthentication,
    ]
    permission_classes = []
    throttle_classes = []
    parser_classes = [JSONParser]
    renderer_classes = [JSONRenderer]
    content_negotiation_class = IgnoreAccept
    http_method_names = ["get", "head", "post"]

    readers: ClassVar[frozenset[Role]] = frozenset({Role.CUSTOMER})
    writers: ClassVar[frozenset[Role]] = frozenset({Role.CUSTOMER})
    parameters: ClassVar[frozenset[str]] = frozenset()

    @property
    def principal(self) -> Principal:
        found: Principal = self.request.user  # type: ignore[assignment]
        return found

    @property
    def customer(self) -> CustomerPrincipal:
        """The principal, where only customers get this far."""
        found = self.principal
        if not isinstance(found, CustomerPrincipal):
            raise ProblemError(problems.FORBIDDEN)
        return found

    @property
    def http(self) -> HttpRequest:
        """Django's own request: its body has not been read."""
        return self.request._request

    @override
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with ExitStack() as self._places:
            return super().dispatch(request, *args, **kwargs)

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        bodies.refuse_large(self.http)
        if request.user is None:
            raise unauthenticated()
        is_write = request.method not in SAFE_METHODS
        if self.principal.role not in (self.writers if is_write else self.readers):
            raise ProblemError(problems.FORBIDDEN)
        self._places.enter_context(throttle.one_of_few(self.principal.key))
        throttle.count_request(self.principal.key, is_write=is_write)
        self._refuse_unknown_parameters()

    @override
    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        problem = as_problem(exc)
        if problem is None:
            raise exc
        if isinstance(exc, MethodNotAllowed):
            problem.headers["Allow"] = ", ".join(
                method for method in self.allowed_methods if method != "OPTIONS"
            )
        return problems.respond(problem, self.http)

    @override
    def finalize_response(  # type: ignore[override]
        self, request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _refuse_unknown_parameters(self) -> None:
        errors = [
            {"parameter": name[:80], "detail": "There is no such parameter here."}
            for name in self.http.GET
            if name not in self.parameters
        ]
        if errors:
            raise ProblemError(problems.INVALID, errors=errors)


def as_problem(exc: Exception) -> ProblemError | None:
    """An expected error as the problem document that tells of it; None for one of our own faults."""
    if isinstance(exc, ProblemError):
        return exc
    for kinds, tell in _TELLINGS:
        if isinstance(exc, kinds):
            return tell(exc)
    return None


def let_go_of_connection() -> None:
    """Give the connection back before a long answer. Inside a transaction (a test's) it stays."""
    if not connection.in_atomic_block:
        connection.close()


def _bad_request(exc: Exception) -> ProblemError:
    return ProblemError(problems.BAD_REQUEST)


def _too_many_open(exc: Any) -> ProblemError:
    return ProblemError(
        problems.TOO_MANY_OPEN,
        "Wait for one of them to end, or cancel one.",
        extensions={"task": exc.task.pk},
    )


def _too_fast(exc: Any) -> ProblemError:
    return ProblemError(problems.TOO_MANY_REQUESTS, headers={"Retry-After": str(exc.retry_after)})


def _database_away(exc: Exception) -> ProblemError:
    logger.error("the database could not be used: %s", type(exc).__name__)
    return ProblemError(problems.UNAVAILABLE, headers={"Retry-After": str(DATABASE_RETRY_SECONDS)})


_TELLINGS: list[tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Any], ProblemError]]]
_TELLINGS = [
    (NotAuthenticated, lambda _: unauthenticated()),
    (MethodNotAllowed, lambda _: ProblemError(problems.METHOD_NOT_ALLOWED)),
    (Http404, lambda _: ProblemError(problems.NOT_FOUND)),
    ((SuspiciousOperation, BadRequest, MultiPartParserError), _bad_request),
    (IdentityError, lambda _: unauthenticated()),
    (DelegationRevokedError, lambda _: ProblemError(problems.DELEGATION_REVOKED)),
    (
        ShopUnavailableError,
        lambda _: ProblemError(
            problems.SHOP_UNAVAILABLE, headers={"Retry-After": str(SHOP_RETRY_SECONDS)}
        ),
    ),
    (services.TicketNotFoundError, lambda _: ProblemError(problems.NOT_FOUND)),
    (services.TicketClosedError, lambda _: ProblemError(problems.TICKET_CLOSED)),
    (services.TooManyOpenTasksError, _too_many_open),
    (services.TooManyRequestsError, _too_fast),
    (services.MessageReusedError, lambda _: ProblemError(problems.KEY_REUSED)),
    (AWAY, _database_away),
]
