"""What a registration asks of a metastore and tells it, with a bound on the time of all of it.

A client is used for one registration. What goes wrong is a `HiveSyncError`, and never has a table's parameters in its text: they
may hold secrets of the user's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from hoodie.errors import HiveSyncError
from hoodie.hive.views import Description
from hoodie.metastore.interface import connected, failures, interface, shown, wait_for_answers
from hoodie.options.hive import Servers

Connect = Callable[..., Any]
_ALL = -1
_MADE_BY = "automatically created by hoodie"
_CASCADE = {"CASCADE": "true"}
"""Registered partitions get the new columns, too."""
_KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
"""Otherwise the metastore lists the table's folder."""
_LONGEST_ERROR = 300


class Metastore:
    """A connection to a metastore, made when it is asked first. With `reads_only` nothing is told to it."""

    def __init__(
        self, servers: Servers, *, timeout_s: float, reads_only: bool = False, connect: Connect = connected
    ) -> None:
        self._servers = servers
        self._timeout_s = timeout_s
        self._until_s = time.monotonic() + timeout_s
        self._reads_only = reads_only
        self._connect = connect
        self._client: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close()

    def __str__(self) -> str:
        return f"the Hive metastore at {shown(self._servers)}"

    # -- asked -------------------------------------------------------------------------------------------------------

    def has_database(self, name: str) -> bool:
        return self._found("get_database", name) is not None

    def table(self, database: str, name: str) -> Any:
        """The table as the metastore has it, None where it has none."""
        try:
            found = self._found("get_table_req", interface().GetTableRequest(dbName=database, tblName=name))
        except _UnknownCallError:  # before Hive 2.3
            return self._found("get_table", database, name)
        return None if found is None else found.table

    def partitions(
        self, database: str, table: str, names: Sequence[str] | None, at_once: int
    ) -> dict[tuple[str, ...], str]:
        """Values -> place of the partitions that are registered: all, or those of these names."""
        if names is None:
            found = list(self._ask("get_partitions", database, table, _ALL))
        else:
            found = [
                each
                for some in batches(names, at_once)
                for each in self._ask("get_partitions_by_names", database, table, list(some))
            ]
        return {tuple(each.values): each.sd.location for each in found}

    # -- told --------------------------------------------------------------------------------------------------------

    def make_database(self, name: str) -> None:
        with suppress(_ThereAlreadyError):
            self._tell("create_database", interface().Database(name=name, description=_MADE_BY))

    def make_table(self, table: Any) -> bool:
        """False where another program was faster."""
        try:
            self._tell("create_table", table)
        except _ThereAlreadyError:
            return False
        return True

    def drop_registration(self, database: str, name: str) -> None:
        """The files stay."""
        with suppress(_NotThereError):
            self._tell("drop_table", database, name, False)

    def change_table(self, table: Any, *, cascade: bool = False) -> None:
        how = {**_KEEP_STATISTICS, **(_CASCADE if cascade else {})}
        context = interface().EnvironmentContext(properties=how)
        self._tell("alter_table_with_environment_context", table.dbName, table.tableName, table, context)

    def add_partitions(self, table: Any, places: Sequence[tuple[tuple[str, ...], str]], at_once: int) -> None:
        """Those that are there already stay as they are."""
        for some in batches(places, at_once):
            wanted = interface().AddPartitionsRequest(
                dbName=table.dbName,
                tblName=table.tableName,
                parts=[_partition(table, values, place) for values, place in some],
                ifNotExists=True,
                needResult=False,
            )
            self._tell("add_partitions_req", wanted)

    def update_partitions(self, table: Any, places: Sequence[tuple[tuple[str, ...], str]], at_once: int) -> None:
        for some in batches(places, at_once):
            parts = [_partition(table, values, place) for values, place in some]
            self._tell("alter_partitions", table.dbName, table.tableName, parts)

    def drop_partition(self, table: Any, values: Sequence[str]) -> None:
        """The files stay."""
        with suppress(_NotThereError):
            self._tell("drop_partition", table.dbName, table.tableName, list(values), False)

    # -- the way there -----------------------------------------------------------------------------------------------

    def _found(self, call: str, *given: Any) -> Any:
        try:
            return self._ask(call, *given)
        except _NotThereError:
            return None

    def _tell(self, call: str, *given: Any) -> None:
        if not self._reads_only:
            self._ask(call, *given)

    def _ask(self, call: str, *given: Any) -> Any:
        api, left_s = interface(), self._until_s - time.monotonic()
        if left_s <= 0:
            raise HiveSyncError(f"{self} took more than {self._timeout_s:g} s; {_CURE}")
        try:
            if self._client is None:
                self._client = self._connect(self._servers, patience_s=left_s)
            wait_for_answers(self._client, left_s)
            return getattr(self._client, call)(*given)
        except api.NoSuchObjectException as exc:
            raise _NotThereError(self._message(call, exc)) from exc
        except api.AlreadyExistsException as exc:
            raise _ThereAlreadyError(self._message(call, exc)) from exc
        except failures() as exc:
            if _is_unknown(exc):
                raise _UnknownCallError(self._message(call, exc)) from exc
            raise HiveSyncError(self._message(call, exc)) from exc

    def _message(self, call: str, error: Exception) -> str:
        message = str(getattr(error, "message", None) or error)[:_LONGEST_ERROR]
        return f"{self} did not do {call}: {type(error).__name__}{f': {message}' if message else ''}; {_CURE}"


