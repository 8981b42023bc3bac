from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Accounts: who is asking."""

    name = "accounts"
