"""Many rows take no more memory than few, in the export as in its check."""

import tracemalloc
from collections.abc import Callable

import pytest

from audit import export_work, sealer, snapshot, verify_export
from audit.export_models import Export
from audit.models import Event
from audit.selectors import EventFilter
from bench.audit_rows import add_events
from tests.audit.bundles import ask, write_key
from tests.audit.facts import NOW, SHOP

pytestmark = pytest.mark.django_db(transaction=True)
FEW, MANY = 1_000, 5_000
# Bytes for a batch of rows and the libraries' buffers. All of the many rows would take twelve million.
ROOM = 6_000_000


def peak_of(step: Callable[[], object]) -> int:
    """The most bytes that Python objects took while the step ran, beyond what was there."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def fill(count: int) -> Export:
    """A sealed trail of so many events, and an export of it that nobody has made yet."""
    add_events(count - Event.objects.filter(shop_id=SHOP).count(), shop_id=SHOP)
    while sealer.seal_once(now=NOW) is not None:
        pass
    return ask(EventFilter(shop_id=SHOP), form="csv", owner_id=count)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_an_export_and_its_check_take_no_more_memory_for_many_rows(monkeypatch, tmp_path, count):
    monkeypatch.setattr(sealer, "BATCH", 500)
    monkeypatch.setattr(snapshot, "TOGETHER", 500)
    monkeypatch.setattr(snapshot, "SEALS_TOGETHER", 2)
    export, key = fill(count), str(write_key(tmp_path))

    making = peak_of(lambda: export_work.run(export.pk, clock=lambda: NOW))

    export.refresh_from_db()
    assert (export.state, export.done >= count) == ("ready", True)
    check = [str(export.path), "--key", key]
    checking = peak_of(lambda: verify_export.main(check))
    assert verify_export.main(check) == 0
    assert max(making, checking) < ROOM, (making, checking)
