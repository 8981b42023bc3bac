"""What the admin site shows of tools. Switches are set in the console, documents by their command."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from tools.models import PolicyDocument, PolicyPassage, Switch

if TYPE_CHECKING:  # Django's own classes take no parameters at run time
    ModelAdmin = admin.ModelAdmin[Any]
    StackedInline = admin.StackedInline[Any, Any]
else:
    ModelAdmin, StackedInline = admin.ModelAdmin, admin.StackedInline


class ReadOnlyMixin:
    """Rows that the product's own services write."""

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Switch)
class SwitchAdmin(ReadOnlyMixin, ModelAdmin):
    list_display = ("__str__", "is_off", "reason", "changed_by", "changed_at")


class PassageInline(ReadOnlyMixin, StackedInline):
    model = PolicyPassage
    fields = ("n", "heading", "text")
    extra = 0


@admin.register(PolicyDocument)
class PolicyDocumentAdmin(ReadOnlyMixin, ModelAdmin):
    list_display = ("title", "version", "shop", "effective_from", "effective_to")
    inlines = (PassageInline,)
