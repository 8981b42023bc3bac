from django.apps import AppConfig


class ToolsConfig(AppConfig):
    """Tools: what may be done."""

    name = "tools"
