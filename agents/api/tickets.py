"""/v1/tickets: the customer's conversations."""

from django.http import HttpResponse, JsonResponse
from rest_framework.request import Request

from agents.api import access, paging, spec
from agents.api import representations as show
from agents.api.base import ApiView
from agents.api.problems import BAD_PAGE, ProblemError

MAX_MESSAGES = 200


@spec.list_tickets()
class TicketListView(ApiView):
    """The customer's conversations, newest first."""

    parameters = paging.PARAMETERS

    def get(self, request: Request) -> HttpResponse:
        page = paging.read(self.http.GET)
        return JsonResponse(
            paging.cut(self.principal.tickets(), page, "tickets", show.ticket_brief)
        )


@spec.look_at_ticket()
class TicketView(ApiView):
    """One conversation with its messages after a number, in their order."""

    parameters = frozenset({"after"})

    def get(self, request: Request, ticket_id: int) -> HttpResponse:
        ticket = access.get_ticket(self.principal, ticket_id)
        messages = list(ticket.messages.filter(seq__gt=self._after())[: MAX_MESSAGES + 1])
        return JsonResponse(
            {
                **show.ticket_brief(ticket),
                "messages": [show.message_data(message) for message in messages[:MAX_MESSAGES]],
                "has_more": len(messages) > MAX_MESSAGES,
            }
        )

    def _after(self) -> int:
        raw = self.http.GET.get("after", "0")
        if not (raw.isascii() and raw.isdigit() and len(raw) <= 9):
            error = {"parameter": "after", "detail": "This is not the number of a message."}
            raise ProblemError(BAD_PAGE, errors=[error])
        return int(raw)
