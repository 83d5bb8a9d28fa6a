"""An upsert that leaves rows with new keys out, as a MERGE without an INSERT is one."""

from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from hoodie.options.parse import parse_write_options
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


ONLY_STORED = replace(WriteOptions(), only_stored=True)


def write(table, rows, options=ONLY_STORED, **changed):
    options = replace(options, **changed)
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


@pytest.mark.parametrize("ordering", [None, "n"])
def test_rows_that_logs_delete_are_left_out(tmp_path, ordering):
    table = hoodie.create_table(
        tmp_path / "t",
        {"id": "int64", "n": "int64", "p": "string"},
        record_key="id",
        ordering=ordering,
        table_type="MERGE_ON_READ",
    )
    table.upsert({"id": range(9), "n": range(9), "p": ["a"] * 9})
    table.delete([1, 2, 3])
    assert write(table, pa.table({"id": [2, 4], "n": [20, 40], "p": ["b", "b"]}))
    write(table, pa.table({"id": [1], "n": [10], "p": ["b"]}))
    assert [row[:2] for row in rows_of(table)] == [(0, 0), (4, 40), (5, 5), (6, 6), (7, 7), (8, 8)]


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("ordering", [None, "n", "m"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_stored_rows_keep_columns_and_new_ones_get_all(tmp_path, kind, ordering, version):
    fields = {"id": "int64", "n": "int64", "m": "int64", "p": "string"}
    options = {"hoodie.write.table.version": version}
    made = hoodie.create_table(
        tmp_path / "t", fields, record_key="id", ordering=ordering, table_type=kind, options=options
    )
    made.upsert({"id": range(4), "n": [5] * 4, "m": [5] * 4, "p": ["a"] * 4})
    made.upsert({"id": [0], "n": [5], "m": [5], "p": ["log"]})
    rows = pa.table({"id": [0, 1, 2, 9], "n": [6, 6, 4, 6], "m": [9] * 4, "p": ["x"] * 4})
    write(made, rows, partial=True, set_columns=("id", "n"))
    low = 5 if ordering == "n" else 4  # it loses against the stored row
    assert [tuple(row.values()) for row in made.scan().to_arrow().sort_by("id").to_pylist()] == [
        (0, 6, 5, "log"),
        (1, 6, 5, "a"),
        (2, low, 5, "a"),
        (3, 5, 5, "a"),
    ]
    write(made, rows, partial=True, set_columns=("id", "n"), only_stored=False)
    assert made.scan(where="id = 9").to_arrow().to_pylist() == [{"id": 9, "n": 6, "m": 9, "p": "x"}]


def test_new_rows_of_a_global_index_get_all_columns(tmp_path):
    fields = {"id": "int64", "n": "int64", "m": "int64", "p": "string"}
    options = {"hoodie.index.type": "GLOBAL_BLOOM"}
    made = hoodie.create_table(tmp_path / "t", fields, record_key="id", partition_by="p", options=options)
    made.upsert({"id": [1, 2], "n": [1, 2], "m": [1, 2], "p": ["a", "b"]}, options)
    rows = pa.table({"id": [1, 2, 9], "n": [10, 20, 90], "m": [7] * 3, "p": ["a", "a", "c"]})
    parsed = parse_write_options(options).write
    write(made, rows, parsed, partial=True, set_columns=("id", "n", "p"))
    assert [tuple(row.values()) for row in made.scan().to_arrow().sort_by("id").to_pylist()] == [
        (1, 10, 1, "a"),
        (2, 20, 2, "a"),
        (9, 90, 7, "c"),
    ]
