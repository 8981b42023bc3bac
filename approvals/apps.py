from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """Approvals: who said yes."""

    name = "approvals"
