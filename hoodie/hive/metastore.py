"""A Hive metastore as a catalog, by its own interface. The seam: `catalog.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from types import TracebackType
from typing import Any, Self

from hoodie.errors import HiveSyncError
from hoodie.hive.catalog import CURE, EXTERNAL, MADE_BY, Column, Places, Registration, Values, batches
from hoodie.hive.partitions import partition_name
from hoodie.metastore.interface import connected, failures, interface, shown, wait_for_answers
from hoodie.options.hive import Servers

Connect = Callable[..., Any]
_ALL = -1
_CASCADE = {"CASCADE": "true"}
"""Registered partitions get the new columns, too."""
_KEEP_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
"""Otherwise the metastore lists the table's folder."""
_LONGEST_ERROR = 300


class Metastore:
    """`Catalog` by a connection that is made when it is asked first."""

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

    @property
    def properties(self) -> Mapping[str, str]:
        return {}

    # -- asked -------------------------------------------------------------------------------------------------------

    def has_database(self, name: str) -> bool:
        return self._ask_if_there("get_database", name) is not None

    def table(self, database: str, name: str) -> Registration | None:
        try:
            answer = self._ask_if_there("get_table_req", interface().GetTableRequest(dbName=database, tblName=name))
            table = None if answer is None else answer.table
        except _UnknownCallError:  # before Hive 2.3
            table = self._ask_if_there("get_table", database, name)
        return None if table is None else _registration(table)

    def partitions(self, table: Registration, values: Sequence[Values] | None, at_once: int) -> dict[Values, str]:
        where = (table.database, table.name)
        if values is None:
            partitions = list(self._ask("get_partitions", *where, _ALL))
        else:
            fields = [column.name for column in table.partition_columns]
            names = [partition_name(fields, each) for each in values]
            partitions = [
                each
                for some in batches(names, at_once)
                for each in self._ask("get_partitions_by_names", *where, list(some))
            ]
        return {tuple(each.values): each.sd.location for each in partitions}

    # -- told --------------------------------------------------------------------------------------------------------

    def make_database(self, name: str) -> None:
        with suppress(_ThereAlreadyError):
            self._tell("create_database", interface().Database(name=name, description=MADE_BY))

    def make_table(self, table: Registration) -> bool:
        try:
            self._tell("create_table", _table(table))
        except _ThereAlreadyError:
            return False
        return True

    def drop_registration(self, database: str, name: str) -> None:
        with suppress(_NotThereError):
            self._tell("drop_table", database, name, False)

    def change_table(self, table: Registration, *, cascade: bool = False) -> None:
        how = {**_KEEP_STATISTICS, **(_CASCADE if cascade else {})}
        context = interface().EnvironmentContext(properties=how)
        self._tell("alter_table_with_environment_context", table.database, table.name, _table(table), context)

    def add_partitions(self, table: Registration, places: Places, at_once: int) -> None:
        for some in batches(places, at_once):
            request = interface().AddPartitionsRequest(
                dbName=table.database,
                tblName=table.name,
                parts=[_partition(table, values, place) for values, place in some],
                ifNotExists=True,
                needResult=False,
            )
            self._tell("add_partitions_req", request)

    def update_partitions(self, table: Registration, places: Places, at_once: int) -> None:
        for some in batches(places, at_once):
            parts = [_partition(table, values, place) for values, place in some]
            self._tell("alter_partitions", table.database, table.name, parts)

    def drop_partitions(self, table: Registration, values: Sequence[Values]) -> None:
        for each in values:
            with suppress(_NotThereError):
                self._tell("drop_partition", table.database, table.name, list(each), False)

    # -- the way there -----------------------------------------------------------------------------------------------

    def _ask_if_there(self, call: str, *arguments: Any) -> Any:
        try:
            return self._ask(call, *arguments)
        except _NotThereError:
            return None

    def _tell(self, call: str, *arguments: Any) -> None:
        if not self._reads_only:
            self._ask(call, *arguments)

    def _ask(self, call: str, *arguments: Any) -> Any:
        api, left_s = interface(), self._until_s - time.monotonic()
        if left_s <= 0:
            raise HiveSyncError(f"{self} took more than {self._timeout_s:g} s; {CURE}")
        try:
            if self._client is None:
                self._client = self._connect(self._servers, patience_s=left_s)
            wait_for_answers(self._client, left_s)
            return getattr(self._client, call)(*arguments)
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
        return f"{self} failed at {call}: {type(error).__name__}{f': {message}' if message else ''}; {CURE}"


class _NotThereError(HiveSyncError):
    """A database, table or partition that is not there."""


class _ThereAlreadyError(HiveSyncError):
    """Another program made it."""


class _UnknownCallError(HiveSyncError):
    """The metastore is of a release that has no such call."""


def _is_unknown(error: Exception) -> bool:
    return type(error).__name__ == "TApplicationException" and getattr(error, "type", None) == 1


# -- structures --------------------------------------------------------------------------------------------------------


def _registration(table: Any) -> Registration:
    storage = table.sd
    serde = storage.serdeInfo if storage is not None else None
    return Registration(
        table.dbName,
        table.tableName,
        _columns(storage.cols if storage is not None else None),
        _columns(table.partitionKeys),
        storage.location if storage is not None else None,
        storage.inputFormat if storage is not None else None,
        storage.outputFormat if storage is not None else None,
        serde.serializationLib if serde is not None else None,
        dict((serde.parameters if serde is not None else None) or {}),
        dict(table.parameters or {}),
        table.owner or "",
        table,
    )


def _columns(fields: Sequence[Any] | None) -> tuple[Column, ...]:
    return tuple(Column(each.name, each.type, each.comment or "") for each in fields or ())


def _table(registration: Registration) -> Any:
    """As the metastore is told of it."""
    if registration.source is None:
        return interface().Table(
            tableName=registration.name,
            dbName=registration.database,
            owner=registration.owner,
            createTime=int(time.time()),
            lastAccessTime=0,
            retention=0,
            sd=_storage(registration),
            partitionKeys=_fields(registration.partition_columns),
            parameters=dict(registration.properties),
            tableType=EXTERNAL,
        )
    table = deepcopy(registration.source)
    if _columns(table.sd.cols) != registration.columns:
        table.sd.cols = _fields(registration.columns)
    table.sd.location = registration.location
    table.sd.inputFormat, table.sd.outputFormat = registration.input_format, registration.output_format
    table.sd.serdeInfo.serializationLib = registration.serde
    table.sd.serdeInfo.parameters = dict(registration.serde_properties)
    table.parameters = dict(registration.properties)
    return table


def _storage(table: Registration) -> Any:
    api = interface()
    return api.StorageDescriptor(
        cols=_fields(table.columns),
        location=table.location,
        inputFormat=table.input_format,
        outputFormat=table.output_format,
        compressed=False,
        numBuckets=0,
        serdeInfo=api.SerDeInfo(serializationLib=table.serde, parameters=dict(table.serde_properties)),
    )


def _fields(columns: Sequence[Column]) -> list[Any]:
    return [interface().FieldSchema(name=c.name, type=c.type, comment=c.comment) for c in columns]


def _partition(table: Registration, values: Values, place: str) -> Any:
    return interface().Partition(
        values=list(values),
        dbName=table.database,
        tableName=table.name,
        createTime=0,
        lastAccessTime=0,
        sd=_storage(table.at(place)),
    )
