"""The typed form of an export. Loaded only by whoever writes one: pyarrow costs a process 30 MB."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from audit.shapes import COLUMNS, Row

GROUP = 10_000  # rows in a row group, and in memory
_TYPES = {
    "id": pa.int64(),
    "at": pa.timestamp("us", tz="UTC"),
    "shop_id": pa.int64(),
    "task_id": pa.int64(),
    "ticket_id": pa.int64(),
    "amount": pa.int64(),
    "seal": pa.int64(),
    "personal_digest": pa.binary(32),
    "personal_nonce": pa.binary(32),
    "digest": pa.binary(32),
}
SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in COLUMNS])


class ParquetFile:
    """Writes rows in groups; complete once closed."""

    def __init__(self, path: Path) -> None:
        self._rows: list[Row] = []
        self._writer = pq.ParquetWriter(
            path, SCHEMA.with_metadata({"schema": "countersign.export-row/1"}), compression="zstd"
        )

    def add(self, rows: Sequence[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = [
            pa.array([_typed(name, row) for row in self._rows], type=SCHEMA.field(name).type)
            for name in COLUMNS
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
        self._rows = []


def _typed(name: str, row: Row) -> object:
    if name == "data":
        return row.data()
    value = row.values[name]
    if isinstance(value, str):
        if name == "at":
            return datetime.fromisoformat(value)
        if name in {"digest", "personal_digest", "personal_nonce"}:
            return bytes.fromhex(value)
    return value
