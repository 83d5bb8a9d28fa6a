"""Blocks with COMPACTED_BLOCK_TIMES that others than Apache Hudi wrote: every reader puts them before newer writes.

The golden table v6_log_compaction has none that a writer overtook. Here one commit lies between the inputs and the merged
block, which keeps the commit time of each row and carries its deletes in a block of their own.
"""

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.log_block import encode_block, scan_blocks
from hoodie.model.enums import BlockKind, HeaderKey
from integration.views import BEGINNING, View, by_hudi, by_rust, ours

ROWS = pa.schema([("id", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])


def rows(n, keys):
    return pa.table({"id": list(keys), "n": [n] * len(keys), "ts": [n] * len(keys)}, schema=ROWS)


def instants(path):
    return sorted(file.name.split(".")[0] for file in path.glob(".hoodie/*.deltacommit"))


def table_with_merged_block(path, ordering, *, header=True):
    """Inserts, three inputs (one of them deletes), a newer write, and the merged block of the inputs after it."""
    options = {"ordering": ordering} if ordering else {}
    table = hoodie.create_table(path, ROWS, record_key="id", table_type="MERGE_ON_READ", **options)
    table.upsert(rows(0, "abcde"))
    table.upsert(rows(1, "a"))
    table.delete(rows(2, "cd"))
    table.upsert(rows(3, "ab"))
    table.upsert(rows(4, "ac"))
    inputs = instants(path)[1:4]
    table.upsert(rows(3, "ab"))  # its log file is the one that the merged block stands in
    merged = instants(path)[-1]
    files = {}
    for log in path.rglob(".*.log.*"):
        if not log.name.endswith(".crc"):
            for block in scan_blocks(log.read_bytes()):
                files[block.header[HeaderKey.INSTANT_TIME]] = (log, block)
    more = {HeaderKey.INSTANT_TIME: merged}
    if header:
        more[HeaderKey.COMPACTED_BLOCK_TIMES] = ",".join(reversed(inputs))
    data, deletes = files[inputs[2]][1], files[inputs[1]][1]
    assert (data.kind, deletes.kind) == (BlockKind.AVRO_DATA, BlockKind.DELETE)
    found = [encode_block(block.kind, {**block.header, **more}, block.content) for block in (data, deletes)]
    files[merged][0].write_bytes(b"".join(found))
    commit = path / ".hoodie" / f"{merged}.deltacommit"
    text = commit.read_text()
    assert text.count('"UPSERT"') == 1
    commit.write_text(text.replace('"UPSERT"', '"LOG_COMPACT"'))
    return inputs, merged


def values(found):
    return {row["id"]: row["n"] for row in found}


READERS = ["hoodie", "hudi", "hudi-rs"]


@pytest.mark.parametrize("ordering", [None, "ts"])
@pytest.mark.parametrize("name", READERS)
def test_a_newer_write_wins_over_a_merged_block_that_was_written_after_it(hudi, tmp_path, ordering, name):
    read = {"hoodie": ours, "hudi": by_hudi(hudi), "hudi-rs": by_rust}[name]
    path = tmp_path / "merged"
    inputs, merged = table_with_merged_block(path, ordering)
    newer = instants(path)[-2]
    assert values(read(path, View())) == {"a": 4, "b": 3, "c": 4, "e": 0}
    # Moments before the merged block still read its inputs.
    states = [{"a": 1, "b": 0, "c": 0, "d": 0, "e": 0}, {"a": 1, "b": 0, "e": 0}, {"a": 3, "b": 3, "e": 0}]
    assert [values(read(path, View(as_of=instant))) for instant in inputs] == states
    # The merged rows are found by their own commit times, and are no change of the log compaction.
    pull = [(BEGINNING, merged), (inputs[1], merged), (inputs[2], merged), (newer, merged)]
    found = [values(read(path, View("incremental", begin, end))) for begin, end in pull]
    assert found == [{"a": 4, "b": 3, "c": 4, "e": 0}, {"a": 4, "b": 3, "c": 4}, {"a": 4, "c": 4}, {}]


def test_without_the_header_the_block_would_hide_the_newer_write(tmp_path):
    path = tmp_path / "merged"
    table_with_merged_block(path, None, header=False)
    assert values(by_rust(path, View()))["a"] == 3  # hoodie refuses such a block: its rows have another commit time
