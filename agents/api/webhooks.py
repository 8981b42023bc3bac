"""/v1/webhooks/{shop}: what a shop tells us by itself."""

from typing import Any, ClassVar

from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from prometheus_client import Counter
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from typing_extensions import override

from accounts import webhooks
from accounts.models import Shop
from accounts.validators import is_key_id
from agents.api import bodies, problems, spec
from agents.api.base import ApiView
from agents.api.problems import ProblemError
from tools import evidence

CHALLENGE = {"WWW-Authenticate": 'Webhook-Signature realm="countersign"'}

# Counted and not recorded: whoever is not the shop could write a row a request.
RECEIVED = Counter("countersign_webhooks", "Webhooks by what became of them", ["answer"])


@spec.take_event()
class WebhookView(ApiView):
    """The signature is the whole of the sign-in. What it does not cover decides nothing."""

    authentication_classes: ClassVar[list[type[BaseAuthentication]]] = []  # type: ignore[misc]

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Nobody is known before the body has been read."""

    def post(self, request: Request, shop: str) -> HttpResponse:
        raw = bodies.read_bytes(self.http)
        sender = self._sender(shop, raw)
        event_id = self.http.headers["webhook-id"]
        if not is_key_id(event_id):
            raise ProblemError(problems.BAD_REQUEST, "The webhook-id is not well formed.")
        self._refuse_unknown_parameters()
        taken = _take(sender, event_id, bodies.parse(self.http, raw))
        RECEIVED.labels(taken).inc()
        return JsonResponse({"taken": taken})

    def _sender(self, slug: str, raw: bytes) -> Shop:
        try:
            return webhooks.authenticate(
                slug=slug,
                headers={name.lower(): value for name, value in self.http.headers.items()},
                body=raw,
                now=timezone.now(),
            )
        except webhooks.NotSignedError as exc:
            RECEIVED.labels("refused").inc()
            raise ProblemError(problems.NOT_SIGNED, headers=CHALLENGE) from exc


def _take(shop: Shop, event_id: str, document: dict[str, Any]) -> str:
    """What became of a signed event, in a word. Raises ProblemError: 422."""
    if not isinstance(document.get("type"), str):
        raise problems.invalid("type", "An event says of what kind it is.")
    try:
        told = evidence.read(event_id, document)
    except evidence.BadEventError as exc:
        detail = f"An event of this kind cannot look like this: {exc}."
        raise ProblemError(
            problems.INVALID, errors=[{"pointer": "#/data", "detail": detail}]
        ) from exc
    if told is None:
        kind = str(document.get("type"))[:60]
        taken = evidence.ignore(shop=shop, event_id=event_id, kind=kind)
        return "ignored" if taken.is_new else "repeated"
    taken = evidence.take(shop=shop, told=told)
    if not taken.is_new:
        return "repeated"
    return "accepted" if taken.operation else "unmatched"
