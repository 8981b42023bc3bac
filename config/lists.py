"""The admin site's lists, asked for by somebody who types into the address."""

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest
from django.db import DataError, transaction
from django.http import HttpRequest
from typing_extensions import override


class CarefulChangeList(ChangeList):
    """A filter that no row can be compared with is a fault of whoever asks.

    Django sees to most of them; what the database or a field says of NUL, numbers beyond any column
    or half an address passes through it.
    """

    @override
    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        try:
            return super().get_queryset(request, exclude_parameters)
        except (ValueError, TypeError) as exc:
            raise IncorrectLookupParameters(exc) from exc

    @override
    def get_results(self, request: HttpRequest) -> None:
        try:
            with transaction.atomic():
                super().get_results(request)
        except (DataError, ValueError, TypeError) as exc:
            raise IncorrectLookupParameters(exc) from exc


if TYPE_CHECKING:
    _Admin = ModelAdmin[Any]
else:
    _Admin = object


class CarefulLists(_Admin):
    """Goes before each of the site's own admin classes."""

    @override
    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return CarefulChangeList

    @override
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        if any("\0" in text for pair in request.GET.items() for text in pair):
            raise BadRequest("NUL is in no row")
        return super().changelist_view(request, extra_context)
