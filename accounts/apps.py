from django.apps import AppConfig
from typing_extensions import override


class AccountsConfig(AppConfig):
    """Accounts: who is asking."""

    name = "accounts"

    @override
    def ready(self) -> None:
        from accounts import checks, receivers
