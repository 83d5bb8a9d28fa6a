"""A table in Spark's catalog: what Java asks of it while Spark analyzes, plans and runs statements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from hoodie.engine.local import LocalEngine
from hoodie.errors import OptionError
from hoodie.filegroup.run import run_read
from hoodie.keygen.generator import DEFAULT_PARTITION, KeyGenerator
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import PARTITION_PATH
from hoodie.model.plans import ReadPlan
from hoodie.options.compatibility import check_against
from hoodie.options.option import key_of
from hoodie.options.read import AS_OF, TIMESTAMP_AS_OF, ReadOptions
from hoodie.options.settings import READS, WRITES
from hoodie.options.values import OverwriteMode
from hoodie.options.write import WriteOptions, WriteRequest
from hoodie.read.condition import Condition
from hoodie.read.plan import pin_snapshot, plan_read
from hoodie.read.rows_of_keys import with_rows_of_keys
from hoodie.read.scan import Scan
from hoodie.write.keys import table_keys
from pyspark_hoodie import dataframe
from pyspark_hoodie.callbacks import Callback
from pyspark_hoodie.frame_marks import is_classic
from pyspark_hoodie.native import plan_frame
from pyspark_hoodie.reach import reached
from pyspark_hoodie.schema import arrow_schema, given_schema, spark_schema
from pyspark_hoodie.small_batch import collected
from pyspark_hoodie.sql_added import added_to
from pyspark_hoodie.sql_merge import Target, changes_of, small_merge
from pyspark_hoodie.sql_short_names import with_full_names

INSERT_INTO = "hoodie.spark.sql.insert.into.operation"
"""Apache Hudi's setting for INSERT INTO: upsert, insert or bulk_insert."""
MERGE_PARTIAL = "hoodie.spark.sql.merge.into.partial.updates"
"""Apache Hudi's setting for MERGE INTO, true there by default: log blocks may have only the columns that clauses set."""
_OPERATION = key_of(WriteOptions, "operation")
_SOME_COLUMNS = key_of(WriteOptions, "some_columns").name
_QUERY = key_of(ReadOptions, "query").name
_MOMENTS = {AS_OF.name.lower(), TIMESTAMP_AS_OF.name.lower()}
_NO_PARTITION = ("/",)
"""A path that no partition has: that of all that are replaced, where none is."""
_READ_HERE_BYTES = 512 * 1024 * 1024
"""Files of so many bytes are read in this process for a few of their rows."""


def moment_of(moment: Any) -> str | None:
    """What AS OF names, as options have it. TIMESTAMP comes as microseconds since 1970."""
    if moment is None or isinstance(moment, str):
        return moment
    try:
        return datetime.fromtimestamp(int(moment) / 1e6, UTC).isoformat()
    except (ValueError, OverflowError) as error:
        raise OptionError(f"AS OF names a moment {moment} microseconds after 1970, which is none: {error}") from error


