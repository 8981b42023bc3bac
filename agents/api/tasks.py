"""/v1/tasks: requests being worked on."""

from functools import partial
from typing import Any, ClassVar

from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from accounts.models import Customer, Role
from accounts.services import ensure_delegation
from agents import form_words, forms, services, telemetry
from agents.api import access, idempotency, paging, problems, shapes, spec, stream
from agents.api import representations as show
from agents.api.base import ApiView
from agents.api.bodies import check, read_object
from agents.api.idempotency import Answer
from agents.api.problems import ProblemError
from agents.models import Task
from agents.services import Submitted

BOTH = frozenset({Role.CUSTOMER, Role.STAFF})


class SubmittingView(ApiView):
    """A view through which a customer's message comes in, once for each Idempotency-Key."""

    noun = "tasks"
    naming = staticmethod(stream.task_naming)

    def shown(self, task: Task) -> dict[str, Any]:
        return show.task_full(task)

    def submit(self, body: dict[str, Any], **where: Any) -> HttpResponseBase:
        """Hand the message over and tell what came of it: as a document, or as events."""
        customer = self.customer
        after = stream.position_in(self.http)
        key = idempotency.key_of(self.http)
        answer = idempotency.run(
            scope=customer.key,
            key=key,
            digest=idempotency.digest_of(self.http, body),
            prepare=self._require_delegation,
            act=partial(self._act, key, where),
        )
        headers = answer.headers | ({"Idempotency-Replayed": "true"} if answer.is_replay else {})
        if answer.status != 202 and stream.wants_stream(self.http):
            return self._streamed(answer, headers, after)
        return JsonResponse(answer.body, status=answer.status, headers=headers)

    def _require_delegation(self) -> None:
        ensure_delegation(
            customer_id=self.customer.customer_id, token=self.customer.token, now=timezone.now()
        )

    def _act(self, key: str, where: dict[str, Any]) -> Answer:
        submitted = services.submit(
            customer_id=self.customer.customer_id,
            client_message_id=idempotency.message_id_of(key),
            traceparent=telemetry.read_traceparent(self.http.headers.get("traceparent", "")),
            now=timezone.now(),
            **where,
        )
        return self._answer(submitted)

    def _answer(self, submitted: Submitted) -> Answer:
        task = submitted.task
        if task is None:
            submitted.ticket.refresh_from_db()
            return Answer(202, show.ticket_brief(submitted.ticket))
        opened_it = task.opening_seq == submitted.message.seq
        return Answer(
            201 if opened_it else 200,
            self.shown(task),
            {"Location": f"/v1/{self.noun}/{task.pk}"},
        )

    def _streamed(self, answer: Answer, headers: dict[str, str], after: str) -> HttpResponseBase:
        task = access.get_task(self.customer, answer.body["id"])
        response = stream.respond(
            self.customer,
            task,
            after=after,
            naming=self.naming,
            status=answer.status,
        )
        for name, value in headers.items():
            response.headers[name] = value
        return response


@spec.list_and_submit(spec.TASK)
class TaskListView(SubmittingView):
    """The customer's tasks, and the way to start one."""

    readers = BOTH
    parameters = paging.PARAMETERS | {"ticket"}
    shape: ClassVar[type[shapes.StrictSerializer]] = shapes.TaskIn
    message_field = "message"

    def get(self, request: Request) -> HttpResponse:
        query = self.http.GET
        page = paging.read(query)
        ticket_id = paging.read_id(query, "ticket")
        tasks = self.principal.tasks()
        if ticket_id is not None:
            tasks = tasks.filter(ticket=access.get_ticket(self.principal, ticket_id))
        return JsonResponse(paging.cut(tasks, page, self.noun, show.task_brief))

    def post(self, request: Request) -> HttpResponseBase:
        body = read_object(self.http)
        values = check(self.shape(data=body)).validated_data
        ticket = values.get("ticket")
        return self.submit(
            body,
            text=values[self.message_field],
            ticket_id=ticket if isinstance(ticket, int) else None,
            opens_new_ticket=ticket == "new",
            locale=values["locale"],
        )


@spec.submit_form()
class FormListView(SubmittingView):
    """Forms: a customer's own call of a tool, which needs no model."""

    http_method_names = ["post"]

    def post(self, request: Request) -> HttpResponseBase:
        body = read_object(self.http)
        values = check(shapes.FormIn(data=body)).validated_data
        customer = Customer.objects.select_related("shop").get(pk=self.customer.customer_id)
        try:
            form = forms.read(values["tool"], values["arguments"], currency=customer.shop.currency)
        except forms.FormError as exc:
            raise ProblemError(problems.INVALID, errors=_faults(exc)) from exc
        ticket = values.get("ticket")
        return self.submit(
            body,
            text=form_words.asked(form, values["locale"] or customer.locale),
            form=form,
            ticket_id=ticket if isinstance(ticket, int) else None,
            opens_new_ticket=ticket == "new",
            locale=values["locale"],
        )


def _faults(exc: forms.FormError) -> list[dict[str, str]]:
    return [
        {
            "pointer": "#/arguments/" + name.replace(".", "/"),
            "detail": f"Not as it must be: {code}.",
        }
        for name, code in exc.faults.items()
    ]


@spec.look(spec.TASK)
class TaskView(ApiView):
    """One task."""

    readers = BOTH

    def shown(self, task: Task) -> dict[str, Any]:
        return show.task_full(task)

    def get(self, request: Request, task_id: int) -> HttpResponse:
        return JsonResponse(self.shown(access.get_task(self.principal, task_id)))


@spec.follow(spec.TASK)
class TaskEventsView(ApiView):
    """What happens to a task, as it happens."""

    readers = BOTH
    parameters = frozenset({"after"})
    http_method_names = ["get"]
    naming = staticmethod(stream.task_naming)

    def get(self, request: Request, task_id: int) -> HttpResponseBase:
        task = access.get_task(self.principal, task_id)
        after = stream.position_in(self.http)
        return stream.respond(self.principal, task, after=after, naming=self.naming)


@spec.say(spec.TASK)
class TaskMessagesView(SubmittingView):
    """Saying something more in the conversation of a task."""

    def post(self, request: Request, task_id: int) -> HttpResponseBase:
        task = access.get_task(self.principal, task_id)
        body = read_object(self.http)
        values = check(shapes.MessageIn(data=body)).validated_data
        return self.submit(body, text=values["message"], ticket_id=task.ticket_id)


@spec.cancel(spec.TASK)
class TaskCancelView(ApiView):
    """Stopping a task. What is already being sent is not called back."""

    def shown(self, task: Task) -> dict[str, Any]:
        return show.task_full(task)

    def post(self, request: Request, task_id: int) -> HttpResponse:
        check(shapes.NothingIn(data=read_object(self.http)))
        task = access.get_task(self.principal, task_id)
        cancelled = services.cancel(task_id=task.pk, by=self.principal.actor, now=timezone.now())
        return JsonResponse(self.shown(cancelled))
