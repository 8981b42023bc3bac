"""Developer flags: take one guard away, to see what breaks without it.

`COUNTERSIGN_ABLATE` names guards of this table. The settings refuse it outside the demo, and
`script/prove --ablate GUARD` shows for each of them that it is needed.
"""

import secrets
from dataclasses import replace

from django.conf import settings

from tools.clients.capabilities import Capabilities

# What each guard does while it is on.
GUARDS = {
    "fence": "a worker changes a task or an operation only under the epoch that holds it now",
    "stable_key": "every send of an operation carries the one key that was stored with it",
    "look_up": "an unknown outcome is looked up by its key before anything is sent again",
    "window": "nothing is sent again once the provider may have forgotten the key",
    "deadline": "a worker that overslept its lease does not put its first byte on the wire",
}


def is_on(guard: str) -> bool:
    """Is this guard in force? Always, but for a developer who has taken it away."""
    return guard not in settings.ABLATE


def key_for(key: str) -> str:
    """The key to send under: the operation's own, or (ablated) another at each call."""
    return key if is_on("stable_key") else f"{key}-{secrets.token_hex(4)}"


def heeded(capabilities: Capabilities) -> Capabilities:
    """The provider's record as far as it is made use of: all of it, or (ablated) no look-ups."""
    return capabilities if is_on("look_up") else replace(capabilities, lookup_by_key=False)
