"""HBase's Thrift server as far as the index goes: its tables are dicts of this process, and clients reach them over a socket.

What is tested with it in `make test` is tested with a real one in `make integration`.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from tests.servers.ports import free_port

Row = dict[bytes, bytes]


class FakeHBase:
    """The handler of requests."""

    def __init__(self) -> None:
        self.tables: dict[bytes, dict[bytes, Row]] = {}
        self.requests: list[tuple[str, int]] = []
        """Method and number of keys."""
        self.fails = 0
        """So many requests from now on are answered with an error."""
        self.before_put: Any = None
        self.when_missing: Any = None
        self.before_create: Any = None
        self.port = free_port()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def table(self, name: str) -> dict[bytes, Row]:
        return self.tables.setdefault(name.encode(), {})

    def _begin(self, method: str, count: int) -> Any:
        from Hbase_thrift import IOError as HBaseError  # noqa: PLC0415 - there once happybase is imported

        self.requests.append((method, count))
        if self.fails:
            self.fails -= 1
            raise HBaseError(message=b"RegionTooBusyException: for tests")
        return HBaseError

    def getTableNames(self) -> list[bytes]:
        return list(self.tables)

    def createTable(self, tableName: bytes, columnFamilies: Any) -> None:
        from Hbase_thrift import AlreadyExists  # noqa: PLC0415

        assert [family.name for family in columnFamilies] == [b"_s:"]
        if self.before_create is not None:
            self.before_create()
        if tableName in self.tables:
            raise AlreadyExists(message=b"table name already in use")
        self.tables[tableName] = {}

    def getRowsWithColumns(self, tableName: bytes, rows: Any, columns: Any, attributes: Any) -> Any:
        from Hbase_thrift import TCell, TRowResult  # noqa: PLC0415

        error = self._begin("get", len(rows))
        if tableName not in self.tables:
            if self.when_missing is not None:
                self.when_missing()
            raise error(message=b"TableNotFoundException")
        table = self.tables[tableName]
        return [
            TRowResult(row=key, columns={name: TCell(value=value, timestamp=1) for name, value in table[key].items()})
            for key in rows
            if key in table
        ]

    def mutateRows(self, tableName: bytes, rowBatches: Any, attributes: Any) -> None:
        deletes = any(each.isDelete for batch in rowBatches for each in batch.mutations)
        if self.before_put is not None:
            self.before_put()
        error = self._begin("delete" if deletes else "put", len(rowBatches))
        if tableName not in self.tables:
            raise error(message=b"TableNotFoundException")
        table = self.tables[tableName]
        for batch in rowBatches:
            for each in batch.mutations:
                row = table.setdefault(batch.row, {})
                if each.isDelete:
                    row.pop(each.column, None)
                else:
                    row[each.column] = each.value
                if not row:
                    del table[batch.row]


@contextmanager
def running(hbase: FakeHBase) -> Iterator[FakeHBase]:
    """While it answers."""
    import happybase  # noqa: F401, PLC0415 - makes the interface known
    from Hbase_thrift import Hbase  # noqa: PLC0415
    from thriftpy2.protocol import TBinaryProtocolFactory  # noqa: PLC0415
    from thriftpy2.server import TThreadedServer  # noqa: PLC0415
    from thriftpy2.thrift import TProcessor  # noqa: PLC0415
    from thriftpy2.transport import TBufferedTransportFactory, TServerSocket  # noqa: PLC0415

    socket = TServerSocket(host="127.0.0.1", port=hbase.port, client_timeout=None)
    socket.listen()
    # The server would open it anew, and be nowhere for a moment.
    socket.listen = lambda: None
    protocols = TBinaryProtocolFactory(decode_response=False)
    server = TThreadedServer(
        TProcessor(Hbase, hbase),
        socket,
        iprot_factory=protocols,
        itrans_factory=TBufferedTransportFactory(),
        daemon=True,
    )
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield hbase
    finally:
        server.closed = True
        server.close()


@cache
def shared() -> FakeHBase:
    """One for all tests of this process; each has a table of its own."""
    hbase = _ENDS.enter_context(running(FakeHBase()))
    atexit.register(_ENDS.close)
    return hbase


_ENDS = ExitStack()
