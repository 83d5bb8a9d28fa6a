"""What was known of a table's files, left in one file: the next process goes on from there, and lists nothing.

    magic | header length u32 | header, JSON | the partitions, as `file_store.py` has them | SHA-256 of all before

The header has the timeline up to which it holds. Whoever reads it follows the timeline from there, and where that cannot be told any
more he lists as if there had been none. Another table at the same address has another timeline.
"""

from __future__ import annotations

import hashlib
import json
import logging
import struct
from dataclasses import dataclass
from typing import Any

from hoodie.errors import CorruptFileError
from hoodie.format.layout import Layout
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime, is_instant_time
from hoodie.model.names import is_partition_path, name_of
from hoodie.storage.base import Storage
from hoodie.timeline.timeline import Timeline
from hoodie.view.file_store import FileStore, decode_files, encode_files
from hoodie.view.synced import SyncedFiles

log = logging.getLogger("hoodie")

MAGIC = b"hoodie-view-1\n"
_LENGTH = struct.Struct("<I")
_DIGEST_BYTES = hashlib.sha256().digest_size
_ERRORS = (ValueError, KeyError, TypeError, struct.error, RecursionError)


@dataclass(frozen=True)
class Checkpoint:
    """Where the checkpoint of one table is. What cannot be read or written is told, and the table is listed instead."""

    storage: Storage
    name: str
    table: str
    """Its address."""

    @classmethod
    def of(cls, storage: Storage, table: str) -> Checkpoint:
        """The one of a table in a folder for those of many."""
        name = name_of(table.rstrip("/"))
        return cls(storage, f"{name}-{hashlib.sha256(table.encode()).hexdigest()[:16]}.view", table)

    @property
    def path(self) -> str:
        return f"{self.storage.uri.rstrip('/')}/{self.name}"

    def load(self, store: FileStore, layout: Layout) -> SyncedFiles | None:
        """What was known, put into an empty store; None where there is no checkpoint, or none that can be read."""
        try:
            data = self.storage.read(self.name)
        except FileNotFoundError:
            return None
        except OSError as exc:
            log.warning("the checkpoint %s of table %s was not read: %s", self.path, self.table, exc)
            return None
        try:
            result = decode_checkpoint(data, store, layout, table=self.table, path=self.path)
        except CorruptFileError as exc:
            log.warning("%s; it is dropped, and the table is listed", exc)
            store.clear()
            self._drop()
            return None
        result.source = self.path
        return result

    def save(self, files: SyncedFiles) -> None:
        """Leave what is known; the lock is held."""
        try:
            self.storage.replace(self.name, encode_checkpoint(files, table=self.table))
        except OSError as exc:
            log.warning("the checkpoint %s of table %s was not written: %s", self.path, self.table, exc)

    def _drop(self) -> None:
        try:
            self.storage.delete(self.name)
        except OSError as exc:
            log.warning("the checkpoint %s of table %s was not removed: %s", self.path, self.table, exc)


def encode_checkpoint(files: SyncedFiles, *, table: str) -> bytes:
    """The content of the file."""
    assert files.timeline is not None
    paths = files.store.partitions()
    texts = [encode_files(files.store.get(path) or {}) for path in paths]
    header = {
        "table": table,
        "instants": [[i.time, i.action.value, i.state.value, i.completion] for i in files.timeline],
        "archive": sorted(files.archive),
        "set_aside": sorted(files.set_aside),
        "whole": files.is_whole,
        "doubted": sorted(files.doubted),
        "partitions": [[path, len(text)] for path, text in zip(paths, texts, strict=True)],
    }
    head = json.dumps(header).encode("ascii")
    body = b"".join([MAGIC, _LENGTH.pack(len(head)), head, *texts])
    return body + hashlib.sha256(body).digest()


def decode_checkpoint(data: bytes, store: FileStore, layout: Layout, *, table: str, path: str) -> SyncedFiles:
    """What was known, put into `store`.

    Raises:
        CorruptFileError: the bytes are no whole checkpoint, or one of another table.
    """
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
        raise CorruptFileError(f"{path} is not a whole checkpoint of a table's files")
    try:
        (length,) = _LENGTH.unpack_from(body, len(MAGIC))
        begin = len(MAGIC) + _LENGTH.size
        header: Any = json.loads(body[begin : begin + length])
        at = begin + length
        if header["table"] != table:
            raise CorruptFileError(f"{path} is the checkpoint of another table, {str(header['table'])[:200]!r}")
        timeline = Timeline(tuple(_instant(*each) for each in header["instants"]), layout=layout)
        archive, set_aside = (
            frozenset((str(name), int(size)) for name, size in header[each]) for each in ("archive", "set_aside")
        )
        doubted = {_partition(each, path) for each in header["doubted"]}
        for partition_path, size in header["partitions"]:
            files = decode_files(body[at : at + size])
            if any("/" in name for name in files):
                raise CorruptFileError(f"{path} names a file outside of its partition")
            store.put(_partition(partition_path, path), files)
            at += size
    except _ERRORS as exc:
        raise CorruptFileError(f"{path} is not a checkpoint of this release: {exc}") from exc
    return SyncedFiles(store, timeline, archive, set_aside, is_whole=bool(header["whole"]), doubted=doubted)


def _instant(time: str, action: str, state: str, completion: str | None) -> Instant:
    if not is_instant_time(time):
        raise ValueError(f"{time[:80]!r} is not an instant")
    return Instant(
        InstantTime(time), Action(action), State(state), None if completion is None else InstantTime(completion)
    )


def _partition(partition_path: str, path: str) -> str:
    if not is_partition_path(partition_path):
        raise CorruptFileError(f"{path} names {partition_path[:200]!r}, which is not a partition of a table")
    return partition_path
