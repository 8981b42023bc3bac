"""Parts of the chat's own code by themselves, in a browser but with nobody at the other end."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.visitor import visit
from tests.live import Product

__all__ = ["visit"]

Run = Callable[..., Any]


@pytest.fixture
def run(visit, product: Product) -> Run:
    """Runs a function of the page's, which may import from the chat's folder."""
    page = visit().page
    page.goto(f"{product.url}/widget/?key=demo")
    return page.evaluate  # type: ignore[no-any-return]


TRANSPORT = """
    const { Transport } = await import("/static/widget/transport.js");
    const nothing = () => {};
    const make = (options = {}) => new Transport({
      key: "demo", token: async () => "t", where: () => ({ ticket: null }), whose: () => null,
      onFrame: nothing, onState: nothing, onLost: nothing, onOtherCustomer: nothing, ...options,
    });
"""


@pytest.mark.parametrize("told", ["2001-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00"])
def test_a_token_is_renewed_by_how_long_it_has_left_whatever_the_clock_says(run: Run, told: str):
    """A clock that is behind by a month or more would have it renewed without a pause."""
    waits = run(
        "async (told) => {" + TRANSPORT + """
            const waits = [];
            const before = window.setTimeout;
            window.setTimeout = (_, pause) => { waits.push(pause); return 1; };
            make().hear({ type: "done", for: "token", expires_at: told, expires_in: 600 });
            window.setTimeout = before;
            return waits;
        }""",
        told,
    )

    assert waits == [540_000]
