"""The Glue catalog of AWS, as Apache Hudi's `AwsGlueCatalogSyncTool` registers tables there. The seam: `catalog.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from hoodie.aws.client import Address, Client, ServiceError
from hoodie.errors import HiveSyncError
from hoodie.hive.catalog import CURE, EXTERNAL, MADE_BY, Column, Places, Registration, Values, batches
from hoodie.options.aws import AwsOptions, GlueOptions

MakeClient = Callable[[Address, AwsOptions, str], Client]
_MOST_AT_ONCE, _MOST_DROPPED, _MOST_ASKED = 100, 25, 1000
"""Partitions of one request, by Glue's limits."""
_LISTS_BY_METADATA = "hudi.metadata-listing-enabled"
"""Athena's parameter: whether files are listed by the metadata table."""
_INPUT = (
    *("Name", "Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention", "StorageDescriptor"),
    *("PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TableType", "Parameters", "TargetTable"),
)
"""Of what Glue gives of a table, what it takes back."""
_PARTITION_INPUT = ("Values", "StorageDescriptor", "Parameters", "LastAccessTime", "LastAnalyzedTime")
_NOT_THERE, _THERE_ALREADY = "EntityNotFoundException", "AlreadyExistsException"


class Glue:
    """`Catalog` by boto3. Names are in lower case there."""

    def __init__(
        self, options: GlueOptions, *, timeout_s: float, reads_only: bool = False, make_client: MakeClient = Client
    ) -> None:
        self._options, self._timeout_s, self._reads_only = options, timeout_s, reads_only
        self._until_s = time.monotonic() + timeout_s
        address = Address("glue", options.region, options.endpoint)
        self._client = make_client(address, options.aws, "the Glue catalog of AWS")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The client is kept for the next registration."""

    def __str__(self) -> str:
        return f"the Glue catalog of {self._client}"

    @property
    def properties(self) -> Mapping[str, str]:
        return {_LISTS_BY_METADATA: str(self._options.lists_by_metadata).upper()}

    # -- asked -------------------------------------------------------------------------------------------------------

    def has_database(self, name: str) -> bool:
        return self._ask_if_there("get_database", Name=name.lower()) is not None

    def table(self, database: str, name: str) -> Registration | None:
        answer = self._ask_if_there("get_table", DatabaseName=database.lower(), Name=name.lower())
        return None if answer is None else _registration(database, answer["Table"])

    def partitions(self, table: Registration, values: Sequence[Values] | None, at_once: int) -> dict[Values, str]:
        return {tuple(each["Values"]): each["StorageDescriptor"]["Location"] for each in self._parts(table, values)}

    def _parts(self, table: Registration, values: Sequence[Values] | None) -> list[dict[str, Any]]:
        where, parts = _where(table), []
        if values is None:
            token = None
            while True:
                answer = self._ask("get_partitions", **where, NextToken=token)
                parts += answer["Partitions"]
                token = answer.get("NextToken")
                if not token:
                    return parts
        for some in batches(values, _MOST_ASKED):
            request = [{"Values": list(each)} for each in some]
            while request:
                answer = self._ask("batch_get_partition", **where, PartitionsToGet=request)
                parts += answer["Partitions"]
                request = answer.get("UnprocessedKeys") or []
        return parts

    # -- told --------------------------------------------------------------------------------------------------------

    def make_database(self, name: str) -> None:
        self._tell(
            "create_database", DatabaseInput={"Name": name.lower(), "Description": MADE_BY}, passing=_THERE_ALREADY
        )

    def make_table(self, table: Registration) -> bool:
        return self._tell(
            "create_table", DatabaseName=table.database.lower(), TableInput=_input(table), passing=_THERE_ALREADY
        )

    def drop_registration(self, database: str, name: str) -> None:
        self._tell("delete_table", DatabaseName=database.lower(), Name=name.lower(), passing=_NOT_THERE)

    def change_table(self, table: Registration, *, cascade: bool = False) -> None:
        if cascade:  # first: who dies in between leaves a table whose columns still have to change
            self._update([_with_columns(part, table) for part in self._parts(table, None)], table)
        self._tell(
            "update_table",
            DatabaseName=table.database.lower(),
            TableInput=_input(table),
            SkipArchive=self._options.skips_archive,
        )

    def add_partitions(self, table: Registration, places: Places, at_once: int) -> None:
        for some in batches(places, min(at_once, _MOST_AT_ONCE)):
            parts = [_part(table, values, place) for values, place in some]
            self._tell_of_parts("batch_create_partition", table, _THERE_ALREADY, PartitionInputList=parts)

    def update_partitions(self, table: Registration, places: Places, at_once: int) -> None:
        self._update([_part(table, values, place) for values, place in places], table)

    def _update(self, parts: Sequence[dict[str, Any]], table: Registration) -> None:
        for some in batches(parts, _MOST_AT_ONCE):
            entries = [{"PartitionValueList": part["Values"], "PartitionInput": part} for part in some]
            self._tell_of_parts("batch_update_partition", table, _NOT_THERE, Entries=entries)

    def drop_partitions(self, table: Registration, values: Sequence[Values]) -> None:
        for some in batches(values, _MOST_DROPPED):
            dropped_values = [{"Values": list(each)} for each in some]
            self._tell_of_parts("batch_delete_partition", table, _NOT_THERE, PartitionsToDelete=dropped_values)

    # -- the way there -----------------------------------------------------------------------------------------------

    def _tell_of_parts(self, call: str, table: Registration, passing: str, **arguments: Any) -> None:
        """Send one request for many partitions; the answer has an error for each partition that failed."""
        if self._reads_only:
            return
        for error in self._ask(call, **_where(table), **arguments).get("Errors") or ():
            detail = error.get("ErrorDetail", {})
            if detail.get("ErrorCode") != passing:
                raise HiveSyncError(
                    f"{self} failed at {call} for partition {error.get('PartitionValues') or error.get('PartitionValueList')}: "
                    f"{detail.get('ErrorCode')}: {detail.get('ErrorMessage')}; {CURE}"
                )

    def _tell(self, call: str, *, passing: str = "", **arguments: Any) -> bool:
        """Send a change; False where Glue answers that it is made already."""
        if self._reads_only:
            return True
        try:
            self._answer(call, arguments)
        except ServiceError as exc:
            if exc.code == passing:
                return False
            raise self._error(call, exc) from exc
        return True

    def _ask_if_there(self, call: str, **arguments: Any) -> dict[str, Any] | None:
        try:
            return self._answer(call, arguments)
        except ServiceError as exc:
            if exc.code == _NOT_THERE:
                return None
            raise self._error(call, exc) from exc

    def _ask(self, call: str, **arguments: Any) -> dict[str, Any]:
        try:
            return self._answer(call, arguments)
        except ServiceError as exc:
            raise self._error(call, exc) from exc

    def _answer(self, call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if time.monotonic() >= self._until_s:
            raise HiveSyncError(f"{self} took more than {self._timeout_s:g} s; {CURE}")
        return self._client.ask(call, CatalogId=self._options.catalog_id, **arguments)

    def _error(self, call: str, error: ServiceError) -> HiveSyncError:
        return HiveSyncError(f"{self} failed at {call}: {error}; {CURE}")


# -- structures --------------------------------------------------------------------------------------------------------


def _where(table: Registration) -> dict[str, str]:
    return {"DatabaseName": table.database.lower(), "TableName": table.name.lower()}


def _registration(database: str, table: Mapping[str, Any]) -> Registration:
    storage = table.get("StorageDescriptor") or {}
    serde = storage.get("SerdeInfo") or {}
    return Registration(
        database,
        table["Name"],
        _columns(storage.get("Columns")),
        _columns(table.get("PartitionKeys")),
        storage.get("Location"),
        storage.get("InputFormat"),
        storage.get("OutputFormat"),
        serde.get("SerializationLibrary"),
        dict(serde.get("Parameters") or {}),
        dict(table.get("Parameters") or {}),
        table.get("Owner") or "",
        table,
    )


def _columns(columns: Sequence[Mapping[str, str]] | None) -> tuple[Column, ...]:
    return tuple(Column(each["Name"], each.get("Type") or "", each.get("Comment") or "") for each in columns or ())


def _as_glue(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [{"Name": c.name.lower(), "Type": c.type, **({"Comment": c.comment} if c.comment else {})} for c in columns]


def _input(table: Registration) -> dict[str, Any]:
    source = table.source or {"TableType": EXTERNAL, "Retention": 0, "Owner": table.owner}
    return {
        **{name: source[name] for name in _INPUT if name in source},
        "Name": table.name.lower(),
        "StorageDescriptor": _storage(table, source.get("StorageDescriptor") or {}),
        "PartitionKeys": _as_glue(table.partition_columns),
        "Parameters": dict(table.properties),
    }


def _storage(table: Registration, descriptor: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **descriptor,
        "Columns": _as_glue(table.columns),
        "Location": _as_s3(table.location),
        "InputFormat": table.input_format,
        "OutputFormat": table.output_format,
        "SerdeInfo": {
            **(descriptor.get("SerdeInfo") or {}),
            "SerializationLibrary": table.serde,
            "Parameters": dict(table.serde_properties),
        },
    }


def _as_s3(location: str | None) -> str | None:
    """Athena and Redshift know s3 only."""
    return location if location is None or not location.startswith("s3a://") else f"s3://{location[6:]}"


def _part(table: Registration, values: Values, place: str) -> dict[str, Any]:
    return {"Values": list(values), "StorageDescriptor": _storage(table.at(place), {})}


def _with_columns(part: Mapping[str, Any], table: Registration) -> dict[str, Any]:
    storage = {**(part.get("StorageDescriptor") or {}), "Columns": _as_glue(table.columns)}
    return {**{name: part[name] for name in _PARTITION_INPUT if name in part}, "StorageDescriptor": storage}
