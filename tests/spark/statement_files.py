"""Statements of SQL with what they give, from the files in `sql/`: each begins with what is expected of it."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

import hoodie

FILES = {path.stem: path for path in sorted((Path(__file__).parent / "sql").glob("*.test"))}


class Statement(NamedTuple):
    line: int
    expected: str
    """`statement ok`, `statement error <pattern>`, `commits <how many it makes>`, `query`, or `query <numbers of columns>`."""
    text: str
    rows: list[str] | None


def statements_of(text):
    found = []
    for block in re.finditer(r"^(?!#)(\S[^\n]*)\n((?:[^\n]+\n?)+)", text, re.MULTILINE):
        body, dashes, rows = block[2].partition("----")
        line = text[: block.start()].count("\n") + 1
        found.append(Statement(line, block[1], body.strip(), rows.strip("\n").split("\n") if dashes else None))
    return found


def shown(row):
    return " ".join("NULL" if value is None else str(value) for value in row)


def commits_of(spark, database):
    """How many commits all tables of the database have."""
    warehouse = Path(
        spark.sql(f"DESCRIBE DATABASE {database}").where("info_name = 'Location'").first()[1].removeprefix("file:")
    )
    tables = [path for path in warehouse.iterdir() if (path / ".hoodie").is_dir()]
    return sum(len(hoodie.open_table(str(path)).timeline.commits) for path in tables)


def run(spark, statement, database, table_type, version):
    properties = f"type = '{table_type}', 'hoodie.write.table.version' = '{version}'"
    text = statement.text.format(db=database, type=properties)
    word, _, rest = statement.expected.partition(" ")
    match word, rest.split(" ", 1):
        case "statement", ["ok"]:
            spark.sql(text)
        case "statement", ["error", pattern]:
            with pytest.raises(Exception, match=pattern):
                spark.sql(text).collect()
        case "commits", [count]:
            before = commits_of(spark, database)
            spark.sql(text)
            assert commits_of(spark, database) - before == int(count), f"commits of line {statement.line}"
        case "query", _:
            columns = [int(number) for number in rest.split()]
            rows = [tuple(row) for row in spark.sql(text).collect()]
            found = [shown([row[at] for at in columns] if columns else row) for row in rows]
            assert found == [row for row in statement.rows if row], f"rows of line {statement.line}"
        case _:
            raise ValueError(f"line {statement.line}: {statement.expected}")
