"""The released prompts: each version, how much it was used, and what differs between two of them.

They hold nothing secret and nothing of one shop, so whoever reads the console reads them. What they
were used for is counted from the tasks of one's own shop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Max, Min, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from accounts.console import user_of
from accounts.models import User
from agents import prompts
from agents.models import Step, StepKind
from agents.prompting import PHRASE_ONLY

COUNTED = timedelta(days=30)
AROUND = 3  # lines that did not change, before and after those that did
NAMES = {
    "support": "the agent at work, with tools",
    "phrase": "putting a result into words, without tools",
}


@dataclass(frozen=True)
class Use:
    """What a version was used for of late. `newest` is a task."""

    tasks: int
    calls: int
    first_at: datetime
    last_at: datetime
    newest: int


@dataclass(frozen=True)
class Version:
    """One released version. `text` is None when its file is not the one that was released."""

    name: str
    is_current: bool
    text: str | None
    use: Use | None
    before: str


@dataclass(frozen=True)
class Line:
    """A line of a comparison: `kind` is same, gone, new or gap; numbers count from one."""

    kind: str
    text: str = ""
    old: int | None = None
    new: int | None = None


def overview(request: HttpRequest) -> HttpResponse:
    """Every prompt with its versions; two of them compared when the address names them."""
    uses = _uses(user_of(request), timezone.now() - COUNTED)
    named = {part: request.GET.get(part, "") for part in ("prompt", "a", "b")}
    compared, refusal = None, ""
    if any(named.values()):
        compared = _compared(**named)
        refusal = "" if compared else "There are no two such versions to compare."
    context = {
        "prompts": [
            {"name": name, "purpose": purpose, "versions": _versions(name, uses)}
            for name, purpose in NAMES.items()
        ],
        "days": COUNTED.days,
        "asked": named,
        "compared": compared,
        "refusal": refusal,
    }
    return render(request, "console/prompts.html", context, status=400 if refusal else 200)


def list_versions(name: str) -> list[str]:
    """The released versions of a prompt, oldest first: v2 before v10."""
    return sorted(prompts.released(name), key=lambda version: (len(version), version))


def differences(old: str, new: str) -> list[Line]:
    """The lines that differ, in order, with those around them. Empty when the texts are the same."""
    before, after = old.splitlines(), new.splitlines()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    lines: list[Line] = []
    for group in matcher.get_grouped_opcodes(AROUND):
        if lines:
            lines.append(Line("gap"))
        for tag, i1, i2, j1, j2 in group:
            lines += _lines(tag, before, after, range(i1, i2), range(j1, j2))
    return lines


def _lines(
    tag: str, before: Sequence[str], after: Sequence[str], old: range, new: range
) -> Iterator[Line]:
    if tag == "equal":
        for i, j in zip(old, new, strict=True):
            yield Line("same", before[i], i + 1, j + 1)
        return
    for i in old:
        yield Line("gone", before[i], old=i + 1)
    for j in new:
        yield Line("new", after[j], new=j + 1)


def _versions(name: str, uses: dict[tuple[str, str], Use]) -> list[Version]:
    """Newest first."""
    names = list_versions(name)
    current = prompts.current(name)
    return [
        Version(
            name=version,
            is_current=version == current,
            text=_text(name, version),
            use=uses.get((name, version)),
            before=names[at - 1] if at else "",
        )
        for at, version in reversed(list(enumerate(names)))
    ]


def _compared(prompt: str, a: str, b: str) -> dict[str, Any] | None:
    """The differences between two versions; None when there are no such two."""
    if prompt not in NAMES or not {a, b} <= set(prompts.released(prompt)):
        return None
    old, new = _text(prompt, a), _text(prompt, b)
    if old is None or new is None:
        return None
    return {"prompt": prompt, "a": a, "b": b, "lines": differences(old, new)}


def _text(name: str, version: str) -> str | None:
    try:
        return prompts.load(name, version)
    except prompts.PromptError:
        return None


def _uses(user: User, since: datetime) -> dict[tuple[str, str], Use]:
    """By prompt and version. A step whose words were erased no longer tells which prompt it was."""
    steps = Step.objects.filter(kind=StepKind.MODEL, started_at__gte=since)
    steps = steps.filter(Q(result__isnull=True) | ~Q(result__has_key="erased"))
    if user.shop_id is not None:
        steps = steps.filter(task__shop_id=user.shop_id)
    is_phrasing = ExpressionWrapper(Q(arguments=PHRASE_ONLY), output_field=BooleanField())
    rows = (
        steps.annotate(is_phrasing=is_phrasing)
        .values("prompt_version", "is_phrasing")
        .annotate(
            tasks=Count("task", distinct=True),
            calls=Count("pk"),
            first_at=Min("started_at"),
            last_at=Max("started_at"),
            newest=Max("task_id"),
        )
        .order_by()
    )
    return {
        ("phrase" if row["is_phrasing"] else "support", row["prompt_version"]): Use(
            tasks=row["tasks"],
            calls=row["calls"],
            first_at=row["first_at"],
            last_at=row["last_at"],
            newest=row["newest"],
        )
        for row in rows
    }
