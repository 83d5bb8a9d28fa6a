"""Log files made of blocks, scanned down to one entry a key."""

import io
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError, TableNotFoundError, UnsupportedTableError
from hoodie.filegroup.log_scan import read_log_records
from hoodie.format.avro_schema import avro_from_arrow, with_meta_columns
from hoodie.format.log_block import encode_block
from hoodie.model.enums import BlockKind, HeaderKey, MergeMode
from hoodie.model.files import FileGroupId, FileSlice, LogFile
from hoodie.model.instant import VisibleInstants
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.names import PROPERTIES
from hoodie.model.plans import DeleteMarker, Merger, MergeRule
from tests.log_blocks import COLUMNS, data, deletes, t
from tests.log_scans import COMMIT, EVENT, WANTED, scan, undo
from tests.memory_tables import FakeClock, new_storage


def live(found):
    return {row[RECORD_KEY]: row["val"] for row in found.data.to_pylist()}


def dead(found):
    return found.keys.to_pylist()[found.live :]


def test_no_logs_say_nothing():
    found = scan()
    assert (found.data.schema, found.data.num_rows, len(found.keys), found.blocks, found.live) == (WANTED, 0, 0, 0, 0)
    assert found.ordering.type == pa.int64()


def test_records_are_reduced_to_one_a_key_data_first_and_then_deletes():
    found = scan(
        [data(1, ("a", 1, "a1"), ("b", 5, "b1"), ("c", 1, "c1"))],
        [deletes(2, ("c", 2)), data(3, ("b", 4, "b3"), ("a", 1, "a3"))],
    )
    assert live(found) == {"a": "a3", "b": "b1"}
    assert found.keys.to_pylist() == ["b", "a", "c"]
    assert found.ordering.to_pylist() == [5, 1, 2]
    assert found.commit_time_deletes.tolist() == [False, False, False]
    assert (found.blocks, found.records, found.live) == (3, 6, 2)


def test_without_an_ordering_field_the_last_entry_counts():
    schema = WANTED.remove(1)
    found = scan(
        [data(1, ("a", 9, "a1"), ("b", 9, "b1"))],
        [deletes(2, ("b", None)), data(3, ("a", 1, "a3"))],
        rule=COMMIT,
        schema=schema,
    )
    assert (live(found), dead(found), found.ordering) == ({"a": "a3"}, ["b"], None)
    assert found.commit_time_deletes.tolist() == [False, True]


def test_a_delete_without_a_value_always_wins_over_what_came_before_and_a_late_one_loses():
    found = scan([data(1, ("a", 9, "a1"), ("b", 9, "b1"))], [deletes(2, ("a", None), ("b", 8))])
    assert (live(found), dead(found)) == ({"b": "b1"}, ["a"])
    assert found.commit_time_deletes.tolist() == [False, True]


def test_what_comes_after_a_delete_without_a_value_replaces_it():
    assert live(scan([deletes(1, ("a", None))], [data(2, ("a", -5, "a2"))])) == {"a": "a2"}


def test_rows_marked_as_deleted_are_deletes_with_their_ordering_value():
    found = scan(
        [data(1, ("a", 1, "a1"), ("b", 5, "b1"), ("c", 1, "c1"))],
        [data(2, ("a", 2, "", True), ("b", 4, "", True), ("c", 3, "c2", False))],
    )
    assert (live(found), dead(found)) == ({"b": "b1", "c": "c2"}, ["a"])
    assert found.ordering.to_pylist()[found.live :] == [2]
    assert not found.commit_time_deletes.any()


def test_rows_marked_as_deleted_without_an_ordering_value_always_win():
    found = scan([data(1, ("a", 7, "a1"))], [data(2, ("a", None, "", True))])
    assert (live(found), dead(found), found.commit_time_deletes.tolist()) == ({}, ["a"], [True])


