"""The API's own description: the OpenAPI document, a page to read it, a page of all problems."""

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

from agents.api import problems


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document. It is the same for everybody."""
    return JsonResponse(document(), headers={"Cache-Control": "public, max-age=300"})


@require_safe
def reading_page(request: HttpRequest) -> HttpResponse:
    """The document as a page, with Swagger UI."""
    return render(request, "api/docs.html")


@require_safe
def problem_page(request: HttpRequest) -> HttpResponse:
    """What each problem type means: their `type` members point here."""
    return render(request, "api/problems.html", {"kinds": problems.ALL})


@cache
def document() -> dict[str, Any]:
    """Made once for the life of the process."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    found: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return found
