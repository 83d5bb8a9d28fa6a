"""What the Glue catalog of moto has of a table, as `metastore_tables.Catalog` says it of a Hive metastore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from hoodie.aws.client import Address, Client, ServiceError
from hoodie.errors import HiveSyncError
from hoodie.hive.catalog import Registration
from hoodie.hive.glue import Glue
from hoodie.options.aws import AwsOptions, GlueOptions
from hoodie.options.values import CatalogKind
from tests.metastore_tables import Registered

ASKING = frozenset({"get_database", "get_table", "get_partitions", "batch_get_partition"})
AS_HIVE = {"batch_create_partition": "add_partitions_req", "update_table": "alter_table_with_environment_context"}
"""Calls by the names of a Hive metastore, which tests tell of."""
OPTIONS = GlueOptions(region="us-east-1", aws=AwsOptions(access_key="tester", secret_key="a secret nobody sees"))


class GlueTables:
    """One database of the catalog. Everything within `moto.mock_aws()`."""

    options: Mapping[str, Any] = {"catalogs": (CatalogKind.GLUE,), "glue": OPTIONS}
    mode = "glue"
    asking = ASKING

    def __init__(self, database: str) -> None:
        self.database = database
        self.calls: list[str] = []
        self.before: Callable[[str, int], None] = lambda call, number: None
        self.after: Callable[[str, int], None] = lambda call, number: None

    @property
    def way(self) -> dict[str, Any]:
        """Of `sync`."""
        return {"make_client": self._client}

    def _client(self, address: Address, options: AwsOptions, needed_by: str) -> Client:
        return _Watched(address, options, needed_by, self)

    def told(self) -> list[str]:
        return [AS_HIVE.get(call, call) for call in self.calls if call not in ASKING]

    def forget(self) -> None:
        self.calls.clear()

    def change(self, name: str, change: Callable[[Any], None]) -> None:
        """Change a registration by hand, as one of a Hive metastore."""
        glue, table = self._asked(name)
        columns = [SimpleNamespace(**column._asdict()) for column in table.columns]
        as_hive = SimpleNamespace(parameters=dict(table.properties), sd=SimpleNamespace(cols=columns))
        change(as_hive)
        source = {
            **table.source,
            "Parameters": as_hive.parameters,
            "StorageDescriptor": {
                **table.source["StorageDescriptor"],
                "Columns": [{"Name": c.name, "Type": c.type, "Comment": c.comment} for c in columns],
            },
        }
        wanted = {key: source[key] for key in ("Name", "StorageDescriptor", "PartitionKeys", "Parameters", "TableType")}
        glue._client.ask("update_table", DatabaseName=self.database, TableInput=wanted)

    def table(self, name: str) -> Registered:
        glue, table = self._asked(name)
        parts = glue._parts(table, None)
        return Registered(
            columns={column.name: column.type for column in table.columns},
            partition_columns={column.name: column.type for column in table.partition_columns},
            parameters=dict(table.properties),
            serde=dict(table.serde_properties),
            input_format=(table.input_format or "").rpartition(".")[2],
            comments={column.name: column.comment for column in table.columns if column.comment},
            partitions={
                tuple(part["Values"]): part["StorageDescriptor"]["Location"].removeprefix(f"{table.location}/")
                for part in parts
            },
            partition_columns_of_files={
                tuple(part["Values"]): {c["Name"]: c["Type"] for c in part["StorageDescriptor"]["Columns"]}
                for part in parts
            },
        )

    def has(self, name: str) -> bool:
        return self._glue().table(self.database, name) is not None

    def drop_partition(self, name: str, *values: str) -> None:
        glue, table = self._asked(name)
        glue.drop_partitions(table, [values])

    def add_partition(self, name: str, place: str, *values: str) -> None:
        glue, table = self._asked(name)
        glue.add_partitions(table, [(values, place)], 1)

    def location(self, name: str) -> str:
        return self._asked(name)[1].location or ""

    def _glue(self) -> Glue:
        return Glue(OPTIONS, timeout_s=60)

    def _asked(self, name: str) -> tuple[Glue, Registration]:
        glue = self._glue()
        table = glue.table(self.database, name)
        if table is None:
            raise HiveSyncError(f"{name} is not there")
        return glue, table


class _Watched(Client):
    """A client whose calls the catalog hears of, and lets fail."""

    def __init__(self, address: Address, options: AwsOptions, needed_by: str, tables: GlueTables) -> None:
        super().__init__(address, options, needed_by)
        self._tables = tables

    def ask(self, call: str, **given: Any) -> dict[str, Any]:
        tables = self._tables
        tables.calls.append(call)
        number = len(tables.calls)
        try:
            tables.before(AS_HIVE.get(call, call), number)
            try:
                return super().ask(call, **given)
            finally:
                tables.after(AS_HIVE.get(call, call), number)
        except ServiceError:
            raise
        except OSError as exc:
            raise ServiceError(type(exc).__name__, str(exc)) from exc
