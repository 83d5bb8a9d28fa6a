"""Where keys are stored, kept in HBase: rows as the index HBASE of Apache Hudi 0.x has them, through HBase's Thrift server.

A row's key is the record key. Its column family `_s` has `commit_ts`, `file_name` (the id of the file group) and `partition_path`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from hoodie.errors import KeyIndexError, OptionError
from hoodie.model.key_index import FILE_ID, INSTANT_TIME, PARTITION_PATH, PLACES

T = TypeVar("T")

PORT = 9090
"""Of HBase's Thrift server, unless its configuration says otherwise."""
_FAMILY = b"_s"
_COLUMNS = {INSTANT_TIME: b"_s:commit_ts", PARTITION_PATH: b"_s:partition_path", FILE_ID: b"_s:file_name"}
_TIMEOUT_MS = 60_000


@dataclass(frozen=True)
class HBaseIndex:
    """A `KeyIndex`; each thread of each process has a connection of its own."""

    host: str
    port: int
    table: str
    get_batch: int
    put_batch: int
    most_a_second: int | None = None

    def look_up(self, keys: pa.Array) -> pa.Table:
        columns: dict[str, list[str | None]] = {name: [] for name in PLACES.names}
        for some in self._batches(keys, self.get_batch):
            rows = dict(self._ask("look keys up", partial(_rows, keys=some)))
            for row in (rows.get(key, {}) for key in some):
                for name, column in _COLUMNS.items():
                    value = row.get(column)
                    columns[name].append(None if value is None else value.decode())
        return pa.table(columns, schema=PLACES)

    def put(self, keys: pa.Array, places: pa.Table) -> None:
        columns: dict[bytes, list[Any]] = {column: places.column(name).to_pylist() for name, column in _COLUMNS.items()}
        start = 0
        for some in self._batches(keys, self.put_batch):
            rows = [
                {column: values[n].encode() for column, values in columns.items()}
                for n in range(start, start + len(some))
            ]
            self._ask("put entries", partial(_put, rows=list(zip(some, rows, strict=True))))
            start += len(some)

    def delete(self, keys: pa.Array) -> None:
        for some in self._batches(keys, self.put_batch):
            self._ask("delete entries", partial(_delete, keys=some))

    def _batches(self, keys: pa.Array, size: int) -> Iterator[list[bytes]]:
        """The keys as bytes, so many at a time, and no more in a second than are allowed."""
        most = self.most_a_second
        size = size if most is None else min(size, max(1, most // 10))
        due_s = time.monotonic()
        for start in range(0, len(keys), size):
            time.sleep(max(0.0, due_s - time.monotonic()))
            some: list[Any] = keys.slice(start, size).cast(pa.binary()).to_pylist()
            due_s = max(due_s, time.monotonic()) + (len(some) / most if most else 0.0)
            yield some

    def _ask(self, what: str, act: Callable[[Any], T]) -> T:
        """Run it on the table, after a failure once more on a new connection: servers close idle ones."""
        address = (self.host, self.port)
        for fresh in (False, True):
            try:
                connection = _connection(address, fresh=fresh)
                try:
                    return act(connection.table(self.table))
                except _failures() as error:
                    if not fresh or not self._make_table(connection, error):
                        raise
                    return act(connection.table(self.table))
            except _failures() as error:
                _connections().pop(address, None)
                if fresh:
                    raise KeyIndexError(
                        f"HBase could not {what} in its table {self.table!r}: the Thrift server at {self.host}:{self.port} says "
                        f"{_text_of(error)}. Nothing of the write is visible; run it again when HBase answers "
                        "(hoodie.python.index.hbase.thrift has the address)"
                    ) from error
        raise AssertionError("unreachable")

    def _make_table(self, connection: Any, error: Exception) -> bool:
        """Make the table if it is missing, unless another task was faster; False where the error has another cause."""
        if self.table.encode() in connection.tables():
            return "TableNotFound" in _text_of(error)
        with suppress(*_failures()):
            connection.create_table(self.table, {_FAMILY.decode(): {"max_versions": 1}})
        return True


def _rows(table: Any, keys: Sequence[bytes]) -> list[tuple[bytes, dict[bytes, bytes]]]:
    result: list[tuple[bytes, dict[bytes, bytes]]] = table.rows(keys, columns=[_FAMILY])
    return result


def _put(table: Any, rows: Sequence[tuple[bytes, dict[bytes, bytes]]]) -> None:
    with table.batch() as batch:
        for key, row in rows:
            batch.put(key, row)


def _delete(table: Any, keys: Sequence[bytes]) -> None:
    with table.batch() as batch:
        for key in keys:
            batch.delete(
                key, columns=list(_COLUMNS.values())
            )  # of the family alone HBase 2 deletes a column without a name


def _text_of(error: Exception) -> str:
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    lines = (message.decode(errors="replace") if isinstance(message, bytes) else str(message)).splitlines()
    return repr(lines[0][:200] if lines else type(error).__name__)


_local = threading.local()


def _connections() -> dict[tuple[str, int], Any]:
    """Those of this thread; a forked child has none."""
    if getattr(_local, "pid", None) != os.getpid():
        _local.pid, _local.connections = os.getpid(), {}
    result: dict[tuple[str, int], Any] = _local.connections
    return result


def _connection(address: tuple[str, int], *, fresh: bool) -> Any:
    try:
        import happybase  # noqa: PLC0415 - an optional extra
    except ImportError as exc:
        raise OptionError("the index HBASE needs the package happybase: pip install 'hoodie[hbase]'") from exc
    connections = _connections()
    if fresh or address not in connections:
        connections[address] = happybase.Connection(*address, timeout=_TIMEOUT_MS)
    return connections[address]


def _failures() -> tuple[type[Exception], ...]:
    """What is raised where HBase does not answer, or not as it should."""
    from thriftpy2.thrift import TException  # noqa: PLC0415 - an optional extra

    return (OSError, EOFError, TException)
