"""Who is asking: shops, their customers and staff, the keys and delegations that prove it."""

from accounts.models.changes import ChangeStatus, ShopChange
from accounts.models.customers import Customer, CustomerStatus, Delegation
from accounts.models.factors import RecoveryCode, SecondFactor
from accounts.models.keeping import ERASED, ErasedTicket, Erasure, ErasureCause, Hold
from accounts.models.keys import KeyAlgorithm, SigningKey, WebhookSecret, WidgetKey
from accounts.models.looks import Look
from accounts.models.notices import Endpoint, Notice
from accounts.models.people import (
    APPROVABLE,
    CONSOLE_ROLES,
    ConsoleUserManager,
    Role,
    User,
)
from accounts.models.shops import Shop, default_countries, validate_time_zone

__all__ = [
    "APPROVABLE",
    "CONSOLE_ROLES",
    "ERASED",
    "ChangeStatus",
    "ConsoleUserManager",
    "Customer",
    "CustomerStatus",
    "Delegation",
    "Endpoint",
    "ErasedTicket",
    "Erasure",
    "ErasureCause",
    "Hold",
    "KeyAlgorithm",
    "Look",
    "Notice",
    "RecoveryCode",
    "Role",
    "SecondFactor",
    "Shop",
    "ShopChange",
    "SigningKey",
    "User",
    "WebhookSecret",
    "WidgetKey",
    "default_countries",
    "validate_time_zone",
]
