"""`hoodie.ingest`: arguments become a plan, and its rounds a result."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike

from hoodie.errors import OptionError
from hoodie.ingestion.change_logs import KINDS, change_log, creation
from hoodie.ingestion.queues import QueueSource
from hoodie.ingestion.run import Plan, rounds
from hoodie.ingestion.source import Bounds, Source
from hoodie.ingestion.sources import address_of, events_of, require_limits, source_of
from hoodie.ingestion.work import EMBEDDED, Work
from hoodie.model.enums import WriteOperation
from hoodie.model.ingest_results import IngestResult, IngestRound
from hoodie.options.arguments import parse_names, parse_operation, parse_options, parse_table_type, parse_text
from hoodie.options.table import TableConfig
from hoodie.storage.refusals import plain_errors
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable, create_table, is_table, open_table
from hoodie.write.placement import is_global
from hoodie.write.schema_input import SchemaLike

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
OPERATIONS = (
    WriteOperation.UPSERT,
    WriteOperation.INSERT,
    WriteOperation.BULK_INSERT,
    WriteOperation.DELETE,
    WriteOperation.INSERT_OVERWRITE_TABLE,
)


def ingest(
    source: str | PathLike[str] | HoodieTable | Source,
    target: str | PathLike[str] | HoodieTable,
    *,
    format: str | None = None,
    name: str = "ingest",
    sql: str | None = None,
    operation: str | WriteOperation = WriteOperation.UPSERT,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_type: str | None = None,
    schema: SchemaLike | None = None,
    changes: str | None = None,
    max_files: int | None = None,
    max_bytes: int | None = None,
    max_rows: int | None = None,
    quarantine: bool = True,
    continuous: bool = False,
    interval_s: float = 10.0,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    source_options: Mapping[str, str] | None = None,
    on_round: Callable[[IngestRound], object] | None = None,
    work: Work = EMBEDDED,
) -> IngestResult:
    """Load new data of a source into a table: files of a folder, each once, or changed rows of another table or a database.

    The commit of the rows records how far the source was read. So after any crash the next call goes on there, and each row is loaded
    once. docs/INGEST.md says more.

    Args:
        source: a folder, another table, or the address of a database, such as `postgresql://host/shop`, of a topic, `kafka://host:port/topic`,
            or of a queue of SQS in which S3 announces new files.
        target: the table. It is created where it does not exist, if `record_key` is given.
        format: json (a line an object), csv, parquet, avro, hudi for a table, or database; None: by the address and the files' names.
            Of a topic: json (None), avro or text.
        name: of the source, if a table has several.
        sql: a query over `source`, or `<SRC>`, whose rows are written instead; needs the extra `sql`.
        operation: "upsert", "insert", "bulk_insert" or "delete"; "insert_overwrite_table" of a source that gives all of its rows.
        record_key, partition_by, ordering, table_type, schema: of a table that is created, as `create_table` takes them.
        changes: the source is a change log of a database, whose events become upserts and deletes: "postgres" or "mysql" (Debezium),
            or "dms" (files of AWS DMS).
        max_files, max_bytes: how much a round takes at most of a folder or a queue; it takes one file at least. The next round reads
            the rest.
        max_rows: the same for a topic, which `max_bytes` limits as well, and for a database with a column that grows; rows of one
            value stay together.
        quarantine: put records that cannot be rows into the table's folder `.hoodie/.hoodie_py/quarantine`. False: they raise an
            error.
        continuous: look again every `interval_s` seconds, until the process is stopped.
        dry_run: read one round, and write nothing.
        options: Hudi's write options.
        storage_options, source_options: how to reach the storage of the table, and that of the source. Of a database also what is
            read: `table` or `query`, and `column`, whose values grow; of a topic, properties of its consumer.
        on_round: is told of each round.
        work: how rows are carried: in this process; `pyspark_hoodie.ingest` gives Spark's way.

    Returns:
        What each round did; none: there was nothing new.

    Raises:
        OptionError: an argument cannot be understood, or the table is there and is not as the arguments say; or a record cannot be a
            row, without `quarantine`.
        TableNotFoundError: there is no table, and no `record_key`.

    Example:
        >>> hoodie.ingest("landing/trips", "lake/trips", record_key="id", ordering="ts")
        >>> hoodie.ingest("landing/trips", table, sql="SELECT *, upper(city) AS region FROM source", max_files=100)
    """
    chosen = parse_operation(operation)
    if chosen not in OPERATIONS:
        raise OptionError(f"operation={operation!r} is not one of {', '.join(each.value for each in OPERATIONS)}")
    for argument, text in (("format", format), ("sql", sql), ("changes", changes)):
        if text is not None:
            parse_text(text, what=argument)
    if not _NAME.fullmatch(parse_text(name, what="name")):
        raise OptionError(
            f"name={name!r} is no name of a source: up to 100 ASCII letters, digits, dots, hyphens, underscores"
        )
    counts: Mapping[str, object] = {"max_files": max_files, "max_bytes": max_bytes, "max_rows": max_rows}
    for argument, value in counts.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise OptionError(f"{argument}={value!r} is not a whole number of at least 1")
    if changes is not None and changes not in KINDS:
        raise OptionError(f"changes={changes!r} is not one of {', '.join(KINDS)}")
    if changes is not None and chosen is not WriteOperation.UPSERT:
        raise OptionError(f"changes={changes!r} needs operation='upsert', not {operation!r}: leave operation out")
    with plain_errors(str(source)):
        own_source = source_of(source, format, source_options)
        require_limits(own_source, [argument for argument, value in counts.items() if value is not None])
    plan = Plan(
        own_source if changes is None else events_of(own_source),
        name=name,
        address=address_of(own_source),
        operation=chosen,
        sql=sql,
        bounds=Bounds(max_files, max_bytes, max_rows),
        keeps_bad=quarantine,
        dry_run=dry_run,
        options=parse_options(options),
        work=work,
    )
    if isinstance(target, HoodieTable) or record_key is None or is_table(target, storage_options=storage_options):
        table = target if isinstance(target, HoodieTable) else open_table(target, storage_options=storage_options)
        _require_apart(plan.address, table.uri)
        _require_same(table.config, record_key, partition_by, ordering, table_type)
    else:
        _require_apart(plan.address, open_storage(target, storage_options).uri)
        if changes is not None:
            by_log, its_options = creation(changes, parse_options(options))
            ordering, options = ordering or by_log, {**its_options, **parse_options(options)}
        table = create_table(
            f"memory://{secrets.token_hex(8)}" if dry_run else target,
            schema,
            record_key=record_key,
            partition_by=partition_by,
            ordering=ordering,
            table_type=table_type,
            options=options,
            storage_options=None if dry_run else storage_options,
        )
    table = work.with_engine(table)
    if isinstance(plan.source, QueueSource):
        plan = replace(plan, source=replace(plan.source, table=table.uri, goes_on=continuous))
    if changes is not None:
        keys_are_global = is_global(table.config, table._request_for(chosen, plan.options).write)
        events = change_log(
            plan.source, changes, table.config, keys_are_global=keys_are_global, converts=plan.sql is None
        )
        plan = replace(plan, source=events)
    results: list[IngestRound] = []
    for each in rounds(table, plan, continuous=continuous, interval_s=interval_s):
        if not continuous:
            results.append(each)
        if on_round is not None:
            on_round(each)
    return IngestResult(tuple(results))


def _require_apart(source: str, target: str) -> None:
    """Raises OptionError: files of the table would be new files of the source."""
    inner, outer = f"{target.rstrip('/')}/", f"{source.rstrip('/')}/"
    if source and (inner.startswith(outer) or outer.startswith(inner)):
        raise OptionError(
            f"the table {target} is in the folder of its source {source}, or around it: give another folder"
        )


def _require_same(
    config: TableConfig,
    record_key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None,
    ordering: str | Sequence[str] | None,
    table_type: str | None,
) -> None:
    """Raises OptionError: the table is there, and is not as the arguments would make it."""
    for what, wanted, fields in (
        ("record_key", record_key, config.record_key_fields),
        ("partition_by", partition_by, config.partition_fields),
        ("ordering", ordering, config.ordering_fields),
    ):
        names = () if wanted is None else parse_names(wanted, what=what)
        if wanted is not None and [name.partition(":")[0] for name in names] != list(fields):
            raise _other(config, what, ",".join(names), ",".join(fields))
    if table_type is not None and parse_table_type(table_type) is not config.table_type:
        raise _other(config, "table_type", table_type, config.table_type.value)


def _other(config: TableConfig, what: str, wanted: str, there: str) -> OptionError:
    return OptionError(
        f"table {config.name!r} is there with {what}={there!r}, and {what}={wanted!r} is asked for: leave {what} out, or give another "
        "table"
    )
