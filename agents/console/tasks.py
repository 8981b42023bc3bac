"""The task viewer: every step of a task with its verdicts, approvals, sends, tokens and cost."""

from typing import Any

from django.db.models import Count, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from accounts.console import Right, has_right, user_of
from accounts.live import live, nothing_new, wants_fragment
from accounts.models import User
from agents.casework import ReviewFlag
from agents.console import replays, selectors, step_log
from agents.console.forms import FlagForm
from agents.models import StepKind, Task
from agents.services import flags
from approvals.models import Approval, ApprovalStatus
from tools.models import Operation

SAY_WHY = "Say why, in at most 500 characters. No flag was raised."
SAY_WORD = "Say what came of it, in at most 500 characters. The flag is still up."
FLAGGED = "this task is flagged. Yours was not kept."
CLOSED = "the flag is closed. Your word was not kept."


def task(request: HttpRequest, task_id: int) -> HttpResponse:
    """A task and a page of its steps; asked again while the task is under way."""
    return _page(request, _find(request, task_id))


def flag(request: HttpRequest, task_id: int) -> HttpResponse:
    """Ask colleagues to look at a task again."""
    found = _find(request, task_id)
    form = FlagForm(request.POST)
    if not form.is_valid():
        return _page(request, found, refusal=SAY_WHY, status=422)
    try:
        flags.raise_flag(
            task_id=found.pk,
            user=user_of(request),
            reason=form.cleaned_data["text"],
            now=timezone.now(),
        )
    except flags.FlaggedAlreadyError as exc:
        return _page(request, found, refusal=f"{_name(exc.flag.raised_by)} was first: {FLAGGED}")
    return _back(found)


def close_flag(request: HttpRequest, task_id: int, flag_id: int) -> HttpResponse:
    """Say what came of looking at it again."""
    found = _find(request, task_id)
    form = FlagForm(request.POST)
    if not form.is_valid():
        return _page(request, found, refusal=SAY_WORD, status=422)
    try:
        flags.close_flag(
            flag_id=flag_id,
            task_id=found.pk,
            user=user_of(request),
            word=form.cleaned_data["text"],
            now=timezone.now(),
        )
    except ReviewFlag.DoesNotExist as exc:
        raise Http404 from exc
    except flags.ClosedAlreadyError as exc:
        return _page(request, found, refusal=f"{_name(exc.flag.closed_by)} was first: {CLOSED}")
    return _back(found)


def _page(
    request: HttpRequest, found: Task, *, refusal: str = "", status: int = 409
) -> HttpResponse:
    number = _page_number(request, found)
    context: dict[str, Any] = {
        "task": found,
        "spent": _spent(found),
        "sights": step_log.see_page(found, number),
        "pages": _pages(found, number),
        "line": step_log.line_of(found),
    }
    at = reverse("console:task", args=[found.pk])
    context["live"] = live(request, "console/tasks/log.html", context, at=at)
    if wants_fragment(request):
        if context["live"].is_seen:
            return nothing_new()
        return render(request, "console/tasks/log_section.html", context)
    context["before"], context["after"] = selectors.neighbours_of(found)
    raised = selectors.list_flags_of(found)
    context |= {
        "open_flag": next((each for each in raised if each.closed_at is None), None),
        "closed_flags": [each for each in raised if each.closed_at is not None],
        "replays": [replays.see(each) for each in selectors.list_replays_of(found)],
        "may_flag": has_right(user_of(request), Right.WORK),
        "refusal": refusal,
        "said": request.POST.get("text", "") if refusal else "",
    }
    return render(request, "console/tasks/task.html", context, status=status if refusal else 200)


def step(request: HttpRequest, task_id: int, n: int) -> HttpResponse:
    """One step in full, nothing cut."""
    found = _find(request, task_id)
    sight = step_log.see_step(found, n)
    if sight is None:
        raise Http404
    context = {"task": found, "sight": sight, "is_alone": True}
    return render(request, "console/tasks/step_page.html", context)


def log(request: HttpRequest, task_id: int) -> HttpResponse:
    """The whole log as a JSON file."""
    found = _find(request, task_id)
    return JsonResponse(
        step_log.as_json(found),
        json_dumps_params={"indent": 2, "ensure_ascii": False},
        headers={"Content-Disposition": f'attachment; filename="task-{found.pk}.json"'},
    )


def _back(found: Task) -> HttpResponse:
    return redirect(f"{reverse('console:task', args=[found.pk])}#review")


def _name(user: User | None) -> str:
    return (user.get_full_name() or user.get_username()) if user is not None else "Somebody"


def _find(request: HttpRequest, task_id: int) -> Task:
    found = selectors.get_task(user_of(request), task_id)
    if found is None:
        raise Http404
    return found


def _spent(found: Task) -> dict[str, Any]:
    """What the steps used, how often the model and people were asked, and under which policies."""
    sums = found.steps.aggregate(
        tokens_in=Sum("tokens_in", default=0),
        tokens_cached=Sum("tokens_cached", default=0),
        tokens_out=Sum("tokens_out", default=0),
    )
    calls = found.steps.filter(kind=StepKind.MODEL).count()
    questions = Approval.objects.filter(operation__task_id=found.pk).aggregate(
        asked=Count("pk"), agreed=Count("pk", filter=Q(status=ApprovalStatus.APPROVED))
    )
    versions = Operation.objects.filter(task_id=found.pk).values_list("policy_version", flat=True)
    end = found.finished_at
    return {
        **sums,
        **questions,
        "model_calls": calls,
        "policies": sorted(set(versions)),
        "took": end - found.created_at if end else None,
    }


def _page_number(request: HttpRequest, found: Task) -> int:
    """The page asked for, or the page of the step that a link points to; the first for anything odd."""
    step_n, page = (_number(request.GET.get(name, "")) for name in ("step", "page"))
    number = step_log.page_of(step_n) if step_n else page
    return number if 1 <= number <= step_log.page_count(found) else 1


def _pages(found: Task, number: int) -> list[dict[str, Any]]:
    """Links to the pages; none when there is just one."""
    count = step_log.page_count(found)
    if count == 1:
        return []
    at = reverse("console:task", args=[found.pk])
    return [
        {
            "url": f"{at}?page={page}",
            "name": f"{(page - 1) * step_log.PAGE + 1}–{min(page * step_log.PAGE, found.steps_planned)}",  # noqa: RUF001
            "is_here": page == number,
        }
        for page in range(1, count + 1)
    ]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
