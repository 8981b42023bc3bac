"""Exports of tests lie in a folder of their own, and no message about them goes out."""

from pathlib import Path
from uuid import UUID

import pytest

from audit import dispatch


@pytest.fixture(autouse=True)
def folder(settings, tmp_path: Path) -> Path:
    place = tmp_path / "exports"
    settings.EXPORT_FOLDER = place
    return place


@pytest.fixture(autouse=True)
def sent(monkeypatch) -> list[UUID]:
    """The exports that a worker was told of."""
    told: list[UUID] = []
    monkeypatch.setattr(dispatch, "_send", lambda export_id: told.append(UUID(export_id)))
    return told
