"""The Celery application: it wakes workers; PostgreSQL decides what they do."""

import os

from celery import Celery
from celery.signals import beat_init, celeryd_init
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from config.checks import refuse_unsafe

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("countersign")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    timezone="UTC",
    beat_schedule={
        "sweep": {"task": "agents.sweep", "schedule": float(settings.SWEEP_SECONDS)},
        "expire approvals": {"task": "approvals.expire", "schedule": 10.0},
        "remind staff": {"task": "approvals.remind", "schedule": 60.0},
        "tell shops of revocations": {"task": "accounts.revocations", "schedule": 30.0},
        "finish erasures": {"task": "agents.erasures", "schedule": 60.0},
        "let go of old texts": {"task": "agents.retention", "schedule": 600.0},
        "look after refunds on their way": {"task": "agents.arrivals", "schedule": 20.0},
        "send notices": {"task": "accounts.notices", "schedule": 5.0},
        "look after exports": {"task": "audit.exports", "schedule": 20.0},
    },
)
app.autodiscover_tasks(related_name="jobs")


@celeryd_init.connect  # type: ignore[untyped-decorator]
@beat_init.connect  # type: ignore[untyped-decorator]
def refuse_to_start(**_: object) -> None:
    """End a worker or beat whose settings are unsafe. Celery would only log any other exception."""
    try:
        refuse_unsafe()
    except ImproperlyConfigured as exc:
        raise SystemExit(str(exc)) from exc
