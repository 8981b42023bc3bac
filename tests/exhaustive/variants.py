"""The providers and bounds under which the whole design must hold."""

from dataclasses import replace
from functools import cache

from tests.exhaustive import life
from tests.exhaustive.checker import Found, explore
from tests.exhaustive.invariants import invariants
from tests.exhaustive.world import Provider, Repeat, Setting, World

_REFUSES = Provider(repeat=Repeat.REFUSES, lag=1, known_lag=1)

AT_ONCE = "refund, look-up at once"
LAGS = "refund, look-up lags two leases"
LAGS_UNKNOWN = "refund, look-up lags longer than we know"
BLIND = "refund, no look-up"
CAPPED = "full refund, totals capped, the order shows it"
STATE_FIRST = "full refund, refused by the order's state before the key is known"
CANCEL = "cancel, a repeat is said to be done"
STRANGER = "refund, a provider that nothing is known of"
MAIL = "mail, no key and no look-up"
HALF_TICKS = "refund, no look-up, ticks of half a lease"
TWO_SENDS = "refund, no look-up, two sends at most"
FROZEN = "refund, a worker may stand still at the socket past its lease"

VARIANTS = {
    AT_ONCE: Setting(),
    LAGS: Setting(Provider(lag=2, known_lag=2)),
    LAGS_UNKNOWN: Setting(Provider(lag=2)),
    BLIND: Setting(Provider(look_up=False)),
    CAPPED: Setting(replace(_REFUSES, order_shows_it=True, keeps_refusals=True)),
    STATE_FIRST: Setting(replace(_REFUSES, key_first=False, keeps_refusals=True)),
    CANCEL: Setting(Provider(repeat=Repeat.SAYS_DONE, lag=1, known_lag=1)),
    STRANGER: Setting(Provider(memory=None, known_window=None, look_up=False)),
    MAIL: Setting(Provider(memory=None, known_window=None, look_up=False, is_mail=True)),
    # A send that is allowed at the last moment is on the wire a lease later at most, and still
    # inside the memory of the provider: that is what the margin of the window is for.
    HALF_TICKS: Setting(Provider(memory=4, look_up=False), lease=2),
    TWO_SENDS: Setting(Provider(look_up=False), max_sends=2),
    FROZEN: Setting(Provider(memory=4), freeze=1),
}


@cache
def explored(name: str) -> Found[World]:
    """All that can happen in a variant, worked out once."""
    setting = VARIANTS[name]
    return explore(life.model(setting), invariants(setting))
