"""Indexes outside of tables, for tests: one of a user's own, and the options by which a table has one."""

from __future__ import annotations

import sqlite3
import uuid

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.key_index import PLACES
from hoodie.options.values import IndexType
from tests.metadata_tables import KEYS, KEYS_BY_PARTITION


class KeptKeys:
    """An index of a user's own: a dict of this process."""

    def __init__(self) -> None:
        self.places: dict[str, dict[str, str]] = {}
        self.asked = 0
        """Keys that it was asked about."""

    def look_up(self, keys: pa.Array) -> pa.Table:
        self.asked += len(keys)
        nothing = dict.fromkeys(PLACES.names)
        return pa.Table.from_pylist([self.places.get(key, nothing) for key in keys.to_pylist()], schema=PLACES)

    def put(self, keys: pa.Array, places: pa.Table) -> None:
        self.places.update(zip(keys.to_pylist(), places.to_pylist(), strict=True))

    def delete(self, keys: pa.Array) -> None:
        for key in keys.to_pylist():
            self.places.pop(key, None)


class KeptInSqlite:
    """The same in a file, so that other processes have it, too."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._open() as db:
            db.execute("CREATE TABLE IF NOT EXISTS places (key TEXT PRIMARY KEY, time TEXT, path TEXT, file TEXT)")

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60)

    def look_up(self, keys: pa.Array) -> pa.Table:
        with self._open() as db:
            find = "SELECT time, path, file FROM places WHERE key = ?"
            rows = [db.execute(find, [key]).fetchone() or (None, None, None) for key in keys.to_pylist()]
        return pa.Table.from_pylist([dict(zip(PLACES.names, row, strict=True)) for row in rows], schema=PLACES)

    def put(self, keys: pa.Array, places: pa.Table) -> None:
        rows = [(key, *place.values()) for key, place in zip(keys.to_pylist(), places.to_pylist(), strict=True)]
        with self._open() as db:
            db.executemany("INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?)", rows)

    def delete(self, keys: pa.Array) -> None:
        with self._open() as db:
            db.executemany("DELETE FROM places WHERE key = ?", [[key] for key in keys.to_pylist()])


def new_kept_keys() -> tuple[KeptKeys, dict[str, str]]:
    """A new index, and the options of a table that has it."""
    index, name = KeptKeys(), f"kept_{uuid.uuid4().hex}"
    hoodie.register_index(name, index)
    return index, {"hoodie.index.class": name}


def index_options(index: IndexType) -> dict[str, str]:
    """Options of a new table with this index, whose rows move."""
    if index is IndexType.CUSTOM:
        return new_kept_keys()[1]
    if index in (IndexType.RECORD_INDEX, IndexType.GLOBAL_RECORD_LEVEL_INDEX):
        return {"hoodie.index.type": index, "hoodie.record.index.update.partition.path": "true", **KEYS}
    if index is IndexType.RECORD_LEVEL_INDEX:
        return {"hoodie.index.type": index, "hoodie.write.table.version": "9", **KEYS_BY_PARTITION}
    if index is not IndexType.HBASE:
        return {"hoodie.index.type": index}
    pytest.importorskip("happybase")
    from tests.fake_hbase import shared  # noqa: PLC0415 - where the extra is installed

    return {
        "hoodie.index.type": "HBASE",
        "hoodie.index.hbase.table": f"t_{uuid.uuid4().hex}",
        "hoodie.python.index.hbase.thrift": shared().address,
        "hoodie.hbase.index.update.partition.path": "true",
    }
