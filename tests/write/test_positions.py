"""Which rows of their base file the records of log blocks are about, as the blocks' headers state it."""

import io

import pyarrow.parquet as pq
import pytest

from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.log_content import decode_avro_data, decode_deletes
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.meta_fields import RECORD_KEY
from tests.bitmaps import decoded
from tests.memory_tables import Input, batch, keys, new_table, opened

FIRST = [Input(f"k{n}", part, n, 10) for part in "ab" for n in (5, 3, 8, 1, 9, 2)]
CHANGED = [Input(f"k{n}", part, 100 + n, 20) for part in "ab" for n in (9, 5, 2)]


def table_of(version="9", options=None, **more):
    storage, clock = new_table(table_type="MERGE_ON_READ", more={"hoodie.write.table.version": version}, **more)
    table = opened(storage, clock, options)
    table.upsert(batch(FIRST))
    return storage, table


def check_blocks(storage, table):
    """Of each block of the newest slices the record keys, and whether it states where these are in the base file."""
    found = []
    for file_slice in table.files():
        base = pq.read_table(io.BytesIO(storage.read(file_slice.base.path)))[RECORD_KEY].to_pylist()
        for log in file_slice.logs:
            for block in scan_blocks(storage.read(log.path)):
                assert isinstance(block, LogBlock)
                if block.kind is BlockKind.DELETE:
                    held = decode_deletes(block.content, None)["record_key"].to_pylist()
                else:
                    held = decode_avro_data(block.content, block.header[HeaderKey.SCHEMA])[RECORD_KEY].to_pylist()
                stated = block.header.get(HeaderKey.RECORD_POSITIONS)
                since = block.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
                assert (stated is None) == (since is None)
                if stated is not None:
                    assert since == file_slice.base.instant
                    assert [base[at] for at in decoded(stated)] == held
                found.append((log.path[0], sorted(held), stated is not None))
    return found


@pytest.mark.parametrize("twice", [False, True], ids=["together", "each by itself"])
@pytest.mark.parametrize("version", ["8", "9"])
def test_blocks_state_the_places_of_their_rows(version, twice):
    storage, table = table_of(version)
    rows = [*CHANGED, CHANGED[0]] if twice else CHANGED
    table.upsert(batch([*rows, Input("k3", "a", 0, 20, True), Input("k8", "a", 0, 20, True)]))
    changed = ["k2", "k5", "k9"]
    assert sorted(check_blocks(storage, table)) == [
        ("a", changed, True),
        ("a", ["k3", "k8"], True),
        ("b", changed, True),
    ]
    table.delete(keys([Input("k1", "b"), Input("k9", "b")]))
    assert ("b", ["k1", "k9"], True) in check_blocks(storage, table)


def test_each_block_of_several_states_its_own():
    storage, table = table_of(options={"hoodie.logfile.data.block.max.size": "1"})
    table.upsert(batch(CHANGED[:3]))
    assert check_blocks(storage, table) == [("a", [key], True) for key in ("k5", "k9", "k2")]


def test_blocks_state_nothing_where_it_is_not_known_or_not_wanted():
    changed = [("a", ["k2", "k5", "k9"], False), ("b", ["k2", "k5", "k9"], False)]
    for made in (
        table_of("6"),
        table_of(options={"hoodie.write.record.positions": "false"}),
    ):
        made[1].upsert(batch(CHANGED))
        assert sorted(check_blocks(*made)) == changed