class CatalogTable:
    """One statement's table: all that the statement reads of it is one snapshot.

    Args:
        properties: of the entry in Spark's catalog.
        declared: its columns there, whose comments and defaults count.
        read_optimized: the entry is for base files only.
        order: of the columns, where it is another one: that of the query of whose rows the table is made.
        thread: whose statement opens it, which may add columns (`sql_added.py`).
    """

    def __init__(
        self,
        spark: Any,
        name: str,
        path: str,
        *,
        moment: str | None = None,
        properties: Mapping[str, str] | None = None,
        managed: bool = False,
        declared: StructType | None = None,
        read_optimized: bool = False,
        order: Sequence[str] = (),
        thread: int | None = None,
    ) -> None:
        self._spark, self._name, self._path, self._moment = spark, name, path, moment
        self._properties = {"provider": "hoodie", "location": path, **(properties or {})}
        self._managed = managed
        self._declared = declared
        self._order = order
        self._read = {_QUERY: "read_optimized"} if read_optimized else {}
        storage, _ = reached(path, None, spark)
        self._core = dataframe.open_table(storage, spark)
        self._added = added_to(self._core.uri, thread)
        self._plans: dict[tuple[tuple[str, str], ...], ReadPlan] = {}
        self._snapshot = pin_snapshot(self._core.writer.context, self._added)
        self._snapshots = 1
        """How many it has read of."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def schema(self) -> StructType:
        """The columns as SQL has them: those of partitions at the end, with what the entry says of each."""
        stored = self._snapshot.schema
        if stored is None:
            return self._declared or StructType([])
        declared = {field.name: field for field in self._declared.fields} if self._declared else {}
        history = self._snapshot.history
        docs = {column.name: column.doc for column in history.newest.columns} if history else {}
        fields = []
        for field, column in zip(spark_schema(stored).fields, stored, strict=True):
            entry = declared.get(field.name)
            metadata = entry.metadata if entry else {}
            if (doc := docs.get(field.name)) is not None:
                metadata = {**metadata, "comment": doc}
            fields.append(StructField(field.name, field.dataType, column.nullable, metadata))
        if set(self._order) == {field.name for field in fields}:
            return StructType(sorted(fields, key=lambda field: self._order.index(field.name)))
        by = self._core.config.partition_fields
        last = [field for name in by for field in fields if field.name == name]
        return StructType([*(field for field in fields if field.name not in by), *last])

    def in_java(self) -> Any:
        """What Spark's catalog gives for it."""
        spark, config = self._spark, self._core.config
        java = spark._jvm.hoodie_spark.HoodieTable
        properties = {**self._properties, "is_managed_location": "true"} if self._managed else self._properties
        partitions = [name for name in config.partition_fields if "." not in name]
        version = f"{self._moment} {sorted(self._read.items())}"
        return java(Callback(self._answers), self._name, version, self.schema.json(), partitions, properties)

    def _answers(self, what: str, arguments: Sequence[Any]) -> Any:
        match what:
            case "rows":
                return self.rows(json.loads(arguments[0]), json.loads(arguments[1]))._jdf.queryExecution().analyzed()
            case "size":
                return sum(task.size_bytes for task in self._plan({}).tasks)
            case "snapshot":
                return self._snapshots
            case "plan again":
                return self._plan_again()
            case "changeable":
                return self.require_changeable(arguments[0])
            case "write":
                mode, rows, options, values = arguments
                return self.write(mode, DataFrame(rows, self._spark), options, values)
            case "change":
                command, rows, columns, ids = arguments
                return self._change(command, rows, json.loads(columns), json.loads(ids))
            case "truncate":
                return self.truncate()
            case "partitions":
                return self._partitions()
            case "drop partitions":
                return self._drop_partitions(json.loads(arguments[0]))
            case "has partition":
                return bool(self._named_paths([json.loads(arguments[0])]))
        raise OptionError(f"no answer to {what!r}")

    # -- reading -----------------------------------------------------------------------------------------------------

    def rows(self, names: Sequence[str], options: Mapping[str, str] | None = None) -> Any:
        """A DataFrame of these columns, meta columns among them."""
        plan = self._plan(options or {})
        tasks = tuple(replace(task, columns=tuple(names)) for task in plan.tasks)
        output = pa.schema([plan.output.field(name) for name in names])
        context = self._core.writer.context
        return plan_frame(self._spark, context, replace(plan, tasks=tasks, output=output), where=None)

    def _plan(self, options: Mapping[str, str]) -> ReadPlan:
        """The plan of a read of all columns."""
        query_options = {name: text for name, text in options.items() if name.lower() in READS} | self._read
        if self._moment is not None:  # Spark 4 took it from the options of a reader, and hands these over all the same
            query_options = {name: text for name, text in query_options.items() if name.lower() not in _MOMENTS}
            query_options[AS_OF.name] = self._moment
        key = tuple(sorted(query_options.items()))
        if key not in self._plans:
            context = self._core.writer.context
            query = dataframe.parse_query(context, query_options, self._spark)
            self._plans[key] = plan_read(context, query, meta_columns=True, snapshot=self._snapshot)
        return self._plans[key]

    def _stored(self, names: Sequence[str], where: Condition) -> pa.Table:
        """Columns of few rows: this process reads them, or executors where the files are many."""
        context = self._core.writer.context
        options = replace(dataframe.parse_query(context, {}, self._spark), columns=tuple(names), where=where)
        here = replace(context, engine=LocalEngine())
        scan = Scan(here, options, meta_columns=True, snapshot=self._snapshot)
        plan = scan.plan
        if sum(task.size_bytes for task in plan.tasks) <= _READ_HERE_BYTES:
            scan.plan = with_rows_of_keys(here, plan)
            return scan.to_arrow()
        return collected(context.engine.read(partial(run_read, context.storage, plan.context), plan.tasks, plan.output))

    def _plan_again(self) -> None:
        """A query is planned after a write: before Spark 4.1 that may be a cached one, which has to show what was written.

        Later ones load the table anew for it, and others show the snapshot of their call.
        """
        if tuple(map(int, self._spark.version.split(".")[:2])) < (4, 1):
            self._move_on()

    def _move_on(self) -> None:
        """What is read from now on is the newest snapshot."""
        self._plans.clear()
        self._snapshot = pin_snapshot(self._core.writer.context, self._added)
        self._snapshots += 1

    # -- writing -----------------------------------------------------------------------------------------------------

    def _options(self, options: Mapping[str, str]) -> dict[str, str]:
        """The write options: those of the table's entry, then the session's settings, then the statement's."""
        settings = settings_of_session(self._spark)
        stated = {name: text for name, text in self._properties.items() if name.startswith("hoodie.")}
        given = {**stated, **settings}
        write_options = {name: text for name, text in given.items() if name.lower() in WRITES}
        insert = _insert_operation(given)
        if insert is not None:
            write_options[_OPERATION.name] = insert
        if MERGE_PARTIAL in given:
            write_options.setdefault(_SOME_COLUMNS, given[MERGE_PARTIAL])
        return write_options | _own(options)

    def _request(self, operation: WriteOperation | None, options: Mapping[str, str]) -> WriteRequest:
        write_options = self._options(options)
        request = dataframe.parse_request(write_options)
        # Settings of the session may be meant for other tables.
        check_against(self._core.config, dataframe.parse_request(_own(options)).table)
        if operation is None:
            stated = any(name.lower() in {each.lower() for each in _OPERATION.names} for name in write_options)
            upserts = bool(self._core.config.ordering_fields) and not self._core.config.generates_keys
            operation = (
                request.write.operation if stated else (WriteOperation.UPSERT if upserts else WriteOperation.INSERT)
            )
        # Where no row fits, columns are added all the same.
        adds = bool(self._added)
        return replace(request, write=replace(request.write, operation=operation, commits_empty=adds))

    def write(self, mode: str, df: DataFrame, options: Mapping[str, str], values: Sequence[str | None] = ()) -> None:
        """INSERT, and what is saved by name.

        Args:
            values: of partitions that are replaced, as column and text in turn; with mode `overwrite paths` their paths.
        """
        self._require_writable("INSERT")
        match mode:
            case "append":
                request = self._request(None, options)
            case "merge":  # one that only inserts
                generates = self._core.config.generates_keys
                request = self._request(WriteOperation.INSERT if generates else WriteOperation.UPSERT, options)
            case "replace":
                write_request = self._request(None, options)
                static = replace(write_request, write=replace(write_request.write, overwrite_mode=OverwriteMode.STATIC))
                request = dataframe.in_mode(dataframe.OVERWRITE, static, self._core)
            case "overwrite":
                request = self._request(WriteOperation.INSERT_OVERWRITE_TABLE, options)
            case "overwrite partitions":
                whole = not self._core.config.partition_fields
                kind = WriteOperation.INSERT_OVERWRITE_TABLE if whole else WriteOperation.INSERT_OVERWRITE
                request = self._request(kind, options)
            case _:
                request = self._request(WriteOperation.INSERT_OVERWRITE, options)
                if mode == "overwrite paths":
                    paths = tuple(str(path) for path in values)
                else:
                    paths = self._partitions_of(dict(zip(values[::2], values[1::2], strict=True)))
                replaced = paths or _NO_PARTITION  # without any, those of the rows would be replaced
                request = replace(request, write=replace(request.write, static_partitions=replaced))
        dataframe.write_records(self._core, df, given_schema(df.schema), request)
        self._move_on()

    def _partitions_of(self, values: Mapping[str | None, str | None]) -> tuple[str, ...]:
        """The paths of the partitions that a statement names by values of their columns."""
        by = self._core.config.partition_fields
        unknown = [str(name or text) for name, text in values.items() if name not in by]
        if unknown:
            raise OptionError(
                f"INSERT OVERWRITE of table {self._name} replaces whole partitions, and {unknown[0]} is none of its partition columns "
                f"({', '.join(by) or 'it has none'}): delete by a condition, and insert"
            )
        context = self._core.writer.context
        keygen = table_keys(context, context.snapshot(), WriteOptions())
        if len(values) < len(by):
            return self._beginning_with(values, keygen)
        row = self._row_of(values)
        return (str(keygen.partitions(row)[0].as_py()),)

    def paths_where(self, condition: Any, what: str) -> list[str]:
        """The paths of partitions with rows that fulfil a condition on partition columns, a Column. `what` replaces them.

        Raises:
            OptionError: Spark does not find a column of the condition among them.
        """
        self.require_changeable(what)
        by = [name for name in self._core.config.partition_fields if "." not in name]
        rows = self.rows([*by, PARTITION_PATH]).withColumnRenamed(PARTITION_PATH, "hoodie_path")
        rows = rows.alias(self._name.rpartition(".")[2].strip("`"))
        try:
            found = rows.where(condition).select("hoodie_path").distinct().collect()
        except AnalysisException as error:
            raise OptionError(
                f"{what} of table {self._name} replaces whole partitions, so the condition is of partition columns "
                f"({', '.join(by) or 'it has none'}): {str(error).partition(chr(10))[0]}"
            ) from error
        return sorted(row[0] for row in found)

    def _values_of(self, path: str) -> tuple[str | None, ...]:
        """Texts of the partition columns in a path."""
        config = self._core.config
        by = config.partition_fields
        segments = path.split("/") if len(by) > 1 else [path]
        texts = [text.removeprefix(f"{name}=") for name, text in zip(by, segments, strict=True)]
        if config.url_encode:
            texts = [unquote(text) for text in texts]
        return tuple(None if text == DEFAULT_PARTITION else text for text in texts)

    def _partitions(self) -> Any:
        result = self._spark._jvm.java.util.ArrayList()
        for path in self._core.partitions():
            result.add(list(self._values_of(path)))
        return result

    def _named_paths(self, named: Sequence[Sequence[str | None]]) -> list[str]:
        """Paths of the partitions with one of these lists of values, in which "*" stands for any text."""
        values = {path: self._values_of(path) for path in self._core.partitions()}
        return [path for path, each in values.items() if any(all(map(_is_like, each, wanted)) for wanted in named)]

    def _drop_partitions(self, dropped: Sequence[Sequence[str | None]]) -> bool:
        self._require_writable("DROP PARTITION")
        paths = self._named_paths(dropped)
        if paths:
            write = self._request(WriteOperation.DELETE_PARTITION, {}).write
            self._core.writer.write_no_rows(write.operation, replace(write, partitions_to_delete=tuple(paths)))
            self._move_on()
        return bool(paths)

    def _row_of(self, values: Mapping[str | None, str | None]) -> pa.Table:
        fields = [field for field in self.schema.fields if field.name in values]
        schema = arrow_schema(StructType(fields))
        return pa.table(
            [pa.array([values[name]]).cast(schema.field(name).type) for name in schema.names], schema=schema
        )

    def _beginning_with(self, values: Mapping[str | None, str | None], keygen: KeyGenerator) -> tuple[str, ...]:
        """Partitions with these values in the first columns of several."""
        first = keygen.partition_fields[: len(values)]
        if set(first) != set(values):
            raise OptionError(
                f"INSERT OVERWRITE of table {self._name}: name the first partition columns, or all of them"
            )
        prefix = replace(keygen, partition_fields=first).partitions(self._row_of(values))[0].as_py()
        return tuple(path for path in self._core.partitions() if path.startswith(f"{prefix}/"))

    def _change(self, command: str, rows: Any, columns: Sequence[int], ids: Sequence[int]) -> None:
        """MERGE, UPDATE and DELETE: what becomes of stored rows, and new ones, as one commit.

        Args:
            rows: of Spark's query: what is done (1 is a delete), new values, the key and the path of the stored row.
            columns: where in a row the values of the table's columns are. ids: where key and path are.
        """
        names = self.schema.names
        query = DataFrame(rows, self._spark)

        def find() -> DataFrame | dataframe.RowsHere:
            changes = None
            if command == "MERGE":
                context, write = self._core.writer.context, self._request(WriteOperation.UPSERT, {}).write
                keygen = partial(table_keys, context, self._snapshot, write)
                target = Target(self._core.config, write, keygen, self._plan({}).output, self._stored)
                changes = small_merge(query, columns, ids, names, target)
            return changes_of(query, columns, ids, names) if changes is None else changes

        self.change(find, deletes=not columns)

    def change(self, find: Callable[[], DataFrame | dataframe.RowsHere], *, deletes: bool) -> None:
        """Commit what a query makes of stored rows.

        Args:
            find: gives the rows, found on the newest snapshot: key and path of the stored row, whether it goes, new values.
            deletes: there are no new values.
        """

        def find_anew() -> DataFrame | dataframe.RowsHere:
            self._move_on()
            return find()

        operation = WriteOperation.DELETE if deletes else WriteOperation.UPSERT
        dataframe.write_found(self._core, find_anew, self._request(operation, {}))
        self._move_on()

    def truncate(self) -> None:
        self._require_writable("TRUNCATE")
        if (schema := self._core.schema) is not None and self._core.timeline.commits:
            request = self._request(WriteOperation.INSERT_OVERWRITE_TABLE, {})
            self._core.writer.write(
                schema.empty_table().to_reader(),
                schema,
                request.write.operation,
                request.write,
                engine=LocalEngine(),
            )

    def _require_writable(self, statement: str) -> None:
        if self._moment is not None:
            raise OptionError(f"{statement} writes to the table as it is now: leave AS OF out")
        if self._read:
            raise OptionError(
                f"{self._name} is the read-optimized side of a table: {statement} goes to the table itself"
            )

    def require_changeable(self, command: str) -> None:
        self._require_writable(command)
        if not self._core.config.populate_meta_fields:
            raise OptionError(
                f"{command} finds rows by the _hoodie_ columns, which table {self._name} does not store "
                "(hoodie.populate.meta.fields=false): use HoodieTable.upsert(df) and .delete(where=…)"
            )


def _is_like(text: str | None, wanted: str | None) -> bool:
    if text is None or wanted is None:
        return text is wanted or wanted == "*"
    return re.fullmatch(".*".join(map(re.escape, wanted.split("*"))), text, re.DOTALL) is not None


def _own(options: Mapping[str, str]) -> dict[str, str]:
    """The write options of a statement under their full names."""
    return with_full_names({name: text for name, text in options.items() if name != "path"})


def _insert_operation(options: Mapping[str, str]) -> str | None:
    """What INSERT INTO does by its options; those of older releases count where the newer one is not set."""
    if INSERT_INTO in options or options.get("hoodie.sql.insert.mode", "").lower() != "non-strict":
        return options.get(INSERT_INTO)
    return "bulk_insert" if options.get("hoodie.sql.bulk.insert.enable", "").lower() == "true" else "insert"


def settings_of_session(spark: Any) -> dict[str, str]:
    """Settings of the session that are about our tables."""
    if is_classic(spark):
        settings: dict[str, str] = json.loads(spark._jvm.hoodie_spark.Planning.settings(spark._jsparkSession))
        return settings
    return {name: text for name, text in spark.conf.getAll.items() if name.startswith("hoodie.")}
