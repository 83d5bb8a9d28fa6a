"""BigQuery: an external table over a manifest that names the newest base files, as Apache Hudi's `BigQuerySyncTool` makes it.

The manifest is replaced at each registration, and first of all. So who dies on the way leaves a table that shows the newest commit
with the columns of an older one. BigQuery reads the manifest when a query begins, and the files after it: cleans have to leave them
as long as queries run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.errors import HiveSyncError, OptionError, SchemaError
from hoodie.keygen.virtual_columns import folder_values
from hoodie.mirrors.base_files import bases_of, refuse_renamed
from hoodie.model.enums import QueryType
from hoodie.model.hive_results import HiveSyncResult, RegisteredTable
from hoodie.model.meta_fields import META_FIELDS
from hoodie.options.bigquery import BigQueryOptions
from hoodie.options.option import option_name
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_pinned
from hoodie.view.context import Snapshot, TableContext

FOLDER = ".hoodie/absolute-path-manifest"
MANIFEST = f"{FOLDER}/latest-snapshot.csv"
MakeClient = Callable[[BigQueryOptions], Any]


def make_client(options: BigQueryOptions) -> Any:
    from google.cloud import bigquery  # noqa: PLC0415 - an optional extra

    return bigquery.Client(project=options.billing_project or options.project, location=options.location)


def register(
    context: TableContext, options: BigQueryOptions, *, dry_run: bool = False, connect: MakeClient = make_client
) -> HiveSyncResult:
    """Register the table in BigQuery, or bring its registration up to date.

    Raises:
        HiveSyncError: BigQuery does not answer in time, or refuses. SchemaError: it has no type for a column, or the table has no
            columns. OptionError: no project or dataset is named.
    """
    started_s = time.monotonic()
    config, dataset = context.config, options.dataset or context.config.database_name
    for field, value in (("project", options.project), ("dataset", dataset)):
        if not value:
            raise OptionError(f"a registration in BigQuery needs {option_name(BigQueryOptions, field)}")
    name = f"{options.project}.{dataset}.{options.table or config.name}"
    uri = (options.path or context.storage.uri).rstrip("/")
    with _speaking(name):
        client = connect(options)
        there = _table_named(client, name, options)
        newest = _with_manifest(context, uri, dry_run=dry_run)
        if newest.schema is None:
            raise SchemaError(
                f"table {context.storage.uri} cannot be registered in BigQuery yet: it has no columns; write to it first"
            )
        table = _described(context, newest.schema, name, uri, options)
        changes = table.brought(client, there, dry_run=dry_run)
    commit = newest.timeline.latest_commit
    registration = RegisteredTable(
        name,
        made=there is None,
        columns=() if changes is None else changes,
        properties_changed=there is not None and changes is None,
        noted=None if commit is None else commit.time,
    )
    return HiveSyncResult((registration,), dry_run=dry_run, seconds=time.monotonic() - started_s)


def _with_manifest(context: TableContext, uri: str, *, dry_run: bool) -> Snapshot:
    """Replace the manifest, until it is that of the newest commit: of two at once, the later one may have looked first."""
    while True:
        plan, snapshot = plan_pinned(context, ReadOptions(query=QueryType.READ_OPTIMIZED), meta_columns=False)
        bases = list(bases_of(plan))
        refuse_renamed(plan, bases, context.storage.uri)
        manifest = "".join(f"{uri}/{path}\n" for path in sorted(base.path for base in bases)).encode()
        if dry_run or (context.storage.exists(MANIFEST) and context.storage.read(MANIFEST) == manifest):
            return snapshot
        context.storage.replace(MANIFEST, manifest)


def _described(context: TableContext, schema: pa.Schema, name: str, uri: str, options: BigQueryOptions) -> _Table:
    config = context.config
    prefix = options.prefix or (None if folder_values(config, schema) is None else uri)
    in_folders = set() if prefix is None else set(config.partition_fields)
    if in_folders and not config.hive_style:
        raise SchemaError(
            f"table {context.storage.uri} cannot be registered in BigQuery with partition columns of its folders: they are not "
            "named as column=value"
        )
    meta = META_FIELDS if config.populate_meta_fields else ()
    columns = [field for field in (*meta, *schema) if field.name not in in_folders]
    return _Table(name, f"{uri}/{FOLDER}/*", prefix, columns, options)


def _patience(options: BigQueryOptions) -> dict[str, Any]:
    """Of one request: BigQuery's client repeats those that fail for ten minutes."""
    from google.cloud.bigquery import DEFAULT_RETRY  # noqa: PLC0415 - an optional extra

    return {"timeout": options.timeout_s, "retry": DEFAULT_RETRY.with_timeout(options.timeout_s)}


