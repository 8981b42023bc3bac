"""Fragments that a page asks for again and again, and that are sent only when they have changed.

A fragment's mark is what was seen of it: a key (the state that decides what else on the page must
change) and a digest of its text. So a poll that finds nothing new is answered by an empty 204, and
nothing on the page moves under the reader's eyes or cursor.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

SEEN = "seen"


@dataclass(frozen=True)
class Live:
    """A rendered fragment and the address at which to ask whether it still holds."""

    body: SafeString
    url: str
    is_seen: bool
    key_changed: bool


def wants_fragment(request: HttpRequest) -> bool:
    """Does a page that is open already ask, and want a part and no whole page?"""
    return request.headers.get("HX-Request") == "true"


def live(
    request: HttpRequest, template: str, context: dict[str, Any], *, key: str = "", at: str = ""
) -> Live:
    """Render a fragment and compare it with what the request says it has seen.

    `at` is where the fragment is asked for, if not where this request came in. The template must render to the same text for the same state: no CSRF token, no random id.
    """
    body = render_to_string(template, context, request)
    mark = f"{key}.{hashlib.sha256(body.encode()).hexdigest()[:16]}"
    seen = request.GET.get(SEEN, "")
    query = request.GET.copy()
    query[SEEN] = mark
    return Live(
        body=SafeString(body),
        url=f"{at or request.path}?{query.urlencode()}",
        is_seen=seen == mark,
        key_changed=bool(seen) and seen.rpartition(".")[0] != key,
    )


def nothing_new() -> HttpResponse:
    """The answer to a poll that has seen it all."""
    return HttpResponse(status=204)
