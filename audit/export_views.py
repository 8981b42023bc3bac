"""Taking the trail away: ask for a bundle, watch it being made, fetch it, check it."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Protocol, Self, cast
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone

from audit import exports
from audit.bundle import KEY, PAPERS, VERIFIER, public_pem
from audit.export_models import Export, ExportState
from audit.exports import ExportGoneError, ReasonMissingError, TooManyExportsError
from audit.forms import AskForm
from audit.keys import get_signer

CHUNK = 256 * 1024


class Reader(Protocol):
    """What this app knows of whoever is signed in; the guard of the route has let them in."""

    pk: int
    shop_id: int | None
    actor: str


def overview(request: HttpRequest) -> HttpResponse:
    """What this person has taken away, and how to check it."""
    return _overview(request)


def ask(request: HttpRequest, may_unredact: Callable[[HttpRequest], bool]) -> HttpResponse:
    """Ask for a bundle of the events that match the filter."""
    form = AskForm(request.POST)
    if not form.is_valid():
        return _overview(request, "That filter cannot be read; nothing was exported.", status=422)
    wants_words = form.cleaned_data["words"]
    if wants_words and not may_unredact(request):
        raise PermissionDenied
    reader = _reader(request)
    try:
        export = exports.request_export(
            owner_id=reader.pk,
            actor=reader.actor,
            wanted=form.filter_for(reader.shop_id),
            form=form.cleaned_data["form"],
            is_redacted=not wants_words,
            reason=form.cleaned_data["reason"] if wants_words else "",
            now=timezone.now(),
        )
    except TooManyExportsError as exc:
        return _overview(request, str(exc), status=409)
    except ReasonMissingError:
        return _overview(request, "Say why the words are needed; nothing was exported.", status=422)  # fmt: skip
    return redirect("console:export-state", export_id=export.pk)


def show(request: HttpRequest, export_id: UUID) -> HttpResponse:
    """One export: how far it is, and its file once it is ready. Open pages ask again by themselves."""
    return _show(request, _find(request, export_id))


def download(request: HttpRequest, export_id: UUID) -> HttpResponseBase:
    """The bundle, to whoever asked for it and nobody else; the trail records it."""
    reader = _reader(request)
    try:
        export = exports.fetch(
            export_id=export_id,
            owner_id=reader.pk,
            shop_id=reader.shop_id,
            actor=reader.actor,
            now=timezone.now(),
        )
        file = Chunks(export.path)
    except Export.DoesNotExist as exc:
        raise Http404 from exc
    except ExportGoneError as exc:
        return _show(request, _find(request, export_id), str(exc), status=410)
    return StreamingHttpResponse(
        read_async(file) if isinstance(request, ASGIRequest) else file,
        content_type="application/zip",
        headers={
            "Content-Length": str(export.size),
            "Content-Disposition": f'attachment; filename="{export.file_name}"',
        },
    )


def stop(request: HttpRequest, export_id: UUID) -> HttpResponse:
    """Stop an export that is under way."""
    _find(request, export_id)
    exports.cancel(export_id=export_id, owner_id=_reader(request).pk, now=timezone.now())
    return redirect("console:export-state", export_id=export_id)


def verifier(request: HttpRequest) -> HttpResponse:
    """The program that checks a bundle, from us and not from the bundle."""
    return _attachment(PAPERS[VERIFIER].read_bytes(), "text/x-python; charset=utf-8", VERIFIER)


def public_key(request: HttpRequest) -> HttpResponse:
    """The key that seals and bundles are signed with."""
    return _attachment(public_pem(get_signer()), "application/x-pem-file", KEY)


class Chunks:
    """A file in chunks, opened now: it can be read to its end even if it is removed meanwhile."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        chunk = self._file.read(CHUNK)
        if not chunk:
            self.close()
            raise StopIteration
        return chunk

    def close(self) -> None:
        self._file.close()


async def read_async(chunks: Chunks) -> AsyncGenerator[bytes, None]:
    """The same chunks for an ASGI response, which would otherwise gather them all in memory first."""
    step = sync_to_async(lambda: next(chunks, None))
    try:
        while (chunk := await step()) is not None:
            yield chunk
    finally:
        chunks.close()


def _overview(request: HttpRequest, refusal: str = "", *, status: int = 200) -> HttpResponse:
    reader = _reader(request)
    context = {
        "exports": exports.list_exports(owner_id=reader.pk, shop_id=reader.shop_id),
        "refusal": refusal,
        "kept": exports.KEPT,
        "key_id": get_signer().key_id,
    }
    return render(request, "console/audit/exports.html", context, status=status)


def _show(request: HttpRequest, export: Export, refusal: str = "", *, status: int = 200) -> HttpResponse:  # fmt: skip
    context: dict[str, Any] = {
        "export": export,
        "refusal": refusal,
        "is_ready": export.state == ExportState.READY and not exports.is_overtaken(export),
        "manifest": bytes(export.manifest_digest).hex() if export.manifest_digest else "",
        "asks_again": request.headers.get("HX-Request") == "true",
    }
    name = "export_state" if context["asks_again"] else "export"
    return render(request, f"console/audit/{name}.html", context, status=status)


def _find(request: HttpRequest, export_id: UUID) -> Export:
    reader = _reader(request)
    try:
        return exports.get_export(export_id, owner_id=reader.pk, shop_id=reader.shop_id)
    except Export.DoesNotExist as exc:
        raise Http404 from exc


def _attachment(content: bytes, content_type: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type=content_type, headers=headers)


def _reader(request: HttpRequest) -> Reader:
    return cast(Reader, request.user)
