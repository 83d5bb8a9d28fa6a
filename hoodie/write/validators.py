"""Checks a commit before it is made, by queries over the rows before and after it: those of the base files of the partitions that it
changes, as Apache Hudi's validators see them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CommitRefusedError, OptionError
from hoodie.model.payloads import CommitMetadata
from hoodie.options.commits import TABLE, Query, ValidatorOptions
from hoodie.storage.base import Storage
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")
_BEFORE, _AFTER = "hoodie_before", "hoodie_after"


def validate(context: TableContext, metadata: CommitMetadata, options: ValidatorOptions) -> None:
    """Run the queries; the files of the commit have their names already, and nobody sees them yet.

    Raises:
        CommitRefusedError: one of them does not hold. OptionError: one cannot be run, or duckdb is not installed.
    """
    if not options.queries:
        return
    before = _base_files(context, metadata)
    after = {**before, **{stat.file_id: stat.path for stat in metadata.stats() if stat.log_version is None}}
    for replaced in metadata.replaced_file_ids.values():
        for file_id in replaced:
            after.pop(file_id, None)
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise OptionError(
            f"the validators of table {context.storage.uri} need duckdb, which is not installed\n"
            "  fix:     pip install 'hoodie[sql]'"
        ) from None
    with duckdb.connect(":memory:", config={"python_enable_replacements": False}) as con:
        schema = pq.read_schema(pa.BufferReader(context.storage.read(next(iter(after.values()))))) if after else None
        con.register(_BEFORE, _rows(context.storage, before.values(), schema))
        con.register(_AFTER, _rows(context.storage, after.values(), schema))
        try:
            failed = [why for query in options.queries if (why := _failure(con, query)) is not None]
        except duckdb.Error as exc:
            raise OptionError(f"a validator of table {context.storage.uri} cannot be run: {exc}") from exc
    if failed and options.policy == "FAIL":
        raise CommitRefusedError(f"table {context.storage.uri}: {'; '.join(failed)}; nothing of this write is visible")
    if failed:
        log.warning("table %s: %s; the commit is made all the same", context.storage.uri, "; ".join(failed))


def _base_files(context: TableContext, metadata: CommitMetadata) -> dict[str, str]:
    """File id -> path of what queries see now in the partitions of the commit."""
    partitions = {*metadata.write_stats, *metadata.replaced_file_ids}
    view = context.snapshot().view
    slices = view.latest_slices(sorted(partitions & set(view.partitions())))
    return {each.group.file_id: each.base.path for each in slices if each.base is not None}


def _rows(storage: Storage, paths: Iterable[str], schema: pa.Schema | None) -> pa.Table:
    tables = [pq.ParquetFile(pa.BufferReader(storage.read(path))).read() for path in paths]
    if not tables:
        return schema.empty_table() if schema is not None else pa.table({"_": pa.array([], pa.null())})
    return pa.concat_tables(tables, promote_options="permissive")


def _failure(con: Any, query: Query) -> str | None:
    after = con.sql(query.text.replace(TABLE, _AFTER)).fetchall()
    if query.kind == "single.value":
        if len(after) == 1 and len(after[0]) == 1 and _text_of(after[0][0]) == query.expected:
            return None
        return f"{query.text} has to give {query.expected}, and gives {after[:3]}"
    before = con.sql(query.text.replace(TABLE, _BEFORE)).fetchall()
    same = sorted(map(repr, before)) == sorted(map(repr, after))
    if same is (query.kind == "equality"):
        return None
    if same:
        return f"{query.text} has to give something else than before the commit, and still gives {before[:3]}"
    return f"{query.text} has to give the same as before the commit, {before[:3]}, and gives {after[:3]}"


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
