"""Data files as HFiles, which HBase and Apache Hudi read.

A cell is a put. Keys that are deleted are no cells, which readers of others would take for values: they are in a meta block, as an
Arrow array, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.hfile.block import Coding
from hoodie.hfile.compression import KNOWN, Compression
from hoodie.hfile.key_value import MOST_KEY_BYTES, MOST_VALUE_BYTES
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import StorageSource
from hoodie.hfile.writer import HFileOptions, HFileWriter
from hoodie.kv.binary import KEYS, VALUES, Binary
from hoodie.kv.rows import NOTHING, SortedRows, between, merged, position
from hoodie.kv.settings import NO_COMPRESSION
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache

_DELETED = "hoodie.kv.deleted"
_BESIDE_BYTES = 24
"""Of a cell, beside its key and value, about."""


class HFileFormat:
    suffix = ".hfile"
    most_key_bytes = MOST_KEY_BYTES
    most_value_bytes = MOST_VALUE_BYTES
    compressions = tuple(codec.name.lower() for codec in KNOWN)

    @contextmanager
    def create(self, storage: Storage, path: str, compression: str = NO_COMPRESSION) -> Iterator[_Writer]:
        options = HFileOptions(coding=Coding(Compression[compression.upper()]))
        with storage.open_output(path) as stream:
            writer = _Writer(HFileWriter(stream, options))
            yield writer
            writer.finish()

    def open(self, storage: Storage, path: str, cache: Cache) -> _Reader:
        return _Reader(storage, path, cache)


class _Writer:
    def __init__(self, writer: HFileWriter) -> None:
        self._writer = writer
        self._deleted: list[Binary] = []
        self.size_bytes = 0

    def add(self, rows: SortedRows) -> None:
        self.size_bytes += rows.size_bytes + _BESIDE_BYTES * len(rows.keys)
        keys, values = rows
        if values.null_count:
            self._deleted.append(keys.filter(values.is_null()))
            keys, values = keys.filter(values.is_valid()), values.filter(values.is_valid())
        self._writer.write(keys, values)

    def finish(self) -> None:
        if self._deleted:
            batch = pa.record_batch([pa.concat_arrays(self._deleted)], ["key"])
            self._writer.add_meta(_DELETED, bytes(batch.serialize()))
        self._writer.finish()
        self.size_bytes = self._writer.size_bytes


class _Reader:
    def __init__(self, storage: Storage, path: str, cache: Cache) -> None:
        source = StorageSource(storage, storage.stat(path))
        self._reader = HFileReader(source, cache)
        content = self._reader.meta(_DELETED)
        deleted: Binary = NOTHING.keys
        if content is not None:
            try:
                deleted = pa.ipc.read_record_batch(pa.py_buffer(content), _DELETED_SCHEMA)["key"]
                deleted.validate(full=True)
            except (pa.ArrowException, OSError) as exc:
                raise CorruptFileError(
                    f"HFile {source.name}: its meta block {_DELETED} does not decode: {exc}"
                ) from exc
        self._hidden = SortedRows(deleted, pa.nulls(len(deleted), VALUES))
        self._hides = len(deleted) > 0

    def get(self, key: bytes, *, is_likely: bool = True) -> tuple[bool, bytes | None]:
        if self._hides:
            deleted = self._hidden.keys
            at = position(deleted, key)
            if at < len(deleted) and deleted[at].as_py() == key:
                return True, None
        value = self._reader.get(key, is_likely=is_likely)
        return value is not None, value

    def get_many(self, keys: SortedRows) -> SortedRows:
        if not len(keys.keys):
            return NOTHING
        values: Any = self._reader.get_many(keys.keys).cast(VALUES)
        there = values.is_valid()
        result = SortedRows(keys.keys.filter(there), values.filter(there))
        if not self._hides:
            return result
        deleted_keys = keys.keys.filter(pc.is_in(keys.keys, value_set=self._hidden.keys))
        return merged([result, SortedRows(deleted_keys, pa.nulls(len(deleted_keys), VALUES))], drop_deletes=False)

    def scan(self, start: bytes | None, stop: bytes | None) -> Iterator[SortedRows]:
        hidden = between(self._hidden, start, stop)
        for batch in self._reader.scan(start, stop):
            rows = SortedRows(batch["key"].cast(KEYS), batch["value"].cast(VALUES))
            before = between(hidden, None, rows.keys[-1].as_py())
            hidden = hidden.slice(len(before.keys))
            yield merged([rows, before], drop_deletes=False) if len(before.keys) else rows
        if len(hidden.keys):
            yield hidden

    def close(self) -> None:
        """Nothing is held open."""


_DELETED_SCHEMA = pa.schema([pa.field("key", KEYS)])