def test_a_rollback_block_kills_the_blocks_of_its_target_that_came_before():
    files = [data(1, ("a", 1, "a1"))], [data(2, ("a", 2, "a2"), ("b", 1, "b2"))], [undo(3, 2)]
    assert live(scan(*files)) == {"a": "a1"}
    assert live(scan(*files, [data(2, ("b", 1, "again"))])) == {"a": "a1", "b": "again"}


def test_a_rollback_block_of_an_unknown_instant_does_nothing_and_counts_whoever_wrote_it():
    assert live(scan([data(1, ("a", 1, "a1"))], [undo(3, 7)])) == {"a": "a1"}
    assert live(scan([data(1, ("a", 1, "a1"))], [undo(99, 1)])) == {}


def test_blocks_go_by_the_first_appearance_of_their_instant():
    # Instant 2 began first: its second block is merged before that of instant 1, which came in between.
    found = scan([data(2, ("a", 1, "first of 2")), data(1, ("a", 1, "of 1")), data(2, ("a", 1, "second of 2"))])
    assert live(found) == {"a": "of 1"}


def test_a_rolled_back_instant_that_wrote_again_stands_where_it_wrote_again():
    found = scan([data(2, ("a", 1, "lost"))], [undo(3, 2), data(1, ("a", 1, "of 1")), data(2, ("a", 1, "again"))])
    assert live(found) == {"a": "again"}


def test_blocks_of_pending_and_of_unknown_instants_are_not_seen():
    files = [data(1, ("a", 1, "a1"))], [data(2, ("a", 2, "a2"))], [data(3, ("a", 3, "a3"))]
    assert live(scan(*files, completed=[1], pending=[2])) == {"a": "a1"}
    assert live(scan(*files, completed=[1, 3], pending=[2])) == {"a": "a3"}
    assert live(scan(*files, until=t(2))) == {"a": "a2"}
    assert live(scan(*files, until=t(2), since=t(2))) == {}


def test_blocks_older_than_the_active_timeline_are_seen():
    assert live(scan([data(0, ("a", 1, "archived"))], committed=[None])) == {"a": "archived"}


def test_a_log_file_that_a_completed_commit_does_not_name_is_not_read():
    files = [data(1, ("a", 1, "a1"))], [data(1, ("a", 2, "stray"))]
    assert live(scan(*files, committed=[1, None])) == {"a": "a1"}
    assert live(scan(*files, committed=[1, 0])) == {"a": "stray"}  # named without a size


def test_an_empty_log_file_says_nothing_unless_a_commit_wrote_more():
    assert live(scan([], [data(1, ("a", 1, "a1"))], committed=[0, 1])) == {"a": "a1"}
    assert live(scan([], committed=[None])) == {}


def test_a_damaged_block_inside_the_committed_size_is_an_error_with_file_and_byte():
    first, second = data(1, ("a", 1, "a1")), data(2, ("a", 2, "a2"))
    damaged = second[:-20] + b"\0" * 20
    with pytest.raises(CorruptFileError) as told:
        scan([first, damaged])
    name = f".f_{t(0)}.log.1_0-0-0"
    assert f"{name} of table memory://" in str(told.value)
    assert f"is damaged at byte {len(first)} (" in str(told.value)
    assert f"inside the {len(first) + len(second)} bytes that its commit wrote" in str(told.value)


@pytest.mark.parametrize("cut", [1, 7, 20, 60, 200])
def test_a_torn_tail_behind_the_committed_size_is_skipped(cut):
    first, second = data(1, ("a", 1, "a1")), data(2, ("a", 2, "a2"))
    assert live(scan([first, second[:cut]], committed=[len(first)])) == {"a": "a1"}
    if cut > 6:
        with pytest.raises(CorruptFileError, match=f"at byte {len(first)}"):
            scan([first, second[:cut]], committed=[len(first) + 1])


