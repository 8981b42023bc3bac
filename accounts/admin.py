"""Shops, people and keys on the admin site, for superusers. Every change of them is on the trail.

Secrets are never shown and never entered here, and nothing is deleted: people are switched off,
keys are retired.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.db import transaction
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from typing_extensions import override

from accounts.console import user_of
from accounts.models import (
    APPROVABLE,
    Customer,
    Delegation,
    Endpoint,
    Notice,
    Shop,
    ShopChange,
    SigningKey,
    User,
    WebhookSecret,
    WidgetKey,
)
from audit import services as audit
from audit.selectors import EventFilter, list_events

SHOWN_CHANGES = 20
RIGHTS = (
    "shop_id",
    "role",
    "is_approver",
    "approve_up_to",
    "approve_kinds",
    "is_active",
    "is_superuser",
)


if TYPE_CHECKING:  # Django's own classes take no parameters at run time
    ModelAdmin = admin.ModelAdmin[Any]
    BaseUserAdmin = DjangoUserAdmin[User]
    AnyForm = ModelForm[Any]
    BaseUserForm = UserChangeForm[User]
else:
    ModelAdmin, BaseUserAdmin, AnyForm = admin.ModelAdmin, DjangoUserAdmin, ModelForm
    BaseUserForm = UserChangeForm


class Undeletable(ModelAdmin):
    """Rows that others refer to for good."""

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnly(Undeletable):
    """Rows that the product's own services write."""

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @override
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class UserForm(BaseUserForm):
    """A person, with the kinds of change that their right to approve reaches to."""

    approve_kinds = forms.MultipleChoiceField(
        choices=[(kind, kind.replace("_", " ").capitalize()) for kind in APPROVABLE],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="What they may decide about; none chosen: everything.",
    )

    def clean_approve_kinds(self) -> list[str] | None:
        """None where nothing is chosen."""
        return self.cleaned_data["approve_kinds"] or None


@admin.register(User)
class UserAdmin(BaseUserAdmin):
    """People of the console: their shop, their role, and what they may countersign."""

    form = UserForm
    list_display = ("username", "email", "shop", "role", "is_approver", "is_active")
    list_filter = ("role", "is_approver", "is_active", "shop")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        (
            "Rights",
            {
                "fields": (
                    "shop",
                    "role",
                    "is_approver",
                    "approve_up_to",
                    "approve_kinds",
                    "is_active",
                    "is_superuser",
                )
            },
        ),
        ("Times", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (
            None,
            {
                "fields": (
                    "username",
                    "email",
                    "shop",
                    "role",
                    "is_approver",
                    "usable_password",
                    "password1",
                    "password2",
                )
            },
        ),
    )
    readonly_fields = ("last_login", "date_joined")

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @override
    def save_model(self, request: HttpRequest, obj: User, form: AnyForm, change: bool) -> None:
        before = User.objects.filter(pk=obj.pk).first()
        super().save_model(request, obj, form, change)
        data = {
            "user": obj.username,
            "fields": sorted(form.changed_data),
            "rights": _changes(before, obj, RIGHTS),
        }
        _record(request, f"user.{'changed' if change else 'created'}", obj, obj.shop_id, data)

    @override
    @transaction.atomic
    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        return super().user_change_password(request, id, form_url)

    @override
    def log_change(self, request: HttpRequest, obj: User, message: Any) -> Any:
        """Django notes a new password here and nowhere else."""
        match = request.resolver_match
        if match and match.url_name == "auth_user_password_change":
            _record(request, "user.password_set", obj, obj.shop_id, {"user": obj.username})
        return super().log_change(request, obj, message)


