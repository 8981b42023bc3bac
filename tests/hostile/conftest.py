from tests.crash.conftest import (
    _committed_rows,
    _django_db_helper,
    model_process,
    shared_world,
    world,
)

__all__ = ["_committed_rows", "_django_db_helper", "model_process", "shared_world", "world"]