def test_a_whole_block_behind_a_torn_one_is_read():
    first, second, third = (data(n, ("a", n, f"a{n}")) for n in (1, 2, 3))
    assert live(scan([first, second[:50], third], committed=[len(first)])) == {"a": "a3"}


def test_payloads_that_do_not_decode_are_told_with_the_file():
    header = {HeaderKey.INSTANT_TIME: t(1)}
    name = rf"^\.f_{t(0)}\.log\.1_0-0-0: "
    with pytest.raises(CorruptFileError, match=name + "the data block at byte 0 has no schema"):
        scan([encode_block(BlockKind.AVRO_DATA, header, b"")])
    avro = json.dumps(with_meta_columns(avro_from_arrow(COLUMNS, table_name="t")))
    for kind in (BlockKind.AVRO_DATA, BlockKind.DELETE, BlockKind.PARQUET_DATA):
        with pytest.raises(CorruptFileError, match=name):
            scan([encode_block(kind, {**header, HeaderKey.SCHEMA: avro}, b"\0\0\0\3nonsense")])
    with pytest.raises(UnsupportedTableError, match=name):
        scan([encode_block(BlockKind.AVRO_DATA, {**header, HeaderKey.SCHEMA: avro}, b"\0\0\0\x63" + b"\0" * 4)])


def test_blocks_that_cannot_be_merged_are_unsupported():
    header = {HeaderKey.INSTANT_TIME: t(1)}
    with pytest.raises(UnsupportedTableError, match="holds a CDC_DATA block"):
        scan([encode_block(BlockKind.CDC_DATA, header, b"x")])
    merged = MergeRule(MergeMode.CUSTOM, ("ts",))
    with pytest.raises(UnsupportedTableError, match=r"\.log\.1_0-0-0 of table .* a payload of its own"):
        scan([data(1, ("a", 1, "a1"))], rule=merged)
    with pytest.raises(UnsupportedTableError, match="merges records by sums"):
        scan([data(1, ("a", 1, "a1"))], rule=replace(merged, merger=Merger("sums", None)))


def test_what_a_log_compaction_wrote_stands_for_its_inputs_at_the_place_of_the_newest():
    files = (
        [data(1, ("a", 5, "a1"), ("b", 1, "b1"))],
        [data(2, ("a", 4, "a2"), ("c", 1, "c2"))],
        [data(4, ("b", 1, "b4"))],
        [data(3, ("a", 5, "a1 again"), ("b", 1, "b1 again"), ("c", 1, "c2 again"), of=(1, 2))],
    )
    assert live(scan(*files)) == {"a": "a1 again", "b": "b4", "c": "c2 again"}
    assert live(scan(*files, completed=[1, 2, 4], pending=[3])) == {"a": "a1", "b": "b4", "c": "c2"}
    # Not a change of its own: a pull from the newest input on does not see it.
    assert live(scan(*files, since=t(2))) == {"b": "b4"}
    assert live(scan(*files, since=t(1))) == {"a": "a1 again", "b": "b4", "c": "c2 again"}


def test_outputs_of_log_compactions_may_be_inputs_of_others():
    files = (
        [data(1, ("a", 1, "a1"))],
        [data(2, ("a", 1, "of 1"), of=(1,))],
        [data(3, ("a", 1, "a3"))],
        [data(4, ("a", 1, "of 1 and 3"), of=(2, 3))],
        [data(5, ("b", 1, "b5"))],
    )
    assert live(scan(*files)) == {"a": "of 1 and 3", "b": "b5"}


LOG_COMPACTED = (
    [data(1, ("a", 5, "a1"), ("b", 1, "b1"))],
    [data(2, ("a", 4, "a2"), ("c", 1, "c2"))],
    [data(4, ("b", 1, "b4"))],
    [data(3, ("a", 5, "a1 again"), ("b", 1, "b1 again"), ("c", 1, "c2 again"), of=(1, 2))],
)
SAID = [[(1, 2)], [(2, 2)], [(4, 1)], [(3, 3)]]


