"""How far the workers are behind."""

from django.db import connection

from agents.models import READY

_READY_LAG = """
    SELECT EXTRACT(EPOCH FROM clock_timestamp() - min(GREATEST(s.planned_at, t.wake_at, t.lease_until)))
    FROM agents_task t JOIN agents_step s ON s.task_id = t.id AND s.n = t.steps_planned
    WHERE t.status = ANY(%(ready)s)
      AND (%(shop)s::bigint IS NULL OR t.shop_id = %(shop)s)
      AND (t.lease_until IS NULL OR t.lease_until < clock_timestamp())
      AND (t.wake_at IS NULL OR t.wake_at <= clock_timestamp())
"""


def ready_lag(*, shop_id: int | None = None) -> float:
    """Seconds that the oldest task that a worker could take has waited for one, of one shop or all."""
    with connection.cursor() as cursor:
        cursor.execute(_READY_LAG, {"ready": list(READY), "shop": shop_id})
        (seconds,) = cursor.fetchone()
    return max(0.0, float(seconds or 0))
