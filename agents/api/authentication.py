"""Who is asking: a customer by the shop's signed token, or a member of staff by the console session."""

import re
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.request import Request
from typing_extensions import override

from accounts.identity import Identity, IdentityError, recheck_identity, verify_identity
from accounts.models import Role, User
from agents.api import bodies, problems
from agents.api.problems import ProblemError
from agents.models import Task, Ticket
from approvals import services as approvals

BEARER = re.compile(r"Bearer +([A-Za-z0-9_~+/.=-]+)\Z", re.IGNORECASE)
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="countersign"'}
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class CustomerPrincipal:
    """A customer whom their shop has just vouched for. Sees and decides their own, nothing else."""

    identity: Identity
    token: str
    role = Role.CUSTOMER

    @property
    def key(self) -> str:
        return f"customer:{self.identity.customer_id}"

    @property
    def customer_id(self) -> int:
        return self.identity.customer_id

    @property
    def actor(self) -> str:
        return f"{Role.CUSTOMER.value}:{self.identity.external_id}"

    def tasks(self) -> QuerySet[Task]:
        return Task.objects.filter(customer_id=self.customer_id)

    def tickets(self) -> QuerySet[Ticket]:
        return Ticket.objects.filter(customer_id=self.customer_id)

    def decider(self) -> approvals.Decider:
        return approvals.by_customer(customer_id=self.customer_id, actor=self.actor)

    def is_still_welcome(self) -> bool:
        """One read, for streams that outlive their request."""
        try:
            recheck_identity(self.identity)
        except IdentityError:
            return False
        return True


@dataclass(frozen=True)
class StaffPrincipal:
    """Somebody signed in to the console. Sees their shop's; without a shop, every shop's."""

    user: User
    role = Role.STAFF

    @property
    def key(self) -> str:
        return f"staff:{self.user.pk}"

    @property
    def actor(self) -> str:
        return self.user.actor

    def tasks(self) -> QuerySet[Task]:
        return Task.objects.filter(**self._scope())

    def tickets(self) -> QuerySet[Ticket]:
        return Ticket.objects.filter(**self._scope())

    def decider(self) -> approvals.Decider:
        return approvals.by_staff(self.user)

    def is_still_welcome(self) -> bool:
        """One read, for streams that outlive their request."""
        user = User.objects.filter(pk=self.user.pk).first()
        return user is not None and user.can_read_console and user.shop_id == self.user.shop_id

    def _scope(self) -> dict[str, int]:
        return {} if self.user.shop_id is None else {"shop_id": self.user.shop_id}


Principal = CustomerPrincipal | StaffPrincipal


class WidgetTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer <identity token of the shop>`. A bad one never falls back to a session."""

    @override
    def authenticate(self, request: Request) -> tuple[CustomerPrincipal, str] | None:
        header = request.META.get("HTTP_AUTHORIZATION")
        if header is None:
            return None
        found = BEARER.match(header)
        if found is None:
            raise unauthenticated()
        token = found[1]
        try:
            return CustomerPrincipal(verify_identity(token), token), token
        except IdentityError as exc:
            raise unauthenticated() from exc

    @override
    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE["WWW-Authenticate"]


class ConsoleSessionAuthentication(BaseAuthentication):
    """The console's session; whatever is not a mere read also needs its CSRF token."""

    @override
    def authenticate(self, request: Request) -> tuple[StaffPrincipal, None] | None:
        http = request._request
        user = getattr(http, "user", None)
        if not isinstance(user, User) or not user.can_read_console:
            return None
        if http.method not in SAFE_METHODS:
            # Only JSON gets further, so that the check below never parses a form.
            if http.content_type:
                bodies.refuse_other_media(http)
            _require_csrf(http)
        return StaffPrincipal(user), None


def _require_csrf(request: HttpRequest) -> None:
    check = CSRFCheck(lambda _: HttpResponse())
    check.process_request(request)
    reason = check.process_view(request, lambda _: HttpResponse(), (), {})
    if reason:
        raise ProblemError(problems.CROSS_SITE, f"{reason}")


def unauthenticated() -> ProblemError:
    """The one 401, whatever was wrong: it says nothing about why."""
    return ProblemError(problems.UNAUTHENTICATED, headers=CHALLENGE)


class WidgetTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "agents.api.authentication.WidgetTokenAuthentication"
    name = "customerToken"

    @override
    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "The identity token that the shop's site signs for its customer.",
        }


class ConsoleSessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "agents.api.authentication.ConsoleSessionAuthentication"
    name = "consoleSession"

    @override
    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": (
                "A session of the console. Every request that is not a mere read also carries "
                f"the value of the cookie {settings.CSRF_COOKIE_NAME} in the header X-CSRFToken."
            ),
        }
