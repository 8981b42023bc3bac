"""The chat widget's own pages: the loader that a shop includes, the page in its frame, and an
exchange over HTTP for where no WebSocket gets through."""

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from csp.decorators import csp_replace
from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import condition, require_POST, require_safe

from accounts.identity import IdentityError
from accounts.models import WidgetKey
from accounts.validators import SLUG
from agents.chat import answers, frames
from agents.chat.allowance import TooFastError, count_exchange
from agents.chat.answers import RefusedError
from agents.chat.picture import Frame

BEARER = re.compile(r"Bearer +([A-Za-z0-9_~+/.=-]+)\Z", re.IGNORECASE)
LOADER = "widget/loader.js"


@cache
def _loader() -> tuple[bytes, str]:
    """The loader and its ETag, read once."""
    found = finders.find(LOADER)
    if found is None:
        raise FileNotFoundError(LOADER)
    content = Path(found).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _loader_etag(_request: HttpRequest) -> str:
    return _loader()[1]


@require_safe
@cache_control(public=True, max_age=300)
@condition(etag_func=_loader_etag)
def loader(_request: HttpRequest) -> HttpResponse:
    """The one script that a shop's page includes."""
    response = HttpResponse(_loader()[0], content_type="text/javascript; charset=utf-8")
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@require_safe
@cache_control(private=True, no_cache=True)
def widget(request: HttpRequest) -> HttpResponseBase:
    """The page in the frame. Only the shop's own sites may embed it; without a key, none may."""
    found = _widget_key(request.GET.get("key", ""))
    if found is None:
        return render(request, "widget/missing.html", status=404)
    origins = list(found.shop.allowed_origins)
    page = {"key": found.key, "shop": found.shop, "origins": json.dumps(origins)}
    policy = {
        "frame-ancestors": origins or ["'none'"],
        # Not every browser counts a WebSocket to ourselves as 'self'.
        "connect-src": ["'self'", _socket_origin()],
    }

    @xframe_options_exempt
    @csp_replace(policy)
    def embeddable(request: HttpRequest) -> HttpResponse:
        return render(request, "widget/page.html", page)

    response: HttpResponseBase = embeddable(request)
    return response


def _widget_key(name: str) -> WidgetKey | None:
    if not re.fullmatch(SLUG, name):
        return None
    return WidgetKey.objects.select_related("shop").filter(key=name).first()


def _socket_origin() -> str:
    address = urlsplit(settings.PUBLIC_URL)
    return f"{'wss' if address.scheme == 'https' else 'ws'}://{address.netloc}"


@csrf_exempt  # nothing here rests on a cookie: the token is in a header
@require_POST
@cache_control(no_store=True)
def exchange(request: HttpRequest) -> HttpResponse:
    """What a socket would carry, in one request: a hello, at most one frame, and the answers.

    401 for a token that proves nothing, 400 for a body that is no such exchange.
    """
    found = BEARER.match(request.headers.get("Authorization", ""))
    if found is None:
        return _refused(401, "unauthenticated", "Please sign in again.")
    try:
        asked = frames.parse_exchange(request.body.decode())
    except UnicodeDecodeError as exc:
        return _refused(400, "bad-frame", str(exc))
    except frames.FrameError as exc:
        told = answers.error(exc.asked, exc.ref, RefusedError("bad-frame", str(exc)))
        return JsonResponse(told, status=400)
    try:
        return JsonResponse({"frames": _exchange(found[1], asked)})
    except IdentityError:
        return _refused(401, "unauthenticated", "Please sign in again.")
    except TooFastError:
        return _refused(429, "too-many-requests", "That was a lot at once. Please wait a minute.")


def _exchange(token: str, asked: frames.Exchange) -> list[Frame]:
    """A snapshot, answers to the frame, and what is new since."""
    session, shown = answers.enter(
        token, key=asked.key, ticket=asked.ticket, after=asked.after, locale=asked.locale
    )
    count_exchange(session.customer_id)
    if asked.frame is None:
        return shown
    now = timezone.now()
    told = answers.prepare(session, asked.frame, now)
    told = told or answers.answer(session, asked.frame, now)
    return [*shown, *told, *answers.news(session)]


def _refused(status: int, code: str, message: str) -> JsonResponse:
    return JsonResponse(answers.error("", "", RefusedError(code, message)), status=status)
