"""The suite keeps its own promises."""

import os
import socket
from typing import Any

import pytest
from django.conf import settings

from config.celery import app


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "example.com"])
def test_a_connection_to_another_machine_is_refused_before_it_is_tried(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe, pytest.raises(AssertionError, match="only this machine"):
        probe.connect((address, 80))


def test_a_connection_to_this_machine_goes_through():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()


def test_every_worker_has_one_redis_database_for_its_jobs_its_channels_and_its_programs():
    layer: dict[str, Any] = settings.CHANNEL_LAYERS["default"]
    urls = {
        settings.REDIS_URL,
        settings.CELERY_BROKER_URL,
        app.conf.broker_url,
        os.environ["REDIS_URL"],
        *layer["CONFIG"]["hosts"],
    }

    assert len(urls) == 1
