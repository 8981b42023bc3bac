"""The console: Django's admin site under our own roof."""

from django.contrib.admin.apps import AdminConfig
from typing_extensions import override


class ConsoleAdminConfig(AdminConfig):
    default_site = "config.console.ConsoleSite"

    @override
    def ready(self) -> None:
        from config import checks

        super().ready()
