"""How each provider's API behaves, as data. What is not known is assumed to be at its worst."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Capabilities:
    """What a provider does with keys, errors, look-ups and totals.

    * `key_window_seconds`: how long a key is remembered; None = not known.
    * `errors_cached`: an error is replayed for the same key: resending heals nothing, and what was
      refused once stays refused.
    * `body_compared`: the same key with another body is refused.
    * `lookup_by_key`, `lookup_lag_seconds`: effects can be found by key; a miss means something
      only after the lag.
    * `totals_capped`: the provider itself refuses to refund more than was captured.
    * `throttles_before_execution`: a 429 proves that nothing happened.
    * `already_done`: codes of refusals that say: somebody else has done it, nothing is left to do.
    """

    key_window_seconds: int | None
    errors_cached: bool
    body_compared: bool
    lookup_by_key: bool
    lookup_lag_seconds: int
    totals_capped: bool
    throttles_before_execution: bool
    already_done: frozenset[str] = frozenset()

    def can_resend(self, *, age_seconds: float) -> bool:
        """May a write first sent `age_seconds` ago be sent again with its key and its bytes?

        Keeps a tenth of the window as a margin, for clocks and for the time on the way.
        An unknown window never allows it.
        """
        if self.key_window_seconds is None or age_seconds < 0:
            return False
        return age_seconds < self.key_window_seconds * 0.9


UNKNOWN_PROVIDER = Capabilities(
    key_window_seconds=None,
    errors_cached=True,
    body_compared=False,
    lookup_by_key=False,
    lookup_lag_seconds=0,
    totals_capped=False,
    throttles_before_execution=False,
)

_ORDERS_STUB = Capabilities(
    key_window_seconds=24 * 3600,
    errors_cached=True,
    body_compared=True,
    lookup_by_key=True,
    lookup_lag_seconds=5,
    totals_capped=True,
    throttles_before_execution=True,
    already_done=frozenset({"already_cancelled", "already_refunded"}),
)
_PROVIDERS = {
    "orders_stub": _ORDERS_STUB,
    # The pretend shop with a memory so short that one can wait for its end.
    "orders_stub_brief": replace(_ORDERS_STUB, key_window_seconds=60),
}


def for_provider(name: str) -> Capabilities:
    """The provider's record; for a name without one, the record that promises nothing."""
    return _PROVIDERS.get(name, UNKNOWN_PROVIDER)
