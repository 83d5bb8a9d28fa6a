"""Entries of a server's catalog for a Connect client: name, location and properties of hoodie tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.errors import PySparkException

from pyspark_hoodie import hook
from pyspark_hoodie.sql_words import quoted_name

_FACT = re.compile(r"^(Type|Provider|Location|Table Properties): (.*)$", re.MULTILINE)
_PROPERTY = re.compile(r"([\w.]+)=(.*?)(?=, [\w.]+=|$)")
_CATALOG = "spark_catalog"
HUDI = "hudi"
"""What Apache Hudi calls its format."""


class Entry(NamedTuple):
    name: str
    path: str
    properties: Mapping[str, str]


def entry_of(spark: Any, parts: Sequence[str]) -> Entry | None:
    """The table of ours with this name, given in its parts; None for everything else."""
    return entries_of(spark, [tuple(parts)]).get(tuple(parts))


def entries_of(spark: Any, names: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], Entry]:
    """Tables of ours among these names: of the catalog, asked once for each database, or `hoodie.path`."""
    result: dict[tuple[str, ...], Entry] = {}
    by_database: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for name in names:
        if len(name) == 2 and "/" in name[1]:
            if hook.is_ours(name[0]):
                result[name] = Entry(quoted_name(list(name)), name[1], {})
            continue
        plain = name[1:] if name[0].lower() == _CATALOG and len(name) > 1 else name
        if len(plain) <= 2:
            by_database[plain[:-1]].append(name)
    for database, of_database in by_database.items():
        for table_name, facts in _facts(spark, database, {name[-1] for name in of_database}).items():
            if hook.is_ours(facts.get("Provider", "")) and "Location" in facts:
                properties = dict(_PROPERTY.findall(facts.get("Table Properties", "").strip("[]")))
                for each in of_database:
                    if each[-1].lower() == table_name:
                        result[each] = Entry(".".join(each), facts["Location"], properties)
    return result


def _facts(spark: Any, database: tuple[str, ...], names: set[str]) -> dict[str, dict[str, str]]:
    """What Spark says of tables, by their names; temporary views hide them."""
    pattern = "|".join(sorted(name.replace("\\", "\\\\").replace("'", "\\'") for name in names))
    where = f"IN {quoted_name(list(database))} " if database else ""
    try:
        rows = spark.sql(f"SHOW TABLE EXTENDED {where}LIKE '{pattern}'").collect()
    except PySparkException:
        return {}  # Spark will say what is wrong with them
    hidden = {row["tableName"] for row in rows if row["isTemporary"]} if not database else set()
    return {
        row["tableName"]: dict(_FACT.findall(row["information"]))
        for row in rows
        if not row["isTemporary"] and row["tableName"] not in hidden
    }
