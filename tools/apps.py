from django.apps import AppConfig
from typing_extensions import override


class ToolsConfig(AppConfig):
    """Tools: what may be done."""

    name = "tools"

    @override
    def ready(self) -> None:
        from tools import receivers
