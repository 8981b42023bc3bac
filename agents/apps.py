from django.apps import AppConfig
from typing_extensions import override


class AgentsConfig(AppConfig):
    """Agents: what to do next."""

    name = "agents"

    @override
    def ready(self) -> None:
        from agents import closing, jobs, receivers
        from tools import tickets

        tickets.plug_in(closing.Desk())
