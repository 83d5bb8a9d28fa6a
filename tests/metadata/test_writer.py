"""What we do to a table is in its metadata table, by the records and blocks that Apache Hudi has in it."""

import pyarrow as pa
import pytest

from hoodie.engine.local import LocalEngine
from hoodie.metadata.listing import MetadataListing
from hoodie.metadata.table import MetadataTable
from hoodie.model.names import METADATA_TABLE
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.view.context import TableContext
from hoodie.view.view import FileSystemView
from tests.followed import Counting
from tests.golden_tables import FOLDER, copy_golden
from tests.memory_tables import FakeClock, opened
from tests.metadata_tables import counted
from tests.rows import rows_of

BY_FOLDERS = {"hoodie.metadata.enable": "false"}
GOLDEN = ("v6_mdt_cow", "v6_mdt_mor")


class NoFolders:
    uri = "no folders"

    def files(self, partition_paths):
        raise AssertionError(f"listed {partition_paths}")

    def all_files(self):
        raise AssertionError("listed all")


def check(path):
    check_storage(LocalStorage(str(path)))


def check_storage(storage):
    """The metadata table is there, and shows what the folders show."""
    context = TableContext.open(storage, LocalEngine(), cache=Cache())
    snapshot = context.snapshot()
    table = MetadataTable.open(context.storage, context.config, snapshot.timeline, Cache())
    assert table.partitions() is not None, table.reasons
    view = FileSystemView(MetadataListing(table, NoFolders()), context.active, snapshot.timeline, snapshot.archived)
    assert set(view.partitions()) <= set(snapshot.view.partitions())
    assert counted(view.latest_slices()) == counted(snapshot.view.latest_slices())
    counting = Counting(storage)
    rows = rows_of(opened(counting, cache=Cache()).scan().to_arrow())
    assert counting.listed == []
    assert rows == rows_of(opened(storage, options=BY_FOLDERS, cache=Cache()).scan().to_arrow())


def changed(rows, count):
    """Newer versions of the first rows."""
    part = rows.slice(0, count)
    ts = part.schema.get_field_index("ts")
    newer = pa.array([(value or 0) + 1000 for value in part["ts"].to_pylist()], part.schema.field(ts).type)
    return part.set_column(ts, part.schema.field(ts), newer)


@pytest.mark.parametrize("name", GOLDEN)
def test_each_action_is_in_it(name, tmp_path):
    path = copy_golden(name, tmp_path).path
    table = opened(LocalStorage(str(path)), cache=Cache())
    rows = table.scan().to_arrow()
    table.upsert(changed(rows, 2))
    check(path)
    table.delete(rows.slice(0, 1))
    check(path)
    table.upsert(changed(rows, 3), options={"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"})
    check(path)
    if name == "v6_mdt_mor":
        table.compact()
        check(path)
    table.insert_overwrite(changed(rows, 1))
    check(path)
    table.clean(retain_commits=1)
    check(path)
    table.rollback(table.timeline.commits[-1].time)
    check(path)


def loaded(name):
    """A golden table in memory."""
    root, storage = FOLDER / name / "table", MemoryStorage(clock=FakeClock(1_796_000_000.0))
    for file in sorted(each for each in root.rglob("*") if each.is_file()):
        storage.create_new(file.relative_to(root).as_posix(), file.read_bytes())
    return storage


def read(storage, options=None):
    return rows_of(opened(storage, options=options, cache=Cache()).scan().to_arrow())


def wrote(storage, rows):
    clock = getattr(storage, "_inner", storage).clock
    opened(storage, clock, cache=Cache()).upsert(rows)


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("writes_before", [0, 7])
def test_a_writer_that_dies_at_any_call_leaves_the_old_rows_or_the_new_ones(name, writes_before):
    """After seven writes the metadata table is compacted by the next one."""
    storage = loaded(name)
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    for _ in range(writes_before):
        wrote(storage, changed(rows, 1))
    begin, old = storage.snapshot(), read(storage)
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    faulty = FaultStorage(storage)
    wrote(faulty, changed(rows, 2))
    new = read(storage)
    assert old != new
    is_compacted = any(call.path.endswith("001.commit") for call in faulty.trace)
    assert is_compacted == bool(writes_before)
    # The other calls are those of any write.
    concerned = [call for call in faulty.trace if METADATA_TABLE in call.path or "commit" in call.path]
    for fault in crash_points(concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            wrote(faulty, changed(rows, 2))
        faulty.revive()
        found = read(storage)
        assert found == read(storage, BY_FOLDERS), fault
        assert found in (old, new), fault
        wrote(storage, changed(rows, 1))
        after = read(storage)
        assert after == read(storage, BY_FOLDERS), fault
        if not is_compacted:  # one that died in a compaction is dropped by the next
            check_storage(storage)


@pytest.mark.parametrize("name", GOLDEN)
def test_it_is_compacted_after_ten_delta_commits(name):
    storage = loaded(name)
    rows = opened(storage, cache=Cache()).scan().to_arrow()
    compacted = []
    for turn in range(14):
        wrote(storage, changed(rows, 1 + turn % 3))
        compacted = [each for each in storage.names(f"{METADATA_TABLE}/.hoodie") if each.endswith("001.commit")]
    assert len(compacted) == 1
    check_storage(storage)