_CURE = "the commit stands, and the next registration makes up for it"


class _NotThereError(HiveSyncError):
    """A database, table or partition that is not there."""


class _ThereAlreadyError(HiveSyncError):
    """Another program made it."""


class _UnknownCallError(HiveSyncError):
    """The metastore is of a release that has no such call."""


def _is_unknown(error: Exception) -> bool:
    return type(error).__name__ == "TApplicationException" and getattr(error, "type", None) == 1


def batches(items: Sequence[Any], at_once: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), at_once):
        yield items[start : start + at_once]


# -- structures --------------------------------------------------------------------------------------------------------


def new_table(described: Description, now_s: float) -> Any:
    """The table as the metastore is told to make it."""
    api = interface()
    serde = api.SerDeInfo(serializationLib=described.serde, parameters=dict(described.serde_properties))
    storage = api.StorageDescriptor(
        cols=columns_of(described),
        location=described.location,
        inputFormat=described.input_format,
        outputFormat=described.output_format,
        compressed=False,
        numBuckets=0,
        serdeInfo=serde,
    )
    return api.Table(
        tableName=described.view.name,
        dbName=described.database,
        owner=described.owner,
        createTime=int(now_s),
        lastAccessTime=0,
        retention=0,
        sd=storage,
        partitionKeys=[_column(name, kind, "") for name, kind in described.partition_columns],
        parameters=dict(described.properties),
        tableType="EXTERNAL_TABLE",
    )


def columns_of(described: Description, comments: dict[str, str] | None = None) -> list[Any]:
    """The columns. `comments`: those that are registered, by names in lower case; they stay where nothing is said instead."""
    kept = comments or {}
    return [_column(c.name, c.hive_type, c.comment or kept.get(c.name.lower(), "")) for c in described.columns]


def _column(name: str, kind: str, comment: str) -> Any:
    return interface().FieldSchema(name=name, type=kind, comment=comment)


def _partition(table: Any, values: Sequence[str], place: str) -> Any:
    api, like = interface(), table.sd
    storage = api.StorageDescriptor(
        cols=like.cols,
        location=place,
        inputFormat=like.inputFormat,
        outputFormat=like.outputFormat,
        compressed=False,
        numBuckets=0,
        serdeInfo=like.serdeInfo,
    )
    return api.Partition(
        values=list(values), dbName=table.dbName, tableName=table.tableName, createTime=0, lastAccessTime=0, sd=storage
    )