def test_files_that_the_output_of_a_log_compaction_stands_for_are_not_opened():
    unreadable = ([b"no block"], [b"none either"], *LOG_COMPACTED[2:])
    sizes = [None, None, *(len(b"".join(blocks)) for blocks in LOG_COMPACTED[2:])]
    stands = {4: (1, 2)}
    assert live(scan(*unreadable, said=SAID, stands=stands, committed=sizes)) == {
        "a": "a1 again",
        "b": "b4",
        "c": "c2 again",
    }
    # A pull, and a reader of a moment before it, open them.
    assert live(scan(*LOG_COMPACTED, said=SAID, stands=stands, since=t(2))) == {"b": "b4"}
    assert live(scan(*LOG_COMPACTED, said=SAID, stands=stands, since=t(1)))["a"] == "a1 again"
    before = {"a": "a1", "b": "b4", "c": "c2"}
    assert live(scan(*LOG_COMPACTED, said=SAID, stands=stands, completed=[1, 2, 4], pending=[3])) == before
    assert live(scan(*LOG_COMPACTED, said=SAID, stands=stands, until=t(2)))["a"] == "a1"


def test_a_file_with_a_newer_block_is_opened_whatever_the_output_of_a_log_compaction_stands_for():
    """Apache Hudi's writers append to files."""
    files = (LOG_COMPACTED[0], [*LOG_COMPACTED[1], data(5, ("c", 2, "c5"))], *LOG_COMPACTED[2:])
    found = scan(*files, said=[SAID[0], [(2, 2), (5, 1)], *SAID[2:]], stands={4: (1, 2)})
    assert live(found) == {"a": "a1 again", "b": "b4", "c": "c5"}


@pytest.mark.parametrize("lost", [2, 3])
def test_a_block_that_is_missing_beside_a_log_compaction_is_noticed(lost):
    files = [*LOG_COMPACTED]
    files[lost] = [data(8, ("z", 1, "z8"))]
    with pytest.raises(CorruptFileError, match=f"records and deletes of instant {t(4 if lost == 2 else 3)} were found"):
        scan(*files, said=SAID, stands={4: (1, 2)})


@pytest.mark.parametrize("kind", [BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA])
def test_columns_that_a_partial_block_lacks_keep_the_older_value(kind):
    narrow = pa.schema([("ts", pa.int64())])
    schema = WANTED.append(pa.field("more", pa.int64()))
    full = pa.schema([*COLUMNS, ("more", pa.int64())])
    found = scan(
        [data(1, ("a", 5, "a1", None, 7), ("b", 5, "b1", None, 8), schema=full)],
        [data(2, ("a", 6), ("b", 4), ("c", 1), schema=narrow, partial=True, kind=kind)],
        schema=schema,
    )
    assert {row[RECORD_KEY]: (row["ts"], row["val"], row["more"]) for row in found.data.to_pylist()} == {
        "a": (6, "a1", 7),
        "b": (5, "b1", 8),
        "c": (1, None, None),
    }
    there = dict(zip(found.data[RECORD_KEY].to_pylist(), found.present["val"].tolist()))
    assert there == {"a": True, "b": True, "c": False}


def test_a_delete_in_a_block_does_not_replace_one_that_always_wins():
    # So a base row with a greater ordering value stays deleted (golden histories of integration/test_merging_with_hudi.py).
    found = scan([deletes(1, ("a", None))], [deletes(2, ("a", 3))])
    assert (dead(found), found.commit_time_deletes.tolist()) == (["a"], [True])
    assert live(scan([deletes(1, ("a", None))], [deletes(2, ("a", 3))], [data(3, ("a", 1, "a3"))])) == {"a": "a3"}
    found = scan([deletes(1, ("a", None))], [data(2, ("a", 3, "", True))])
    assert found.commit_time_deletes.tolist() == [False]


