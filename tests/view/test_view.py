"""The view over a storage: partitions, latest slices, replaced groups."""

from hoodie.format.commit_json import encode_commit
from hoodie.format.plan_avro import encode_compaction_plan
from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileGroupId
from hoodie.model.names import parse_log_file
from hoodie.model.payloads import CommitMetadata, CompactionOperation, CompactionPlan, WriteStat
from hoodie.storage.cache import Cache
from hoodie.timeline.active import ActiveTimeline
from hoodie.view.listing import StorageListing
from hoodie.view.view import FileSystemView
from tests.memory_tables import FakeClock, Input, batch, new_storage, new_table, opened


def t(number):
    return f"20260101000000{number:03d}"


def base(file_id, number):
    return f"{file_id}_0-0-0_{t(number)}.parquet"


def log(file_id, number, version=1):
    return f".{file_id}_{t(number)}.log.{version}_0-0-0"


class Table:
    def __init__(self):
        self.storage = new_storage(FakeClock())

    def put(self, path, data=b"x"):
        self.storage.create_new(path, data)

    def commit(self, number, *paths, kind="commit", replaced=None, onto=None):
        stats = {}
        for path in paths:
            part, _, name = path.rpartition("/")
            self.put(path)
            file_id = name.removeprefix(".").split("_")[0]
            log = parse_log_file(name)
            stat = WriteStat(
                file_id, part, path, file_size_bytes=1, base_file=onto, log_version=log.version if log else None
            )
            stats[part] = (*stats.get(part, ()), stat)
        metadata = CommitMetadata(WriteOperation.UPSERT, stats, replaced_file_ids=replaced or {})
        self.put(f".hoodie/{t(number)}.{kind}", encode_commit(metadata))

    def view(self):
        active = ActiveTimeline(self.storage, Cache())
        return FileSystemView(StorageListing(self.storage), active, active.load())


def names(slices):
    return [file_slice.base.name if file_slice.base else None for file_slice in slices]


def test_partitions_are_the_folders_with_partition_metadata():
    table = Table()
    for path in (
        "a/.hoodie_partition_metadata",
        "b/c/.hoodie_partition_metadata.parquet",
        "d/x",
        ".hoodie/.hoodie_partition_metadata",
    ):
        table.put(path)
    assert table.view().partitions() == ("a", "b/c")
    table.put(".hoodie_partition_metadata")
    assert table.view().partitions() == ("", "a", "b/c")


def test_latest_slices_of_all_or_of_chosen_partitions_each_once():
    table = Table()
    for part in ("p", "q"):
        table.put(f"{part}/.hoodie_partition_metadata")
    table.commit(1, f"p/{base('a', 1)}", f"q/{base('b', 1)}")
    table.commit(2, f"p/{base('a', 2)}")
    view = table.view()
    assert names(view.latest_slices()) == [base("a", 2), base("b", 1)]
    assert names(view.latest_slices(["q", "q", "nowhere"])) == [base("b", 1)]
    assert names(view.latest_slices(until=t(1))) == [base("a", 1), base("b", 1)]
    assert names([view.slice_of(FileGroupId("p", "a"))]) == [base("a", 2)]
    assert names([view.slice_of(FileGroupId("p", "a"), until=t(1))]) == [base("a", 1)]
    assert view.slice_of(FileGroupId("q", "a")) is None


def test_a_replaced_group_is_gone_from_its_replacecommit_on():
    table = Table()
    table.commit(1, f"p/{base('a', 1)}", f"q/{base('a', 1)}")
    table.commit(2, f"p/{base('b', 2)}", kind="replacecommit", replaced={"p": ("a",)})
    view = table.view()
    assert names(view.latest_slices(["p", "q"])) == [base("b", 2), base("a", 1)]
    assert names(view.latest_slices(["p"], until=t(1))) == [base("a", 1)]
    assert names(view.latest_slices(["p"], until=t(2))) == [base("b", 2)]
    assert view.slice_of(FileGroupId("p", "a")) is None
    assert view.slice_of(FileGroupId("p", "a"), until=t(1)) is not None
    assert view.slice_of(FileGroupId("q", "a")) is not None


def test_pending_compactions_are_read_from_their_plans():
    table = Table()
    table.commit(1, f"p/{base('a', 1)}", f"p/{log('a', 1)}", kind="deltacommit")
    plan = CompactionPlan((CompactionOperation("p", "a", t(1), base("a", 1), (log("a", 1),)),))
    table.put(f".hoodie/{t(2)}.compaction.requested", encode_compaction_plan(plan))
    view = table.view()
    assert view.pending_compactions() == {FileGroupId("p", "a"): t(2)}
    (file_slice,) = view.latest_slices(["p"])
    assert (file_slice.base_instant, file_slice.base.name, [found.name for found in file_slice.logs]) == (
        t(2),
        base("a", 1),
        [log("a", 1)],
    )


def test_a_view_does_not_change():
    table = Table()
    table.commit(1, f"p/{base('a', 1)}")
    view = table.view()
    assert names(view.latest_slices(["p"])) == [base("a", 1)]
    table.commit(2, f"p/{base('a', 2)}")
    assert names(view.latest_slices(["p"])) == [base("a", 1)]
    assert names(table.view().latest_slices(["p"])) == [base("a", 2)]


def test_logs_that_were_written_before_the_base_file_of_their_slice():
    table = Table()
    early, late = log("a", 2, 1), log("a", 2, 2)
    table.commit(2, f"p/{base('a', 2)}")
    table.commit(3, f"p/{early}", kind="deltacommit", onto=base("a", 1))
    table.commit(4, f"p/{late}", kind="deltacommit", onto=base("a", 2))
    view = table.view()
    (file_slice,) = view.latest_slices(["p"])
    older = view.logs_before_base(file_slice)
    assert older.base is None
    assert [found.name for found in older.logs] == [early]
    assert view.logs_before_base(file_slice._replace(logs=file_slice.logs[1:])) is None
    assert view.logs_before_base(file_slice._replace(base=None)) is None
    table.commit(5, f"p/{log('a', 2, 4)}", kind="deltacommit")  # and does not say onto which base file
    view = table.view()
    (file_slice,) = view.latest_slices(["p"])
    assert [found.name for found in view.logs_before_base(file_slice).logs] == [early, log("a", 2, 4)]
    of_an_archived_commit = file_slice.logs[1]._replace(name=log("a", 2, 3))
    assert view.logs_before_base(file_slice._replace(logs=(of_an_archived_commit,))) is None


def test_where_completion_times_are_stated_these_say_it():
    storage, clock = new_table(table_type="MERGE_ON_READ", more={"hoodie.write.table.version": "9"})
    table = opened(storage, clock, cache=Cache())
    for ts in (1, 2):
        table.upsert(batch([Input("a", "p", ts, ts)]))
    table.schedule_compaction()
    early = table.upsert(batch([Input("a", "p", 3, 3)])).instant
    table.compact()
    late = table.upsert(batch([Input("a", "p", 4, 4)])).instant
    view = table._context.snapshot().view
    (file_slice,) = view.latest_slices()
    assert {found.base_instant for found in file_slice.logs} == {early, late}
    assert [found.base_instant for found in view.logs_before_base(file_slice).logs] == [early]
