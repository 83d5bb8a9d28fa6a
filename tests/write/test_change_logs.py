"""Change logs beside rewritten base files: what is in them, in which commits they are, and when they go."""

import io
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import CorruptFileError, InstantNotFoundError, OptionError
from hoodie.format.commit_check import check_commit
from hoodie.format.layout import V6, V9
from hoodie.format.log_block import CorruptBlock, scan_blocks
from hoodie.format.log_content import decode_avro_data
from hoodie.model.change import change_of_commit
from hoodie.model.enums import MOVES_ROWS, Action, BlockKind, ChangeLogMode, HeaderKey, State, WriteOperation
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import name_of
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.model.tuning import Tuning
from hoodie.storage.base import Storage
from tests.effort import long_but
from tests.memory_tables import SCHEMA, Input, batch, keys, new_table, opened
from tests.random_histories import FOLLOWING, Histories, play

STATED = {
    "OP_KEY_ONLY": lambda change: change[:2],
    "data_before": lambda change: change[:3],
    "DATA_BEFORE_AFTER": lambda change: (change[0], *change[2:]),
}
"""What change logs of each kind say of a change."""
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
VERSIONS = pytest.mark.parametrize("version", ["6", "8", "9"])


def table_of(kind: str, version: str = "9", mode: str = "DATA_BEFORE_AFTER", **more: Any) -> Any:
    options = {
        "hoodie.write.table.version": version,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    return new_table(table_type=kind, more=options, **more)


def logs_in(storage: Storage) -> set[str]:
    return {info.path for part in "ab" for info in storage.list(part) if info.name.endswith(".cdc")}


def told(storage: Storage, path: str) -> Iterator[dict[str, Any]]:
    for block in scan_blocks(storage.read(path)):
        assert not isinstance(block, CorruptBlock)
        assert block.kind is BlockKind.CDC_DATA
        yield from decode_avro_data(block.content, block.header[HeaderKey.SCHEMA]).to_pylist()


def as_hudi_finds(storage: Storage, table: hoodie.HoodieTable, instant: Any) -> list[Any]:
    """(op, key, before, after) of a commit to base files: from its change logs, and the rows of new files."""
    found = []
    for stat in table._context.active.read_commit(instant).stats():
        assert stat.log_version is None
        for path, size in stat.change_logs.items():
            assert len(storage.read(path)) == size
            found += [(r["op"], r.get("record_key"), r.get("before"), r.get("after")) for r in told(storage, path)]
        if not stat.change_logs:
            assert (stat.num_writes, stat.num_updates) == (stat.num_inserts, 0)
            rows = pq.read_table(io.BytesIO(storage.read(stat.path))).select(SCHEMA.names).to_pylist()
            found += [("i", row["id"], None, row) for row in rows]
    return found


def write_history(table: hoodie.HoodieTable) -> None:
    table.insert(batch([Input("k1", "a", 1, 10), Input("k2", "a", None, 10), Input("k3", "b", 1, 10)]))
    table.upsert(batch([Input("k1", "a", 2, 20), Input("k4", "a", 2, 20), Input("k3", "b", 2, 5)]))  # the last is late
    table.insert(batch([Input("k5", "b", 3, None)]))
    table.upsert(batch([Input("k1", "a", None, 30, True), Input("k5", "b", 4, None)]))
    table.delete(keys([Input("k2", "a"), Input("k4", "a"), Input("k9", "b")]))  # all of a file, and none of another
    table.upsert(batch([Input("k1", "a", 5, 50)]))


@pytest.mark.parametrize("mode", STATED)
@VERSIONS
def test_rewritten_files_have_change_logs_with_what_the_feed_tells(version, mode):
    storage, clock = table_of("COPY_ON_WRITE", version, mode)
    table = opened(storage, clock)
    write_history(table)
    since = None
    for instant in table.timeline.commits:
        feed = table.changes(since, instant.position, images="before_after").to_arrow().to_pylist()
        expected = [(r["op"], (r["before"] or r["after"])["id"], r["before"], r["after"]) for r in feed]
        found = as_hudi_finds(storage, table, instant)
        assert sorted(map(STATED[mode], found), key=repr) == sorted(map(STATED[mode], expected), key=repr)
        since = instant.position
    assert len(logs_in(storage)) == 7


@KINDS
@VERSIONS
def test_logs_and_new_files_have_no_change_logs(kind, version):
    storage, clock = table_of(kind, version)
    table = opened(storage, clock)
    table.bulk_insert(batch([Input("k1", "a", 1, 10), Input("k3", "b", 1, 10)]))
    if kind == "MERGE_ON_READ":
        table.upsert(batch([Input("k1", "a", 2, 20)]))
        table.delete(keys([Input("k1", "a")]))
        table.compact()
    table.insert_overwrite(batch([Input("k2", "a", 3, 30)]))
    table.delete_partitions(["b"])
    assert logs_in(storage) == set()


@VERSIONS
def test_a_commit_of_logs_names_all_of_its_slice_so_that_readers_find_the_rows_before(version):
    storage, clock = table_of("MERGE_ON_READ", version)
    table = opened(storage, clock)
    table.upsert(batch([Input("k1", "a", 1, 10)]))
    for n in (2, 3):
        table.upsert(batch([Input("k1", "a", n, 10 * n)]))
    first, *later = [next(iter(table._context.active.read_commit(i).stats())) for i in table.timeline.commits]
    base, names = name_of(first.path), [name_of(stat.path) for stat in later]
    assert [(s.prev_commit, s.base_file, [*s.log_files]) for s in later] == [
        (table.timeline.commits[0].time, base, names[:1]),
        (table.timeline.commits[0].time, base, names),
    ]


@pytest.mark.parametrize("options", [{}, FOLLOWING], ids=["listed", "followed"])
@KINDS
@VERSIONS
def test_change_logs_go_with_their_commits_and_their_files(kind, version, options):
    storage, clock = table_of(kind, version)
    table = opened(storage, clock, options, tuning=Tuning())
    table.insert(batch([Input("k1", "a", 1, 10), Input("k3", "b", 1, 10)]))
    table.insert(batch([Input("k2", "a", 1, 10)]))
    kept = logs_in(storage)
    table.savepoint()
    for n in (4, 5):
        table.insert(batch([Input(f"k{n}", "a", 1, 10)]))
    assert len(logs_in(storage)) == len(kept) + 2
    table.rollback(table.timeline.commits[-1].time)
    assert len(logs_in(storage)) == len(kept) + 1
    table.restore(table.savepoints()[0].instant)
    assert logs_in(storage) == kept
    table.drop_savepoint(table.savepoints()[0].instant)
    table.insert(batch([Input("k6", "a", 1, 10)]))
    table.clean(retain_versions=1)
    assert len(logs_in(storage)) == 1
    assert not kept & logs_in(storage)


def test_a_metadata_table_lists_change_logs():
    log = ".g-0_20251124160000001.log.1_0-0-1.cdc"
    path = "a/g-0_0-0-1_20251124160000001.parquet"
    stat = WriteStat("g-0", "a", path, file_size_bytes=5, change_logs={f"a/{log}": 7})
    commit = CommitMetadata(WriteOperation.UPSERT, {"a": (stat,)})
    instant = Instant(InstantTime("20251124160000001"), Action.COMMIT, State.COMPLETED)
    assert change_of_commit(instant, commit).added == {"a": {name_of(path): 5, log: 7}}
    for other in ("b/" + log, "a/../" + log, "a/x"):
        wrong = replace(commit, write_stats={"a": (replace(stat, change_logs={other: 7}),)})
        with pytest.raises(CorruptFileError, match="is no change log of partition 'a'"):
            check_commit(wrong, path="p")


def test_a_table_remembers_what_its_change_logs_hold():
    storage, clock = table_of("COPY_ON_WRITE", mode="op_key_only")
    table = opened(storage, clock)
    assert table.config.change_logs is ChangeLogMode.OP_KEY_ONLY
    rows = batch([Input("k1", "a", 1, 10)])
    table.upsert(rows, {"hoodie.table.cdc.enabled": "true"})
    with pytest.raises(OptionError, match="writing of change logs is true in the table, false in your options"):
        table.upsert(rows, {"hoodie.table.cdc.enabled": "false"})
    with pytest.raises(OptionError, match="content of change logs is 'OP_KEY_ONLY' in the table, 'DATA_BEFORE'"):
        table.upsert(rows, {"hoodie.table.cdc.supplemental.logging.mode": "data_before"})
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    with pytest.raises(OptionError, match="writing of change logs is false in the table"):
        opened(storage, clock).upsert(rows, {"hoodie.table.cdc.enabled": "true"})


class LoggedHistories(Histories):
    def teardown(self):
        table = self._table()
        for before, instant in pairwise(table.timeline.commits):
            metadata = table._context.active.read_commit(instant)
            if metadata.operation in MOVES_ROWS or metadata.replaced_file_ids:
                continue
            try:
                feed = table.changes(before.position, instant.position, images="before_after").to_arrow().to_pylist()
            except InstantNotFoundError:
                continue  # its files were cleaned
            expected = [(r["op"], r["before"], r["after"]) for r in feed]
            found = [(op, *rows) for op, _, *rows in as_hudi_finds(self.storage, table, instant)]
            assert sorted(found, key=repr) == sorted(expected, key=repr), str(instant)
        super().teardown()


@pytest.mark.parametrize("version", [V6, V9])
@pytest.mark.parametrize("ordering", ["ts", None])
@pytest.mark.parametrize("more", long_but([False], [False, True]), ids=["sample", "more"])
def test_any_history_logs_what_its_feed_tells(version, ordering, more):
    kind = {"table_type": "COPY_ON_WRITE", "ordering": ordering, "version": version}
    machine = type("Machine", (LoggedHistories,), kind | {"left_out": {"hoodie.table.cdc.enabled": "true"}})
    play(machine, *((20, 30) if more else (2, 16)))
