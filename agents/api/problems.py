"""RFC 9457 problem documents: every error of the API, and what each of them means."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

MEDIA_TYPE = "application/problem+json"
REQUEST_ID = "X-Request-ID"


@dataclass(frozen=True)
class ProblemType:
    """One way to fail. `code` is the fragment of its address under /docs/problems/."""

    code: str
    status: int
    title: str

    @property
    def uri(self) -> str:
        return f"{settings.PUBLIC_URL}/docs/problems/#{self.code}"


BAD_REQUEST = ProblemType("bad-request", 400, "The request cannot be read.")
MALFORMED_JSON = ProblemType("malformed-json", 400, "The body is not JSON that is accepted here.")
KEY_MISSING = ProblemType(
    "idempotency-key-missing", 400, "This request needs an Idempotency-Key header."
)
KEY_MALFORMED = ProblemType(
    "idempotency-key-malformed", 400, "The Idempotency-Key header is not well formed."
)
BAD_PAGE = ProblemType("bad-page", 400, "The page asked for is not one that exists.")
BAD_EVENT_ID = ProblemType("bad-event-id", 400, "The event id is not one of this stream's.")
UNAUTHENTICATED = ProblemType("unauthenticated", 401, "You are not signed in.")
NOT_SIGNED = ProblemType(
    "not-signed", 401, "No secret of this shop has signed this within five minutes."
)
FORBIDDEN = ProblemType("forbidden", 403, "This is not open to you.")
CROSS_SITE = ProblemType("cross-site", 403, "The request does not come from our own page.")
WRONG_ROLE = ProblemType("wrong-role", 403, "This question is not yours to answer.")
DELEGATION_REVOKED = ProblemType("delegation-revoked", 403, "The shop does not let us act for you.")
CODE_NEEDED = ProblemType(
    "code-needed", 403, "A yes about money needs a fresh code of your authenticator app."
)
REASON_NEEDED = ProblemType(
    "reason-needed", 403, "This case is sensitive: say in the console why you open it."
)
NOT_FOUND = ProblemType("not-found", 404, "There is nothing here.")
METHOD_NOT_ALLOWED = ProblemType("method-not-allowed", 405, "This cannot be done here.")
TOO_SLOW = ProblemType("request-too-slow", 408, "The request did not arrive in time.")
IN_FLIGHT = ProblemType("in-flight", 409, "The same request is still being worked on.")
SUPERSEDED = ProblemType("superseded", 409, "What you answered is no longer what would be done.")
DECIDED_OTHERWISE = ProblemType("decided-otherwise", 409, "Somebody has decided otherwise.")
TOO_MANY_OPEN = ProblemType("too-many-open-tasks", 409, "Too many tasks are under way.")
TICKET_CLOSED = ProblemType("ticket-closed", 409, "This conversation is closed.")
EXPIRED = ProblemType("expired", 410, "The time to answer is over.")
TOO_LARGE = ProblemType("body-too-large", 413, "The body is too large.")
UNSUPPORTED_MEDIA = ProblemType(
    "unsupported-media-type", 415, "The body must be plain application/json in UTF-8."
)
INVALID = ProblemType("invalid", 422, "Some values are not acceptable.")
KEY_REUSED = ProblemType(
    "idempotency-key-reused", 422, "This Idempotency-Key was used for another request."
)
TOO_MANY_REQUESTS = ProblemType("too-many-requests", 429, "Too many requests; slow down.")
TOO_FAST = ProblemType(
    "too-fast", 429, "Too many approvals of money, or wrong codes, in a short time."
)
TOO_MANY_STREAMS = ProblemType("too-many-streams", 429, "Too many event streams are open.")
INTERNAL = ProblemType("internal", 500, "Something went wrong on our side.")
SHOP_UNAVAILABLE = ProblemType("shop-unavailable", 503, "The shop cannot be reached right now.")
UNAVAILABLE = ProblemType("unavailable", 503, "The service cannot work right now.")

ALL = [value for value in list(globals().values()) if isinstance(value, ProblemType)]


class ProblemError(Exception):
    """Ends a request with a problem document.

    `errors` name single values: each has `detail` and a `pointer` into the body or the `parameter`
    it is about. `extensions` are further members of the document.
    """

    def __init__(
        self,
        kind: ProblemType,
        detail: str = "",
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(kind.code)
        self.kind = kind
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.extensions = dict(extensions or {})


def invalid(field: str, detail: str) -> ProblemError:
    """422 about one field of the body."""
    return ProblemError(INVALID, errors=[{"pointer": f"#/{field}", "detail": detail}])


def respond(problem: ProblemError, request: HttpRequest) -> HttpResponse:
    """The problem as a response."""
    document = _document(problem, request.path, getattr(request, "request_id", ""))
    headers = {"Cache-Control": "no-store", **problem.headers}
    return JsonResponse(
        document, status=problem.kind.status, content_type=MEDIA_TYPE, headers=headers
    )


def written(problem: ProblemError, path: str, request_id: str) -> tuple[dict[str, str], bytes]:
    """The problem as headers and body, for where there is no Django around the answer."""
    body = json.dumps(_document(problem, path, request_id)).encode()
    headers = {
        "Content-Type": MEDIA_TYPE,
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        REQUEST_ID: request_id,
        **problem.headers,
    }
    return headers, body


def _document(problem: ProblemError, path: str, request_id: str) -> dict[str, Any]:
    kind = problem.kind
    return {
        **problem.extensions,
        "type": kind.uri,
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail or kind.title,
        "instance": path[:500],
        "errors": problem.errors,
        "request_id": request_id,
    }
