"""Rows of every type that a table stores come back into it from whatever they were read as."""

import pandas as pd
import pytest

import hoodie
from hoodie.read.scan import pandas_of
from tests.every_type import ROWS


def polars(scan):
    pytest.importorskip("polars")
    return scan.to_polars()


def duckdb(scan):
    db = pytest.importorskip("duckdb")
    rows = scan.to_arrow()  # noqa: F841
    return db.sql("select * from rows")


FORMS = {
    "list of dicts": lambda scan: scan.to_arrow().to_pylist(),
    "maps as dicts": lambda scan: scan.to_arrow().to_pylist(maps_as_pydicts="strict"),
    "dict of lists": lambda scan: scan.to_arrow().to_pydict(),
    "pandas": lambda scan: scan.to_pandas(),
    "pandas of arrow": lambda scan: scan.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": polars,
    "duckdb": duckdb,
    "arrow": lambda scan: scan.to_arrow(),
    "frames of one row": lambda scan: (pandas_of(scan.to_arrow().slice(n, 1)) for n in reversed(range(5))),
    "arrow of one row": lambda scan: (scan.to_arrow().slice(n, 1) for n in range(5)),
}


def rows_of(table):
    return table.scan().to_arrow().sort_by("id").combine_chunks()


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path_factory):
    found = hoodie.create_table(
        tmp_path_factory.mktemp("t") / "t", ROWS.schema, record_key="id", table_type=request.param
    )
    found.upsert(ROWS)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_table_takes_its_own_rows_as_whatever_they_were_read(table, form):
    before = rows_of(table)
    assert table.upsert(FORMS[form](table.scan())).updated == 5
    assert table.schema.equals(before.schema)
    assert rows_of(table).equals(before)