@admin.register(Shop)
class ShopAdmin(Undeletable):
    """A shop's settings, and the history of their changes.

    What takes two people to loosen is only shown: it is changed in the console's settings.
    """

    list_display = ("name", "slug", "currency", "staff_limit", "policy_version")
    readonly_fields = (
        "slug",
        "currency",
        "policy_version",
        "identity_issuer",
        "identity_audience",
        "oauth_client_id",
        "provider",
        "created_at",
        "money_history",
        *(name for name in Shop.LOOSENED_BY_TWO if name != "currency"),
    )
    exclude = ("oauth_client_secret_encrypted",)

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @override
    def save_model(self, request: HttpRequest, obj: Shop, form: AnyForm, change: bool) -> None:
        before = Shop.objects.select_for_update().get(pk=obj.pk)
        super().save_model(request, obj, form, change)
        changes = _changes(before, obj, form.changed_data)
        _record(request, "shop.changed", obj, obj.pk, {"changes": changes})

    @admin.display(description="Who changed what")
    def money_history(self, shop: Shop) -> SafeString | str:
        wanted = EventFilter(shop_id=shop.pk, action="shop.changed")
        page = list_events(wanted, limit=SHOWN_CHANGES)
        lines = [
            (timezone.localtime(event.at).strftime("%Y-%m-%d %H:%M %Z"), event.actor, text)
            for event in page.events
            if (text := _in_words(event.data))
        ]
        if not lines:
            return "No change yet."
        return format_html("<ul>{}</ul>", format_html_join("", "<li>{}, {}: {}</li>", lines))


@admin.register(ShopChange)
class ShopChangeAdmin(ReadOnly):
    list_display = (
        "shop",
        "setting",
        "old_value",
        "new_value",
        "status",
        "proposed_by",
        "ended_by",
    )
    list_filter = ("status", "shop")


@admin.register(SigningKey)
class SigningKeyAdmin(ReadOnly):
    list_display = ("kid", "shop", "algorithm", "active_from", "retired_at")
    fields = ("shop", "kid", "algorithm", "public_jwk", "active_from", "retired_at")


@admin.register(WebhookSecret)
class WebhookSecretAdmin(ReadOnly):
    list_display = ("name", "shop", "active_from", "retired_at")
    fields = ("shop", "name", "active_from", "retired_at")


@admin.register(WidgetKey)
class WidgetKeyAdmin(ReadOnly):
    list_display = ("key", "shop", "created_at")


@admin.register(Customer)
class CustomerAdmin(ReadOnly):
    list_display = ("external_id", "name", "shop", "status")
    search_fields = ("external_id", "name", "email")


@admin.register(Delegation)
class DelegationAdmin(ReadOnly):
    list_display = ("customer", "created_at", "revoked_at", "revoked_reason")
    fields = ("customer", "created_at", "access_expires_at", "revoked_at", "revoked_reason")


def _changes(
    before: Model | None, after: Model, names: tuple[str, ...] | list[str]
) -> dict[str, list[object]]:
    """Old and new value of each field that differs."""
    values = {name: (getattr(before, name, None), getattr(after, name)) for name in names}
    return {name: [_plain(old), _plain(new)] for name, (old, new) in values.items() if old != new}


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | bool | list | None) else str(value)


def _in_words(data: dict[str, Any]) -> str:
    changes = data.get("changes", {})
    return "; ".join(f"{name} from {old} to {new}" for name, (old, new) in changes.items())


def _record(
    request: HttpRequest, action: str, obj: Model, shop_id: int | None, data: Mapping[str, object]
) -> None:
    """In the transaction that changes the row."""
    noun = action.partition(".")[0]
    audit.record(
        actor=user_of(request).actor,
        action=action,
        subject=f"{noun}:{obj.pk}",
        at=timezone.now(),
        shop_id=shop_id,
        data=data,
    )


@admin.register(Endpoint)
class EndpointAdmin(ReadOnly):
    """Where shops are told of events; `manage.py webhook_endpoint` adds and disables them."""

    list_display = ("name", "shop", "url", "failures", "rests_until", "disabled_at")
    list_filter = ("shop",)
    exclude = ("secret_encrypted", "former_secret_encrypted")


@admin.register(Notice)
class NoticeAdmin(ReadOnly):
    """What endpoints were told, and how it went."""

    list_display = ("public_id", "endpoint", "type", "created_at", "attempts", "last_answer")
    list_filter = ("type", "endpoint")
    search_fields = ("public_id",)
    date_hierarchy = "created_at"
