"""Statements about hoodie tables that Spark's grammar lacks, or its analyzer refuses: they become calls of `HoodieTable`, or other
statements.

`CALL`, `SHOW INDEXES`, `CREATE INDEX`, `DROP INDEX`, `INSERT OVERWRITE DIRECTORY … USING hoodie`, `MERGE` and `INSERT WITH SCHEMA
EVOLUTION`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from hoodie.errors import OptionError
from hoodie.model.index_results import IndexState
from pyspark_hoodie import sql_call, sql_catalog, sql_widening
from pyspark_hoodie.arrow_frame import arrow_frame
from pyspark_hoodie.sql_evolution import evolve
from pyspark_hoodie.sql_short_names import with_full_names
from pyspark_hoodie.sql_words import Token, Words, quoted_name
from pyspark_hoodie.table import HoodieTable

Sql = Callable[[str], DataFrame]
"""Runs a statement of Spark's own."""
_RECORD_INDEX, _COLUMN_STATS, _BLOOM_FILTERS = "record_index", "column_stats", "bloom_filters"
_PARTITIONS = (_RECORD_INDEX, _COLUMN_STATS, _BLOOM_FILTERS, "partition_stats", "files")
_SECONDARY_INDEX, _EXPRESSION_INDEX = "secondary_index", "expr_index"
_WITH_NAMES = (_SECONDARY_INDEX, _EXPRESSION_INDEX)
"""Kinds of indexes of which a table may have several."""
_COLUMNS_OF = {
    _SECONDARY_INDEX: "hoodie.metadata.index.secondary.column",
    _EXPRESSION_INDEX: "hoodie.metadata.index.expression.column",
    _COLUMN_STATS: "hoodie.metadata.index.column.stats.column.list",
    _BLOOM_FILTERS: "hoodie.metadata.index.bloom.filter.column.list",
}
_NAMED_SINCE = 8
"""The version of tables from which on they may have several."""
_SHOWN = pa.schema([(name, pa.string()) for name in ("index_name", "index_type", "col_name")])


def answer(spark: Any, query: str, run: Sql) -> DataFrame | None:
    """What one of these statements gives; None for every other one, and for tables of others."""
    words = Words(query)
    if words.sees("CALL"):
        return sql_call.call(spark, query)
    if words.take("SHOW", "INDEXES"):
        return _show_indexes(spark, words)
    if words.take("CREATE", "INDEX"):
        return _create_index(spark, words)
    if words.take("DROP", "INDEX"):
        return _drop_index(spark, words)
    if words.take("INSERT", "OVERWRITE", "DIRECTORY") or words.take("INSERT", "OVERWRITE", "LOCAL", "DIRECTORY"):
        return _write_directory(words, run)
    if words.sees("WITH"):
        words.at = words.find("MERGE", "INSERT")
    return sql_widening.insert(spark, words, run) if words.sees("INSERT") else evolve(spark, words, run)


# -- Indexes.


def _table(spark: Any, words: Words) -> HoodieTable | None:
    name = quoted_name(words.name("the name of a table"))
    return None if sql_catalog.is_of_others(spark, name) else sql_catalog.table_of(spark, name)


def _show_indexes(spark: Any, words: Words) -> DataFrame | None:
    if not (words.take("FROM") or words.take("IN")):
        words.expect("FROM")
    words.take("TABLE")
    table = _table(spark, words)
    if table is None:
        return None
    there = [each for each in table.indexes() if _kind_of(each.name) is not None and each.name != "files"]
    there.sort(key=lambda each: each.name)
    rows = [
        {"index_name": i.name, "index_type": i.kind or _kind_of(i.name), "col_name": ",".join(i.columns)} for i in there
    ]
    return arrow_frame(spark, pa.Table.from_pylist(rows, _SHOWN))


def _create_index(spark: Any, words: Words) -> DataFrame | None:
    may_exist = words.take("IF", "NOT", "EXISTS")
    (name,) = words.name("the name of the index")[-1:]
    words.expect("ON")
    words.take("TABLE")
    table = _table(spark, words)
    if table is None:
        return None
    kind = words.name("the kind of the index")[-1].lower() if words.take("USING") else ""
    columns = ["".join(_written(token) for token in part) for part in words.parts()] if words.sees("(") else []
    options = words.options() if words.take("OPTIONS") else {}
    partition = _partition_of(table, name.lower(), kind, columns, options)
    if any(each.name == partition and each.state is IndexState.READY for each in table.indexes()):
        if may_exist:
            return _nothing(spark)
        raise OptionError(
            f"table {table.uri} has the index {partition} already: DROP INDEX {partition} ON the table first"
        )
    option = _COLUMNS_OF.get(_kind_of(partition) or "")
    options_of_columns = {option: ",".join(columns)} if option is not None and columns else {}
    if _kind_of(partition) == _EXPRESSION_INDEX:
        options_of_columns |= _of_expression(kind, options)
    table.build_index(
        partition, {**options_of_columns, **{key: text for key, text in options.items() if key.startswith("hoodie.")}}
    )
    return _nothing(spark)


