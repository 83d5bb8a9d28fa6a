"""`CALL`: Apache Hudi's procedures by their names and parameters.

`sql_procedures.tsv` has a line for each of its procedures in 1.2: name, parameters (`!` marks those that are required), columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files as resources
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame

from hoodie.errors import OptionError
from pyspark_hoodie import sql_catalog
from pyspark_hoodie.arrow_frame import arrow_frame
from pyspark_hoodie.procedure_actions import ACTIONS
from pyspark_hoodie.procedure_bootstrap import run_bootstrap
from pyspark_hoodie.procedure_files import FILES, OF_FOLDERS
from pyspark_hoodie.procedure_shows import TIMELINE, Arguments
from pyspark_hoodie.sql_words import Token, Words, text_of
from pyspark_hoodie.table import HoodieTable

_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_(), "double": pa.float64()}
SHOWS = {**TIMELINE, **FILES}
WITHOUT_TABLE = {**OF_FOLDERS, "run_bootstrap": run_bootstrap}
_WHOLE = re.compile(r"[+-]?\d+[lL]?")
_HELP = "help"
NOT_SERVED = {
    **dict.fromkeys(
        ("set_audit_lock", "show_audit_lock_status", "validate_audit_lock", "cleanup_audit_lock"),
        "locks of tables are not audited: the error of a writer that waited for the lock in vain names who holds it",
    ),
    "hdfs_parquet_import": "CREATE TABLE … USING hoodie AS SELECT * FROM parquet.`path` imports rows",
    "partition_bucket_index_manager": "numbers of buckets by partition are decided when the table is created",
    "repair_deduplicate": "read the partition, keep one row of each key, and write the rows by INSERT OVERWRITE",
    "repair_migrate_partition_meta": "partition metadata are always text here, which every reader knows",
    "repair_overwrite_hoodie_props": "hoodie.properties is never replaced as a whole: ALTER TABLE … SET TBLPROPERTIES keeps options",
    "sync_validate": "CALL hive_sync says what it changed in the metastore",
    "show_metadata_column_stats_overlap": "CALL show_metadata_table_column_stats gives the bounds of each file",
}
"""Procedures that are not served -> what to do instead."""


class Parameter(NamedTuple):
    name: str
    kind: str
    """The type, as SQL has it."""
    is_required: bool
    default: str | None


class Signature(NamedTuple):
    name: str
    parameters: tuple[Parameter, ...]
    columns: tuple[tuple[str, str], ...]
    """Name and type of each."""


@cache
def signatures() -> Mapping[str, Signature]:
    """The procedures by their names."""
    text = resources(__package__).joinpath("sql_procedures.tsv").read_text(encoding="utf-8")
    result = {}
    for line in text.splitlines():
        name, parameters, columns = line.split("\t")
        parsed_parameters = []
        for each in re.split(r", (?=\w+!?: )", parameters):
            head, _, default = each.partition(" = ")
            parameter, _, kind = head.partition(": ")
            parsed_parameters.append(Parameter(parameter.rstrip("!"), kind, parameter.endswith("!"), default or None))
        pairs = [tuple(each.rsplit(": ", 1)) for each in columns.split(", ")]
        result[name] = Signature(name, tuple(parsed_parameters), tuple((column, kind) for column, kind in pairs))
    return result


def call(spark: Any, query: str) -> DataFrame | None:
    """The result of a CALL of one of these procedures; None for every other statement.

    Raises:
        OptionError: there is no such procedure, or it has other parameters.
    """
    words = Words(query)
    if not words.take("CALL"):
        return None
    *before, name = (part.lower() for part in words.name("the name of a procedure"))
    if before not in ([], ["system"], ["spark_catalog", "system"]):
        return None
    signature = signatures().get(name)
    if signature is None:
        near = get_close_matches(name, signatures(), 3)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise OptionError(f"there is no procedure {name}{meant} CALL help lists them all")
    arguments = bind(spark, signature, words.parts() if words.sees("(") else [])
    if not words.is_over:
        words.refuse(f"nothing may follow the parameters of {name}")
    if name == _HELP:
        return _frame(spark, signature, [(_help(arguments.text("cmd")),)])
    if name in NOT_SERVED:
        raise OptionError(f"there is no CALL {name}: {NOT_SERVED[name]}")
    if name in WITHOUT_TABLE:
        rows = WITHOUT_TABLE[name](spark, arguments)
    else:
        table = _table(spark, signature, arguments)
        if name in ACTIONS:
            return _frame(spark, signature, list(ACTIONS[name](table, arguments)))
        rows = SHOWS[name](table, arguments)
    frame = _frame(spark, signature, list(islice(rows, arguments.number("limit"))))
    return frame.where(arguments["filter"]) if arguments.text("filter") else frame


def bind(spark: Any, signature: Signature, parts: Sequence[Sequence[Token]]) -> Arguments:
    """The parameters of a call, by name and by place."""
    by_name = {each.name.lower(): each for each in signature.parameters}
    values: dict[str, Any] = {}
    for place, part in enumerate(parts):
        has_name = len(part) > 1 and part[0].is_name and part[1].says("=>")
        if has_name and part[0].name.lower() not in by_name:
            takes = ", ".join(each.name for each in signature.parameters)
            raise OptionError(f"CALL {signature.name} has no parameter {part[0].name}: it takes {takes}")
        if not has_name and place >= len(signature.parameters):
            raise OptionError(f"CALL {signature.name} takes {len(signature.parameters)} parameters at most")
        parameter = by_name[part[0].name.lower()] if has_name else signature.parameters[place]
        if parameter.name in values:
            raise OptionError(f"CALL {signature.name} names the parameter {parameter.name} twice")
        value = _value(spark, part[2:] if has_name else part)
        values[parameter.name] = _typed(signature, parameter, value)
    for parameter in signature.parameters:
        if parameter.is_required and values.get(parameter.name) is None:
            raise OptionError(f"CALL {signature.name} needs the parameter {parameter.name}")
        if values.get(parameter.name) is None:
            values[parameter.name] = _typed(signature, parameter, parameter.default)
    return Arguments(signature.name, values)


def _value(spark: Any, tokens: Sequence[Token]) -> Any:
    """Of an expression: literals are known here, Spark says what others are."""
    text = "".join(token.text for token in tokens)
    if len(tokens) == 1 and tokens[0].kind == "text" and "\\" not in text:
        return text_of(text)
    if _WHOLE.fullmatch(text):
        return int(text.rstrip("lL"))
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return spark.range(1).selectExpr(" ".join(token.text for token in tokens)).first()[0]


def _typed(signature: Signature, parameter: Parameter, value: Any) -> Any:
    if value is None:
        return None
    text = str(value).strip()
    match parameter.kind:
        case "int" | "bigint" if _WHOLE.fullmatch(text):
            return int(text)
        case "boolean" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case "string":
            return str(value)
    raise OptionError(f"CALL {signature.name}: {parameter.name} is of type {parameter.kind}, and {value!r} is none")


def _table(spark: Any, signature: Signature, arguments: Arguments) -> HoodieTable:
    name, path = arguments.text("table"), arguments.text("path")
    if signature.name == "commits_compare":
        path = ""  # of the other table
    if name:
        return sql_catalog.table_of(spark, name)
    if path:
        return HoodieTable.for_path(spark, path)
    raise OptionError(
        f"CALL {signature.name} needs the table: by name as table => '…', or by path => '…' where it has that"
    )


def _frame(spark: Any, signature: Signature, rows: Sequence[Sequence[Any]]) -> DataFrame:
    return arrow_frame(spark, in_columns(signature, rows))


def in_columns(signature: Signature, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """The rows under the names and in the types of the procedure's columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(signature.columns)
    arrays = [pa.array(column, _TYPES[kind]) for column, (_, kind) in zip(columns, signature.columns, strict=True)]
    return pa.table(arrays, names=[name for name, _ in signature.columns])


