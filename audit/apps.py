from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Audit: what happened."""

    name = "audit"
