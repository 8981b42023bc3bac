"""The Celery application: it wakes workers; PostgreSQL decides what they do."""

import os

from celery import Celery
from django.conf import settings

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
        "tell shops of revocations": {"task": "accounts.revocations", "schedule": 30.0},
    },
)
app.autodiscover_tasks(related_name="jobs")
