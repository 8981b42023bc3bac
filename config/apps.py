"""The console: Django's admin site under our own roof."""

from django.contrib.admin.apps import AdminConfig


class ConsoleAdminConfig(AdminConfig):
    default_site = "config.console.ConsoleSite"
