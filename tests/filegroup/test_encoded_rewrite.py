"""Merges carry texts that repeat as numbers of a dictionary: the next file holds the same values, and none of dead ones."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.filegroup.base_writer import one_encoding
from hoodie.format.parquet_file import open_parquet

SCHEMA = pa.schema([("id", pa.string()), ("kind", pa.string()), ("note", pa.string()), ("n", pa.int64())])


def rows(ids, kinds, notes, n):
    return pa.table({"id": ids, "kind": kinds, "note": notes, "n": [n] * len(ids)}, schema=SCHEMA)


def base_files(folder):
    return sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path):
    made = hoodie.create_table(tmp_path / "t", SCHEMA, record_key="id", ordering="n", table_type=request.param)
    count = 4000
    made.bulk_insert(
        rows(
            [f"{i:05}" for i in range(count)],
            [("red", "green", None)[i % 3] for i in range(count)],
            [f"note {i}" if i % 7 else None for i in range(count)],
            0,
        )
    )
    return made


def settle(table):
    if table.config.table_type.value == "MERGE_ON_READ":
        table.compact()


def test_values_survive_merges_with_new_and_old_ones(table, tmp_path):
    expected = {r["id"]: r for r in table.scan().to_arrow().to_pylist()}
    for turn in range(1, 4):
        ids = [f"{i:05}" for i in range(turn, 4000, 500)] + [f"new-{turn}"]
        batch = rows(ids, [f"kind {turn}", None, "red", "green"] * 2 + ["blue"], [None] * len(ids), turn)
        table.upsert(batch)
        expected.update({r["id"]: r for r in batch.to_pylist()})
        table.delete(rows([f"{100 + turn:05}"], [None], [None], 0))
        del expected[f"{100 + turn:05}"]
        settle(table)
        assert {r["id"]: r for r in table.scan().to_arrow().to_pylist()} == expected
    for path in base_files(tmp_path / "t"):
        assert pq.read_schema(path).field("kind").type == pa.string()
        assert pq.read_table(path).column("_hoodie_file_name").unique().to_pylist() == [path.name]


def test_values_that_no_row_has_any_more_leave_the_dictionary(table, tmp_path):
    for turn in range(1, 6):
        table.upsert(rows(["00001"], [f"only in round {turn}"], ["x"], turn))
        settle(table)
    newest = base_files(tmp_path / "t")[-1]
    kinds = pq.read_table(newest, read_dictionary=["kind", "_hoodie_commit_time"])
    for name in ("kind", "_hoodie_commit_time"):
        column = kinds.column(name).unify_dictionaries().chunk(0)
        assert set(column.dictionary.to_pylist()) == set(column.to_pylist()) - {None}


def test_statistics_of_encoded_columns_are_those_of_their_rows(table, tmp_path):
    table.upsert(rows(["00001"], ["zzz"], ["x"], 1))
    settle(table)
    table.upsert(rows(["00001"], ["aaa"], ["x"], 2))
    settle(table)
    group = pq.read_metadata(base_files(tmp_path / "t")[-1]).row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
    assert (columns["kind"].min, columns["kind"].max, columns["kind"].null_count) == ("aaa", "red", 1333)


def test_one_encoding_joins_plain_and_encoded_pieces():
    plain = pa.table({"a": ["x", None], "b": ["1", "2"]})
    encoded = pa.table({"a": pa.array(["y", "x", "y"]).dictionary_encode(), "b": ["3", "4", "5"]})
    for pieces in ([plain, encoded], [encoded, plain], [plain], [encoded, plain, encoded]):
        joined = one_encoding(pieces)
        expected = [value for piece in pieces for value in piece.column("a").to_pylist()]
        assert joined.column("a").to_pylist() == expected
        assert joined.column("b").to_pylist() == [v for piece in pieces for v in piece.column("b").to_pylist()]


def test_columns_of_many_values_are_read_as_they_are(table, tmp_path):
    with pa.memory_map(str(base_files(tmp_path / "t")[0])) as source:
        file = open_parquet(source, path="f", encode={"id", "kind", "note", "n", "_hoodie_record_key"})
        types = {field.name: field.type for field in file.schema_arrow}
    assert pa.types.is_dictionary(types["kind"])
    assert types["id"] == types["note"] == types["_hoodie_record_key"] == pa.string()
    assert types["n"] == pa.int64()


def test_columns_without_a_dictionary_stay_without_one_and_new_columns_are_looked_at(table, tmp_path):
    before = encoded_columns(base_files(tmp_path / "t")[-1])
    assert "kind" in before
    assert not {"id", "note", "_hoodie_record_key"} & before
    wider = SCHEMA.append(pa.field("more", pa.string()))
    ids = [f"{i:05}" for i in range(4000)]
    batch = pa.table(
        {"id": ids, "kind": ["red"] * 4000, "note": ["x"] * 4000, "n": [1] * 4000, "more": ["y"] * 4000}, schema=wider
    )
    table.upsert(batch)
    settle(table)
    after = encoded_columns(base_files(tmp_path / "t")[-1])
    assert {"kind", "more"} <= after
    assert not {"id", "note", "_hoodie_record_key"} & after


def encoded_columns(path):
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {c.path_in_schema for c in columns if any("DICTIONARY" in encoding for encoding in c.encodings)}
