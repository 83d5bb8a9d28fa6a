"""Data blocks of the log files that an upsert writes: their format, size and codec, and what stands beside them."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.model.enums import BlockKind
from hoodie.model.names import ROW_COPIES, parse_log_file
from tests.memory_tables import Input, batch, keys, new_table, opened, plain

FORMAT, COPIES = "hoodie.logfile.data.block.format", "hoodie.python.mor.row.copies"
FIRST = [Input(f"k{n:02d}", "a", n, 10) for n in range(20)]
CHANGED = [row._replace(val=row.val + 100, ts=20) for row in FIRST[:12]]
AVRO, PARQUET = BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA


def upserted(options):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch(FIRST))
    opened(storage, clock).upsert(batch(CHANGED), options)
    return storage, opened(storage, clock)


def blocks(storage):
    logs = [info.path for info in storage.list("a") if parse_log_file(info.name)]
    found = [block for path in logs for block in scan_blocks(storage.read(path))]
    assert all(isinstance(block, LogBlock) for block in found)
    return found


def vals(table):
    return [row[2] for row in plain(table.scan(meta_columns=True))]


EXPECTED = [row.val for row in [*CHANGED, *FIRST[12:]]]


@pytest.mark.parametrize(
    ("options", "kind", "copies"),
    [
        ({}, AVRO, 1),
        ({FORMAT: "avro", COPIES: "false"}, AVRO, 0),
        ({FORMAT: "parquet"}, PARQUET, 0),
        ({FORMAT: "PARQUET", COPIES: "true"}, PARQUET, 1),
    ],
)
def test_the_format_is_an_option_and_rows_are_copied_beside_avro_unless_said_otherwise(options, kind, copies):
    storage, table = upserted(options)
    assert [block.kind for block in blocks(storage)] == [kind]
    assert len(storage.list(ROW_COPIES)) == copies
    assert vals(table) == EXPECTED


@pytest.mark.parametrize("name", ["avro", "parquet"])
def test_blocks_are_cut_at_their_greatest_size(name):
    storage, table = upserted({FORMAT: name, "hoodie.logfile.data.block.max.size": "500"})
    assert len(blocks(storage)) > 2
    assert vals(table) == EXPECTED


@pytest.mark.parametrize(("codec", "named"), [("zstd", "ZSTD"), ("gzip", "GZIP"), ("uncompressed", "UNCOMPRESSED")])
def test_parquet_blocks_have_the_codec_of_base_files(codec, named):
    storage, table = upserted({FORMAT: "parquet", "hoodie.parquet.compression.codec": codec})
    (block,) = blocks(storage)
    found = pq.ParquetFile(io.BytesIO(block.content)).metadata.row_group(0)
    assert {found.column(i).compression for i in range(found.num_columns)} == {named}
    assert vals(table) == EXPECTED


def test_keys_that_stand_in_parquet_blocks_only_are_found():
    """After a delete while a compaction is pending a key may stand in logs only: the next upsert must not insert it again."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    options = {FORMAT: "parquet"}
    opened(storage, clock).upsert(batch(FIRST), options)
    opened(storage, clock).delete(keys(FIRST[:1]))
    opened(storage, clock).schedule_compaction()
    again = [FIRST[0]._replace(val=200, ts=30)]
    opened(storage, clock).upsert(batch(again), options)
    opened(storage, clock).run_compaction()
    opened(storage, clock).upsert(batch([again[0]._replace(val=201, ts=31)]), options)
    assert vals(opened(storage, clock)) == [201, *(row.val for row in FIRST[1:])]
    opened(storage, clock).compact()
    assert vals(opened(storage, clock)) == [201, *(row.val for row in FIRST[1:])]


def test_one_write_s_format_says_nothing_about_the_next():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch(FIRST))
    for number, name in enumerate(["parquet", "avro", "parquet"]):
        rows = [row._replace(val=number, ts=20 + number) for row in FIRST]
        opened(storage, clock).upsert(batch(rows), {FORMAT: name})
    opened(storage, clock).delete(keys(FIRST[:3]), {FORMAT: "parquet"})
    assert [block.kind for block in blocks(storage)] == [PARQUET, AVRO, PARQUET, BlockKind.DELETE]
    assert vals(opened(storage, clock)) == [2] * 17
    opened(storage, clock).compact()
    assert vals(opened(storage, clock)) == [2] * 17


def test_where_texts_order_blocks_are_avro_whatever_is_asked(tmp_path):
    """Apache Hudi compares the text of another row of a Parquet block."""
    rows = pa.table({"id": ["a", "b"], "o": ["1", "2"]})
    for name, ordering in (("texts", "o"), ("commits", None)):
        table = hoodie.create_table(
            tmp_path / name, rows.schema, record_key="id", ordering=ordering, table_type="MERGE_ON_READ"
        )
        table.upsert(rows, {FORMAT: "parquet"})
        table.upsert(rows, {FORMAT: "parquet"})
        (log,) = (tmp_path / name).glob(".*.log.*")
        (block,) = scan_blocks(log.read_bytes())
        assert block.kind is (AVRO if ordering else PARQUET)