def _help(name: str) -> str:
    if not name:
        lines = [f"\t{each}\t{_about(each)}\n" for each in sorted(signatures())]
        return (
            "synopsis\n\tcall [command]([key1]=>[value1],[key2]=>[value2])\ncommands and description\n"
            + "".join(lines)
            + "You can use 'call help(cmd=>[command])' to view the detailed parameters of the command\n"
        )
    signature = signatures().get(name.strip().lower())
    if signature is None:
        raise OptionError(f"there is no procedure {name}: CALL help lists them all")
    names = {"int": "integer", "bigint": "long"}
    parameters = [("param", "type_name", "default_value", "required")]
    parameters += [
        (each.name, names.get(each.kind, each.kind), str(each.default), str(each.is_required).lower())
        for each in signature.parameters
    ]
    output = [
        ("name", "type_name", "nullable", "metadata"),
        *((name, names.get(kind, kind), "true", "{}") for name, kind in signature.columns),
    ]
    return f"parameters:\n{_aligned(parameters)}outputType:\n{_aligned(output)}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    return "".join("".join(f"\t{cell:<30}" for cell in row) + "\n" for row in rows)


def _about(name: str) -> str:
    if name in NOT_SERVED:
        return f"not here: {NOT_SERVED[name]}"
    procedure = {**WITHOUT_TABLE, **SHOWS, **ACTIONS}.get(name)
    return (
        (procedure.__doc__ or "").partition("\n")[0] if procedure else "Lists the procedures, or the parameters of one."
    )