def test_rows_are_deletes_by_a_marker_in_any_column_or_by_their_operation():
    schema = pa.schema([*COLUMNS, ("kind", pa.int32()), ("_hoodie_operation", pa.string())])
    block = data(
        1,
        ("a", 1, "x", None, 9, "I"),
        ("b", 1, "x", None, 1, "U"),
        ("c", 1, "x", None, 1, "D"),
        ("d", 1, "x", None, 1, "-U"),
        schema=schema,
    )
    assert sorted(dead(scan([block]))) == ["c", "d"]
    marker = replace(EVENT, delete_marker=DeleteMarker("kind", "9"))
    assert sorted(dead(scan([block], rule=marker))) == ["a", "c", "d"]


def test_a_log_file_that_is_gone_is_told():
    piece = FileSlice(FileGroupId("p", "f"), t(0), None, (LogFile("p", "f", t(0), 1, ".f.log.1", 5, 5),))
    visible = VisibleInstants(frozenset(), frozenset(), t(1))
    storage = new_storage(FakeClock())
    with pytest.raises(TableNotFoundError, match="it was deleted during this operation"):
        read_log_records(storage, piece, WANTED, rule=EVENT, visible=visible)
    storage.create_new(PROPERTIES, b"")
    with pytest.raises(CorruptFileError, match=r"p/\.f\.log\.1 of table .* is gone"):
        read_log_records(storage, piece, WANTED, rule=EVENT, visible=visible)


def test_blocks_of_an_older_schema_get_nulls_and_wider_types():
    old = pa.schema([("ts", pa.int32())])
    found = scan([data(1, ("a", 1), schema=old)], [data(2, ("b", 2, "b2"))])
    assert live(found) == {"a": None, "b": "b2"}
    assert found.ordering.type == pa.int64()


def test_parquet_blocks_are_data_too():
    rows = pa.table({RECORD_KEY: ["a", "b"], "ts": [5, 1], "val": ["a2", "b2"]})
    out = io.BytesIO()
    pq.write_table(rows, out)
    block = encode_block(BlockKind.PARQUET_DATA, {HeaderKey.INSTANT_TIME: t(2)}, out.getvalue())
    assert live(scan([data(1, ("a", 3, "a1"), ("b", 3, "b1"))], [block])) == {"a": "a2", "b": "b1"}


def test_parquet_and_avro_blocks_of_one_slice_are_merged_as_they_come():
    parquet = BlockKind.PARQUET_DATA
    files = [
        [data(1, ("a", 1, "a1"), ("b", 5, "b1"), ("c", 1, "c1"), kind=parquet)],
        [deletes(2, ("c", 2)), data(3, ("b", 4, "b3"), ("a", 1, "a3"))],
        [data(4, ("d", 1, "d4"), ("e", 1, "", True), kind=parquet), undo(6, 5), data(5, ("a", 9, "a5"), kind=parquet)],
        [undo(7, 5)],
    ]
    found = scan(*files)
    assert live(found) == {"a": "a3", "b": "b1", "d": "d4"}
    assert sorted(dead(found)) == ["c", "e"]
    assert (found.blocks, found.records) == (4, 8)


def test_parquet_blocks_of_an_older_schema_get_nulls_and_wider_types():
    old = pa.schema([("ts", pa.int32())])
    found = scan([data(1, ("a", 1), schema=old, kind=BlockKind.PARQUET_DATA)], [data(2, ("b", 2, "b2"))])
    assert live(found) == {"a": None, "b": "b2"}
    assert found.ordering.type == pa.int64()


@pytest.mark.parametrize("kind", [BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA])
def test_a_damaged_record_is_told_with_the_file(kind):
    good = data(1, ("a", 1, "some text" * 20), kind=kind)
    at = good.index(b"some text")
    with pytest.raises(CorruptFileError, match=r"log\.1_0-0-0"):
        scan([good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]])
