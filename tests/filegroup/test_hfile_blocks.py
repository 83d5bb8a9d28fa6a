"""Logs of data tables with HFile data blocks: read, written on beside them, and compacted."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.avro_encode import encode_records
from hoodie.format.log_block import encode_block, scan_blocks
from hoodie.format.log_content import decode_avro_data
from hoodie.metadata.payload import encode_hfile
from hoodie.model.enums import BlockKind, HeaderKey
from tests.rows import rows_of

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])


def rows(ids, ts):
    return pa.table(
        {"id": [f"k{n:03d}" for n in ids], "n": [n * ts for n in ids], "ts": [ts] * len(ids)}, schema=SCHEMA
    )


def table_of(path, version, *, key="id"):
    """Its log has an Avro block and one that only deletes."""
    names = [key, "n", "ts"]
    options = {"hoodie.write.table.version": version, "hoodie.python.mor.row.copies": "false"}
    schema = pa.schema([field.with_name(name) for field, name in zip(SCHEMA, names, strict=True)])
    made = hoodie.create_table(path, schema, record_key=key, table_type="MERGE_ON_READ", ordering="ts", options=options)
    made.upsert(rows(range(30), 1).rename_columns(names))
    made.upsert(rows([21, 3, 7], 2).rename_columns(names))
    made.delete(rows([4], 3).rename_columns(names))
    return made


def with_hfiles(path, *, damage=lambda content: content):
    """The Avro blocks of its logs as Apache Hudi writes HFile ones: records by their keys, in the order of these."""
    found = 0
    for log in Path(path).rglob(".*.log.*"):
        blocks = []
        for block in scan_blocks(log.read_bytes()):
            kind, content = block.kind, bytes(block.content)
            if kind is BlockKind.AVRO_DATA:
                schema = block.header[HeaderKey.SCHEMA]
                table = decode_avro_data(content, schema).sort_by("_hoodie_record_key")
                keys = table.column("_hoodie_record_key").combine_chunks().cast(pa.binary()).cast(pa.large_binary())
                kind, content = (
                    BlockKind.HFILE_DATA,
                    damage(encode_hfile(keys, encode_records(table, json.loads(schema)), schema)),
                )
                found += 1
            blocks.append(encode_block(kind, block.header, content))
        log.write_bytes(b"".join(blocks))
    return found


@pytest.mark.parametrize("version", ["6", "9"])
def test_views_writes_and_compactions(tmp_path, version):
    table = table_of(tmp_path, version)
    views = {
        "scan": lambda: hoodie.open_table(tmp_path).scan(),
        "lookup": lambda: hoodie.open_table(tmp_path).lookup(["k003", "k004", "k005"]),
        "changes": lambda: hoodie.open_table(tmp_path).changes(since=table.history()[-3]),
    }
    before = {name: rows_of(view().to_arrow()) for name, view in views.items()}
    assert with_hfiles(tmp_path) == 1
    assert {name: rows_of(view().to_arrow()) for name, view in views.items()} == before
    assert len(before["scan"]) == 29
    again = hoodie.open_table(tmp_path)
    again.upsert(rows([3, 9], 5))
    expected = rows_of(again.scan().to_arrow())
    assert again.compact()
    assert rows_of(hoodie.open_table(tmp_path).scan(query="read_optimized").to_arrow()) == expected
    assert hoodie.open_table(tmp_path).lookup(["k003", "k007"]).to_arrow().sort_by("id").column("n").to_pylist() == [
        15,
        14,
    ]


def test_records_that_are_not_whole_are_refused(tmp_path):
    """Apache Hudi leaves a column of this name out of them."""
    table_of(tmp_path, "9", key="key")
    with_hfiles(tmp_path)
    with pytest.raises(UnsupportedTableError, match="in place of the column 'key'"):
        hoodie.open_table(tmp_path).scan().to_arrow()


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"no HFile", lambda _: b""])
def test_a_damaged_one_names_its_file(tmp_path, damage):
    table_of(tmp_path, "9")
    with_hfiles(tmp_path, damage=damage)
    with pytest.raises(CorruptFileError, match=r"\.log\.1_"):
        hoodie.open_table(tmp_path).scan().to_arrow()
