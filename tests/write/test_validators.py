"""A commit that does not hold what validators ask is not made."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any

import pytest

import hoodie
from hoodie.errors import CommitRefusedError, HoodieError, OptionError
from hoodie.options.parse import parse_write_options

PREFIX = "hoodie.precommit.validators"
CLASS = "org.apache.hudi.client.validator.SqlQuery{}PreCommitValidator"
NAMES = {"equality": "Equality", "inequality": "Inequality", "single.value": "SingleResult"}


def checked(kind: str, queries: str, **more: str) -> dict[str, str]:
    return {PREFIX: CLASS.format(NAMES[kind]), f"{PREFIX}.{kind}.sql.queries": queries, **more}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest) -> hoodie.HoodieTable:
    return hoodie.create_table(
        f"memory://{secrets.token_hex(8)}",
        {"id": "int64", "city": "string", "fare": "int64"},
        record_key="id",
        partition_by="city",
        table_type=request.param,
    )


def rows(*ids: int, city: str = "rome", fare: int | None = 1) -> list[dict[str, Any]]:
    return [{"id": n, "city": city, "fare": fare} for n in ids]


def ids(table: hoodie.HoodieTable) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow().column("id").to_pylist())


NO_NULLS = "SELECT count(*) FROM <TABLE_NAME> WHERE fare IS NULL"


@pytest.mark.parametrize(
    ("kind", "queries", "passes"),
    [
        ("equality", NO_NULLS, True),
        ("equality", "SELECT count(*) FROM <TABLE_NAME>", False),
        ("inequality", "SELECT count(*) FROM <TABLE_NAME>", True),
        ("inequality", NO_NULLS, False),
        ("single.value", f"{NO_NULLS}#0;SELECT count(*) > 2 FROM <TABLE_NAME>#true", True),
        ("single.value", f"{NO_NULLS}#0;SELECT count(*) FROM <TABLE_NAME>#7", False),
    ],
)
def test_a_commit_is_made_where_its_queries_hold(
    table: hoodie.HoodieTable, kind: str, queries: str, passes: bool
) -> None:
    table.insert(rows(1, 2))
    if passes:
        table.insert(rows(3), options=checked(kind, queries))
    else:
        with pytest.raises(CommitRefusedError, match=r"(?s)SELECT count.* nothing of this write is visible"):
            table.insert(rows(3), options=checked(kind, queries))
    assert ids(table) == ([1, 2, 3] if passes else [1, 2])
    table.insert(rows(4))
    assert ids(table) == ([1, 2, 3, 4] if passes else [1, 2, 4])


def test_only_the_partitions_of_the_write_are_seen(table: hoodie.HoodieTable) -> None:
    table.insert(rows(1, 2, city="oslo", fare=None))
    table.insert(rows(3), options=checked("single.value", f"{NO_NULLS}#0"))
    with pytest.raises(CommitRefusedError):
        table.insert(rows(4, city="oslo"), options=checked("single.value", f"{NO_NULLS}#0"))
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("operation", ["insert_overwrite", "bulk_insert", "delete_partition"])
def test_every_way_of_writing_is_checked(operation: str) -> None:
    t = hoodie.create_table(
        f"memory://{secrets.token_hex(8)}", {"id": "int64", "city": "string"}, record_key="id", partition_by="city"
    )
    t.insert([{"id": 1, "city": "rome"}, {"id": 2, "city": "oslo"}])
    options = checked("single.value", "SELECT count(*) FROM <TABLE_NAME>#99")
    write = partial(t.write, [{"id": 3, "city": "rome"}], operation, options=options)
    with pytest.raises(CommitRefusedError):
        write() if operation != "delete_partition" else t.delete_partitions(["rome"], options=options)
    assert ids(t) == [1, 2]


def test_an_overwrite_sees_what_stays(table: hoodie.HoodieTable) -> None:
    table.insert(rows(1, 2))
    options = checked("single.value", "SELECT count(*) FROM <TABLE_NAME>#1")
    table.insert_overwrite(rows(3), options=options)
    assert ids(table) == [3]


def test_a_failure_may_be_a_warning(table: hoodie.HoodieTable, caplog: pytest.LogCaptureFixture) -> None:
    warns = {f"{PREFIX}.failure.policy": "WARN_LOG"}
    table.insert(rows(1), options=checked("single.value", f"{NO_NULLS}#9", **warns))
    assert ids(table) == [1]
    assert "the commit is made all the same" in caplog.text


def test_a_query_that_cannot_be_run_stops_the_write(table: hoodie.HoodieTable) -> None:
    with pytest.raises(HoodieError, match="cannot be run"):
        table.insert(rows(1), options=checked("equality", "SELEC 1 FROM <TABLE_NAME>"))
    assert ids(table) == []


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({PREFIX: "a.B"}, "validators written in Java are not run"),
        ({PREFIX: CLASS.format("Equality")}, r"which needs .*equality\.sql\.queries"),
        ({f"{PREFIX}.equality.sql.queries": "SELECT 1"}, "is not queries over <TABLE_NAME>"),
        ({f"{PREFIX}.single.value.sql.queries": NO_NULLS}, "each as query#value"),
    ],
)
def test_what_makes_no_sense_is_named(options: dict[str, str], match: str) -> None:
    with pytest.raises(OptionError, match=match):
        parse_write_options(options)