def _table_named(client: Any, name: str, options: BigQueryOptions) -> Any:
    """The table that BigQuery has by this name, or None."""
    from google.api_core.exceptions import NotFound  # noqa: PLC0415 - an optional extra

    dataset = name.rpartition(".")[0]
    try:
        client.get_dataset(dataset, **_patience(options))
    except NotFound as exc:
        raise HiveSyncError(f"BigQuery has no dataset {dataset}: create it") from exc
    try:
        return client.get_table(name, **_patience(options))
    except NotFound:
        return None


@contextmanager
def _speaking(name: str) -> Iterator[None]:
    """What BigQuery's client raises, as one error that names the table. OptionError: it is not installed."""
    try:
        from google.api_core.exceptions import GoogleAPIError  # noqa: PLC0415 - an optional extra
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - an optional extra
        from google.cloud import bigquery  # noqa: F401, PLC0415 - an optional extra
    except ModuleNotFoundError as exc:
        raise OptionError(
            f"the registration of {name} in BigQuery needs google-cloud-bigquery: install hoodie with the extra `bigquery`"
        ) from exc
    try:
        yield
    except (GoogleAPIError, GoogleAuthError, TimeoutError, ConnectionError) as exc:
        raise HiveSyncError(f"the registration of {name} in BigQuery failed: {exc}") from exc


@dataclass(frozen=True)
class _Table:
    """As it should be registered."""

    name: str
    source: str
    prefix: str | None
    columns: Sequence[pa.Field[Any]]
    options: BigQueryOptions

    def brought(self, client: Any, there: Any, *, dry_run: bool) -> tuple[str, ...] | None:
        """What changed of the columns; None: the table was made, or made anew."""
        fields = fields_of(self.columns)
        if there is not None:
            external = there.external_data_configuration
            if (external is None or self.source not in external.source_uris) and not self.options.recreates:
                raise HiveSyncError(
                    f"{self.name} in BigQuery is no registration of the table whose manifest is {self.source}: choose another name, "
                    f"or set {option_name(BigQueryOptions, 'recreates')}=true"
                )
            if external is not None and self._is_so(there, external):
                names = {each.name for each in fields}
                of_folders = [each for each in there.schema if each.name not in names and self.prefix is not None]
                changes = changes_of(there.schema, [*fields, *of_folders])
                if changes and not dry_run:
                    self._with_columns(client, there, [*fields, *of_folders])
                return changes
        if not dry_run:
            patience = _patience(self.options)
            client.query(self.statement(), **patience).result(**patience)
        return None

    def _is_so(self, there: Any, external: Any) -> bool:
        hive = external.hive_partitioning
        prefix = None if hive is None else hive.source_uri_prefix.rstrip("/")
        filtered = hive is not None and bool(hive.require_partition_filter)
        connection = external._properties.get("connectionId")
        return (
            self.source in external.source_uris
            and prefix == (self.prefix.rstrip("/") if self.prefix else None)
            and (hive is None or filtered == self.options.requires_filter)
            and (self.options.connection is None or connection is not None)
        )

    def _with_columns(self, client: Any, there: Any, fields: Sequence[Any]) -> None:
        if self.options.connection is None:  # that of a BigLake table stands at the table itself
            external = there.external_data_configuration
            external.schema = fields
            external.autodetect = False
            there.external_data_configuration = external
            what = "external_data_configuration"
        else:
            there.schema, what = fields, "schema"
        client.update_table(there, [what], **_patience(self.options))

    def statement(self) -> str:
        """CREATE OR REPLACE EXTERNAL TABLE, in GoogleSQL."""
        settings = ["enable_list_inference=true"]
        clauses = f"({', '.join(f'`{field.name}` {type_text(field.type, field.name)}' for field in self.columns)})"
        if self.prefix is not None:
            clauses += " WITH PARTITION COLUMNS"
            settings += [
                f"hive_partition_uri_prefix={_quoted(self.prefix)}",
                f"require_hive_partition_filter={str(self.options.requires_filter).lower()}",
            ]
        if self.options.connection is not None:
            clauses += f" WITH CONNECTION `{self.options.connection}`"
        settings += [
            f"uris=[{_quoted(self.source)}]",
            'format="PARQUET"',
            'file_set_spec_type="NEW_LINE_DELIMITED_MANIFEST"',
        ]
        return f"CREATE OR REPLACE EXTERNAL TABLE `{self.name}` {clauses} OPTIONS({', '.join(settings)})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_LARGEST_NUMERIC = (29, 9)
