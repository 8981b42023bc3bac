"""Pages of a list, newest first: a limit and a cursor, both checked."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet
from django.http import QueryDict

from agents.api import problems
from agents.api.problems import ProblemError

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
PARAMETERS = frozenset({"limit", "cursor"})
ID_PATTERN = "[1-9][0-9]{0,17}"
MAX_ID = 10**18 - 1
CURSOR_PATTERN = f"before-{ID_PATTERN}"
_CURSOR = re.compile(rf"before-({ID_PATTERN})\Z")
_ID = re.compile(rf"{ID_PATTERN}\Z")


@dataclass(frozen=True)
class Page:
    limit: int
    before: int | None


def read(query: QueryDict) -> Page:
    """The page asked for. Raises ProblemError (400) for a limit or cursor that is none."""
    return Page(limit=_limit(query.get("limit")), before=_before(query.get("cursor")))


def read_id(query: QueryDict, name: str) -> int | None:
    """An id given as a query parameter; None when there is none. Raises ProblemError (422)."""
    raw = query.get(name)
    if raw is None:
        return None
    if _ID.match(raw) is None:
        error = {"parameter": name, "detail": "This is not an id."}
        raise ProblemError(problems.INVALID, errors=[error])
    return int(raw)


def cut(
    rows: QuerySet[Any], page: Page, name: str, show: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    """One page of the rows under `name`, and the cursor of the next one, if there is one."""
    if page.before is not None:
        rows = rows.filter(pk__lt=page.before)
    found: list[Model] = list(rows.order_by("-pk")[: page.limit + 1])
    shown = found[: page.limit]
    more = len(found) > page.limit
    return {
        name: [show(row) for row in shown],
        "next_cursor": _cursor(shown[-1].pk) if more else None,
    }


def _limit(raw: str | None) -> int:
    if raw is None:
        return DEFAULT_LIMIT
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 9 and 1 <= int(raw) <= MAX_LIMIT):
        raise _bad("limit", f"A page has 1 to {MAX_LIMIT} entries.")
    return int(raw)


def _before(raw: str | None) -> int | None:
    if raw is None:
        return None
    found = _CURSOR.match(raw)
    if found is None:
        raise _bad("cursor", "This is not a cursor of this list.")
    return int(found[1])


def _cursor(pk: int) -> str:
    return f"before-{pk}"


def _bad(name: str, detail: str) -> ProblemError:
    return ProblemError(problems.BAD_PAGE, errors=[{"parameter": name, "detail": detail}])
