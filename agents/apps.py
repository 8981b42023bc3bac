from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Agents: what to do next."""

    name = "agents"