"""Digits before and after the point that NUMERIC has."""


def changes_of(old: Sequence[Any], new: Sequence[Any]) -> tuple[str, ...]:
    before, after = ({each.name: _shape(each) for each in fields} for fields in (old, new))
    return (
        *(f"{name} added" for name in after if name not in before),
        *(f"{name} changed" for name in after if name in before and before[name] != after[name]),
        *(f"{name} dropped" for name in before if name not in after),
    )


def _shape(field: Any) -> Any:
    """What counts of a field, by the names of types that BigQuery answers with."""
    old = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
    kind = old.get(field.field_type, field.field_type)
    return kind, field.mode == "REPEATED", tuple((each.name, _shape(each)) for each in field.fields)


def fields_of(columns: Sequence[pa.Field[Any]]) -> list[Any]:
    return [_field(each.name, each.type, each.name) for each in columns]


def _field(name: str, kind: Any, column: str, mode: str = "NULLABLE") -> Any:
    from google.cloud.bigquery import SchemaField  # noqa: PLC0415 - an optional extra

    if _is_list(kind):
        inner = _field(name, kind.value_type, column)
        return SchemaField(name, inner.field_type, "REPEATED", fields=inner.fields)
    if pa.types.is_struct(kind):
        return SchemaField(name, "STRUCT", mode, fields=[_field(each.name, each.type, column) for each in kind])
    if pa.types.is_map(kind):
        pair = [
            _field("key", kind.key_type, column, "REQUIRED"),
            _field("value", kind.item_type, column),
        ]
        return SchemaField(name, "STRUCT", mode, fields=[SchemaField("key_value", "STRUCT", "REPEATED", fields=pair)])
    return SchemaField(name, _scalar(kind, column), mode)


def type_text(kind: Any, column: str) -> str:
    """The type in GoogleSQL."""
    if _is_list(kind):
        if _is_list(kind.value_type):
            raise SchemaError(f"column {column!r} cannot be registered in BigQuery, which has no lists of lists")
        return f"ARRAY<{type_text(kind.value_type, column)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'`{each.name}` {type_text(each.type, column)}' for each in kind)}>"
    if pa.types.is_map(kind):
        key, value = (type_text(each, column) for each in (kind.key_type, kind.item_type))
        return f"STRUCT<`key_value` ARRAY<STRUCT<`key` {key} NOT NULL, `value` {value}>>>"
    return _scalar(kind, column)


def _is_list(kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _scalar(kind: Any, column: str) -> str:
    types = pa.types
    for is_it, name in (
        (types.is_integer, "INT64"),
        (types.is_floating, "FLOAT64"),
        (types.is_boolean, "BOOL"),
        (types.is_string, "STRING"),
        (types.is_large_string, "STRING"),
        (types.is_binary, "BYTES"),
        (types.is_large_binary, "BYTES"),
        (types.is_fixed_size_binary, "BYTES"),
        (types.is_date, "DATE"),
        (types.is_time, "TIME"),
    ):
        if is_it(kind):
            return name
    if types.is_timestamp(kind):
        return "DATETIME" if kind.tz is None else "TIMESTAMP"
    if types.is_decimal(kind):
        before, after = _LARGEST_NUMERIC
        fits = kind.scale <= after and kind.precision - kind.scale <= before
        return "NUMERIC" if fits else "BIGNUMERIC"
    raise SchemaError(f"column {column!r} of type {kind} cannot be registered in BigQuery, which has no such type")
