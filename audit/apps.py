from django.apps import AppConfig
from typing_extensions import override


class AuditConfig(AppConfig):
    """Audit: what happened."""

    name = "audit"

    @override
    def ready(self) -> None:
        from audit import jobs
