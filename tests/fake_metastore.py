"""A Hive metastore in memory, as far as a registration goes.

What is tested with it in `make test` is tested with a real one in `make integration`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hoodie.metastore.interface import interface


class FakeMetastore:
    """Its `connect` gives clients."""

    def __init__(self) -> None:
        self.databases = {"default"}
        self.tables: dict[tuple[str, str], Any] = {}
        self.parts: dict[tuple[str, str], dict[tuple[str, ...], Any]] = {}

    def close(self) -> None:
        """The end of a connection."""

    # -- what a client asks ------------------------------------------------------------------------------------------

    def get_database(self, name: str) -> Any:
        api = interface()
        if name.lower() not in self.databases:
            raise api.NoSuchObjectException(message=name)
        return api.Database(name=name.lower())

    def create_database(self, database: Any) -> None:
        if database.name.lower() in self.databases:
            raise interface().AlreadyExistsException(message=database.name)
        self.databases.add(database.name.lower())

    def get_table_req(self, request: Any) -> Any:
        return interface().GetTableResult(table=deepcopy(self._table(request.dbName, request.tblName)))

    def create_table(self, table: Any) -> None:
        api, table = interface(), _stored(table)
        key = (table.dbName, table.tableName)
        if key[0] not in self.databases:
            raise api.InvalidObjectException(message=key[0])
        if key in self.tables:
            raise api.AlreadyExistsException(message=key[1])
        self.tables[key], self.parts[key] = table, {}

    def drop_table(self, database: str, name: str, delete_data: bool) -> None:
        assert delete_data is False
        self._table(database, name)
        del self.tables[database.lower(), name.lower()]
        del self.parts[database.lower(), name.lower()]

    def alter_table_with_environment_context(self, database: str, name: str, table: Any, context: Any) -> None:
        self._table(database, name)
        key = (database.lower(), name.lower())
        self.tables[key] = table = _stored(table)
        if context.properties.get("CASCADE") == "true":
            for part in self.parts[key].values():
                part.sd.cols = deepcopy(table.sd.cols)

    def get_partitions(self, database: str, name: str, most: int) -> list[Any]:
        assert most == -1
        self._table(database, name)
        return deepcopy(list(self.parts[database.lower(), name.lower()].values()))

    def get_partitions_by_names(self, database: str, name: str, names: list[str]) -> list[Any]:
        table = self._table(database, name)
        fields = [field.name for field in table.partitionKeys]
        found = self.parts[database.lower(), name.lower()]
        named = {"/".join(f"{f}={v}" for f, v in zip(fields, values, strict=True)): values for values in found}
        return deepcopy([found[named[each]] for each in names if each in named])

    def add_partitions_req(self, request: Any) -> Any:
        assert request.ifNotExists is True
        table = self._table(request.dbName, request.tblName)
        for part in request.parts:
            assert len(part.values) == len(table.partitionKeys)
            part = _stored(part)
            self.parts[table.dbName, table.tableName].setdefault(tuple(part.values), part)
        return interface().AddPartitionsResult()

    def alter_partitions(self, database: str, name: str, parts: list[Any]) -> None:
        self._table(database, name)
        for part in map(_stored, parts):
            assert tuple(part.values) in self.parts[database.lower(), name.lower()]
            self.parts[database.lower(), name.lower()][tuple(part.values)] = part

    def drop_partition(self, database: str, name: str, values: list[str], delete_data: bool) -> bool:
        assert delete_data is False
        self._table(database, name)
        if self.parts[database.lower(), name.lower()].pop(tuple(values), None) is None:
            raise interface().NoSuchObjectException(message="partition")
        return True

    def _table(self, database: str, name: str) -> Any:
        found = self.tables.get((database.lower(), name.lower()))
        if found is None:
            raise interface().NoSuchObjectException(message=f"{database}.{name}")
        return found


def _stored(given: Any) -> Any:
    """As the metastore keeps it: names in small letters, places with their scheme."""
    found = deepcopy(given)
    if hasattr(found, "partitionKeys"):
        found.dbName, found.tableName = found.dbName.lower(), found.tableName.lower()
        found.parameters = {**(found.parameters or {}), "transient_lastDdlTime": "1"}
        for field in found.partitionKeys:
            field.name = field.name.lower()
    for field in found.sd.cols:
        field.name = field.name.lower()
    if found.sd.location.startswith("/"):
        found.sd.location = f"file:{found.sd.location}"
    return found
