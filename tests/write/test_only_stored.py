"""An upsert that leaves rows with new keys out, as a MERGE without an INSERT is one."""

from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from hoodie.options.write import WriteOptions


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path):
    made = hoodie.create_table(
        tmp_path / "t",
        {"id": "int64", "n": "int64", "p": "string"},
        record_key="id",
        partition_by="p",
        table_type=request.param,
    )
    made.upsert({"id": [1, 2, 3], "n": [1, 2, 3], "p": ["a", "a", "b"]})
    return made


def write(table, rows):
    options = replace(WriteOptions(), only_stored=True)
    return table.writer.write(
        rows.to_reader(), rows.schema, WriteOperation.UPSERT, options, engine=LocalEngine()
    ).instant


def rows_of(table):
    return sorted(map(tuple, (row.values() for row in table.scan(["id", "n", "p"]).to_arrow().to_pylist())))


def test_rows_of_new_keys_are_left_out(table):
    assert write(table, pa.table({"id": [2, 3, 4], "n": [20, 30, 40], "p": ["a", "a", "c"]}))
    assert rows_of(table) == [(1, 1, "a"), (2, 20, "a"), (3, 3, "b")]


def test_without_a_stored_key_there_is_no_commit(table):
    assert write(table, pa.table({"id": [3, 4], "n": [30, 40], "p": ["a", "c"]})) is None
    assert len(table.timeline.instants) == 1


def test_deletes_among_them_go_by_their_places(table):
    rows = pa.table(
        {
            RECORD_KEY: ["1", "3", "9"],
            PARTITION_PATH: ["a", "b", "a"],
            DELETED: [True, False, True],
            "id": [1, 3, 9],
            "n": [None, 30, None],
            "p": ["a", "b", "a"],
        }
    )
    assert write(table, rows)
    assert rows_of(table) == [(2, 2, "a"), (3, 30, "b")]