def _of_expression(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of an index of an expression, as `build_index` takes them."""
    own = {key: text.replace("'", "''") for key, text in options.items() if not key.startswith("hoodie.")}
    texts = ",".join(f"{key}='{text}'" for key, text in own.items())
    return {"hoodie.metadata.index.expression.options": texts, "hoodie.expression.index.type": kind}


def _kind_of(partition: str) -> str | None:
    """None where our writers have none of this name."""
    for each in _WITH_NAMES:
        if partition.startswith(f"{each}_"):
            return each
    return partition if partition in _PARTITIONS else None


def _written(token: Token) -> str:
    return token.name if token.is_name else token.text


def _partition_of(table: HoodieTable, name: str, kind: str, columns: list[str], options: Mapping[str, str]) -> str:
    """The partition of the metadata table that serves as this index."""
    if _is_of_expression(table, kind, options):
        if len(columns) != 1:
            raise OptionError(f"CREATE INDEX {name}: an index of an expression is of one column, not of {len(columns)}")
        return f"{_EXPRESSION_INDEX}_{name.removeprefix(f'{_EXPRESSION_INDEX}_')}"
    keys = table.config.record_key_fields
    is_of_keys = not columns or {each.lower() for each in columns} == {each.lower() for each in keys}
    if kind in _PARTITIONS or (not kind and name in _PARTITIONS):
        result = kind or name
    elif kind not in ("", _SECONDARY_INDEX):
        kinds = ", ".join((*_PARTITIONS, _SECONDARY_INDEX))
        raise OptionError(f"CREATE INDEX {name}: there is no kind {kind}; there are {kinds}")
    elif not kind and is_of_keys:
        result = _RECORD_INDEX
    elif len(columns) == 1:
        return f"{_SECONDARY_INDEX}_{name.removeprefix(f'{_SECONDARY_INDEX}_')}"
    else:
        raise OptionError(
            f"CREATE INDEX {name}: a secondary index is of one column, not of {', '.join(columns) or 'none'}"
        )
    if result == _RECORD_INDEX and not is_of_keys:
        raise OptionError(
            f"CREATE INDEX {name}: a record_index is of the record key ({', '.join(keys) or 'which the table makes itself'}), not of "
            f"{', '.join(columns)}"
        )
    if name != result:
        raise OptionError(
            f"CREATE INDEX {name}: a table has one {result}, which goes by that name: CREATE INDEX {result} ON the table; one of a "
            "name of its own is of an expression (OPTIONS (expr = '…')), or a secondary index"
        )
    return result


def _is_of_expression(table: HoodieTable, kind: str, options: Mapping[str, str]) -> bool:
    """As Apache Hudi has it: also bloom filters of a column itself."""
    if kind not in (_COLUMN_STATS, _BLOOM_FILTERS):
        if "expr" in options:
            raise OptionError(
                f"CREATE INDEX with expr is USING {_COLUMN_STATS} or {_BLOOM_FILTERS}, not {kind or 'neither'}"
            )
        return False
    return options.get("expr", "identity") != "identity" or (
        kind == _BLOOM_FILTERS and ("expr" in options or int(table.config.version) >= _NAMED_SINCE)
    )


def _drop_index(spark: Any, words: Words) -> DataFrame | None:
    may_lack = words.take("IF", "EXISTS")
    (name,) = words.name("the name of the index")[-1:]
    words.expect("ON")
    words.take("TABLE")
    table = _table(spark, words)
    if table is None:
        return None
    names = {each.name for each in table.indexes() if _kind_of(each.name) is not None}
    partition = next((each for each in (name, *(f"{kind}_{name}" for kind in _WITH_NAMES)) if each in names), None)
    if not (partition is not None and table.drop_index(partition)) and not may_lack:
        raise OptionError(f"table {table.uri} has no index {name}: SHOW INDEXES FROM the table lists them")
    return _nothing(spark)


def _nothing(spark: Any) -> DataFrame:
    nothing: DataFrame = spark.range(0).select()
    return nothing


# -- Files of a query.


def _write_directory(words: Words, run: Sql) -> DataFrame | None:
    """`INSERT OVERWRITE DIRECTORY 'path' USING hoodie OPTIONS (…) SELECT …`: the table at the path is made, or replaced."""
    path = ""
    if not words.is_over and words.tokens[words.at].kind == "text":
        path = words.tokens[words.at].text[1:-1]
        words.at += 1
    if not words.take("USING") or not sql_catalog.is_ours(".".join(words.name("a format"))):
        return None
    options = words.options() if words.take("OPTIONS") else {}
    path = path or options.pop("path", "")
    if not path:
        words.refuse("INSERT OVERWRITE DIRECTORY needs the path: after DIRECTORY, or as OPTIONS (path '…')")
    words.take("AS")
    frame = run(words.slice(words.at, len(words.tokens)))
    frame.write.format("hoodie").options(**with_full_names(options)).mode("overwrite").save(path)
    return frame.limit(0).select()
