"""What a metastore has of a table, and connections to it that fail where a test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from hoodie.metastore.interface import interface

ASKING = frozenset({"get_database", "get_table_req", "get_table", "get_partitions", "get_partitions_by_names"})


class Killed(BaseException):
    """The process died here. No `Exception`: a dead process runs no clean-up."""


class Registered(NamedTuple):
    """One table as it is registered."""

    columns: dict[str, str]
    partition_columns: dict[str, str]
    parameters: dict[str, str]
    serde: dict[str, str]
    input_format: str
    comments: dict[str, str]
    partitions: dict[tuple[str, ...], str]
    """Values -> place, from the table's folder on."""
    partition_columns_of_files: dict[tuple[str, ...], dict[str, str]]


class Catalog:
    """One database of a metastore."""

    options: Mapping[str, Any] = {}
    mode = "hms"
    asking = ASKING

    def __init__(self, database: str, connect: Callable[..., Any]) -> None:
        self.database = database
        self._connect = connect
        self.calls: list[str] = []
        """Of all registrations, in their order."""
        self.before: Callable[[str, int], None] = lambda call, number: None
        """Run before each call, with its name and its number from 1."""
        self.after: Callable[[str, int], None] = lambda call, number: None

    def connect(self, servers: object, *, patience_s: float) -> _Watched:
        """As `hoodie.metastore.interface.connected`."""
        return _Watched(self._connect(servers, patience_s=patience_s), self)

    @property
    def way(self) -> dict[str, Any]:
        """Of `sync`."""
        return {"connect": self.connect}

    def told(self) -> list[str]:
        """The calls that changed something."""
        return [call for call in self.calls if call not in ASKING]

    def forget(self) -> None:
        self.calls.clear()

    def raw(self, name: str) -> Any:
        return self._ask("get_table_req", _request(self.database, name)).table

    def change(self, name: str, change: Callable[[Any], None]) -> None:
        """Change a registration by hand."""
        table = self.raw(name)
        change(table)
        context = interface().EnvironmentContext(properties={})
        self._ask("alter_table_with_environment_context", self.database, name, table, context)

    def table(self, name: str) -> Registered:
        table = self.raw(name)
        parts = self._ask("get_partitions", self.database, name, -1)
        place = table.sd.location
        return Registered(
            columns={field.name: field.type for field in table.sd.cols},
            partition_columns={field.name: field.type for field in table.partitionKeys},
            parameters=dict(table.parameters),
            serde=dict(table.sd.serdeInfo.parameters),
            input_format=table.sd.inputFormat.rpartition(".")[2],
            comments={field.name: field.comment for field in table.sd.cols if field.comment},
            partitions={tuple(part.values): part.sd.location.removeprefix(f"{place}/") for part in parts},
            partition_columns_of_files={
                tuple(part.values): {field.name: field.type for field in part.sd.cols} for part in parts
            },
        )

    def location(self, name: str) -> str:
        return str(self.raw(name).sd.location)

    def drop_partition(self, name: str, *values: str) -> None:
        self._ask("drop_partition", self.database, name, list(values), False)

    def add_partition(self, name: str, place: str, *values: str) -> None:
        api, storage = interface(), deepcopy(self.raw(name).sd)
        storage.location = place
        part = api.Partition(values=list(values), dbName=self.database, tableName=name, sd=storage)
        request = api.AddPartitionsRequest(
            dbName=self.database, tblName=name, parts=[part], ifNotExists=True, needResult=False
        )
        self._ask("add_partitions_req", request)

    def has(self, name: str) -> bool:
        try:
            self.raw(name)
        except interface().NoSuchObjectException:
            return False
        return True

    def _ask(self, call: str, *given: Any) -> Any:
        client = self._connect(((("127.0.0.1", 1)),), patience_s=60)
        try:
            return getattr(client, call)(*given)
        finally:
            client.close()


class _Watched:
    """A client whose calls the catalog hears of, and lets fail."""

    def __init__(self, client: Any, catalog: Catalog) -> None:
        self._client, self._catalog = client, catalog

    def close(self) -> None:
        self._client.close()

    def __getattr__(self, call: str) -> Any:
        if call == "hoodie_socket":
            raise AttributeError(call)

        def ask(*given: Any) -> Any:
            catalog = self._catalog
            catalog.calls.append(call)
            number = len(catalog.calls)
            catalog.before(call, number)
            try:
                return getattr(self._client, call)(*given)
            finally:
                catalog.after(call, number)

        return ask


def _request(database: str, name: str) -> Any:
    return interface().GetTableRequest(dbName=database, tblName=name)
