"""The actions that are stopped at every storage call, each with the table that it starts from."""

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace

from hoodie.options.parse import parse_write_options
from hoodie.storage.base import Storage
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.table import HoodieTable
from tests.damaged_tables import put_strays
from tests.memory_tables import SCHEMA, FakeClock, Input, Parts, Row, batch, create, keys, opened, parts_of, plain
from tests.placed import SERVER
from tests.small_files import SIZED

FIRST = [Input(f"k{n}", "ab"[n % 2], n, 10) for n in range(8)]
CHANGES = [
    Input("k0", "a", 100, 20),
    Input("k1", "b", 101, 20),
    Input("k2", "a", 102, 20, deleted=True),
    Input("k3", "b", 103, 5),  # late: loses
    Input("new0", "a", 104, 20),
    Input("new1", "c/d", 105, 20),  # a partition that is not there yet
]
OVERWRITES = [Input("k0", "a", 300, 1), Input("new0", "c/d", 301, 1)]
AGAIN = [Input("k6", "a", 400, 5), Input("k1", "b", 401, 20)]
"""The first of them was deleted, and is older than the stored row."""
MORE = [Input("k4", "a", 200, 30), Input("k5", "b", 201, 30)]


GATHERED_MARKERS = {"hoodie.write.markers.type": "timeline_server_based"}
LOADED = [Input(f"load{n}", "abc"[n % 3], n, 40) for n in range(30)]


@dataclass(frozen=True)
class Views:
    """Everything that readers can ask for."""

    snapshot: tuple[Row, ...]
    read_optimized: tuple[Row, ...]
    all_changes: tuple[Row, ...]
    """Pulled from the beginning."""
    new_changes: tuple[Row, ...]
    """Pulled from the first commit on."""

    @classmethod
    def of(cls, table: HoodieTable) -> "Views":
        first = table.timeline.commits[0].time
        return cls(
            tuple(plain(table.scan(meta_columns=True))),
            tuple(plain(table.scan(query="read_optimized", meta_columns=True))),
            tuple(plain(table.changes(meta_columns=True))),
            tuple(plain(table.changes(since=first, meta_columns=True))),
        )

    def known(self) -> frozenset[str]:
        """The times of the commits whose rows are here."""
        return frozenset(row[-1] for row in (*self.snapshot, *self.read_optimized, *self.all_changes))

    def told_by(self, known: frozenset[str]) -> "Views":
        """With all commit times that are not known as one: another run of the same action has another."""
        shown = (self.snapshot, self.read_optimized, self.all_changes, self.new_changes)
        return Views(*(told_by(known, rows) for rows in shown))


def told_by(known: frozenset[str], rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(row if row[-1] in known else (*row[:-1], "new") for row in rows)


@dataclass(frozen=True)
class Action:
    name: str
    prepare: Callable[[Storage, FakeClock | None], None]
    """Makes the table that the action starts from."""
    run: Callable[[HoodieTable], object]


def _prepare(table_type: str) -> Callable[[Storage, FakeClock | None], None]:
    def prepare(storage: Storage, clock: FakeClock | None) -> None:
        create(storage, table_type=table_type)
        opened(storage, clock).upsert(batch(FIRST))

    return prepare


def _prepare_change_logs(storage: Storage, clock: FakeClock | None) -> None:
    create(storage, table_type="COPY_ON_WRITE", more={"hoodie.table.cdc.enabled": "true"})
    opened(storage, clock).upsert(batch(FIRST))


def _prepare_logs(storage: Storage, clock: FakeClock | None) -> None:
    _prepare("MERGE_ON_READ")(storage, clock)
    opened(storage, clock).upsert(batch(MORE))
    opened(storage, clock).delete(keys([Input("k6", "a"), Input("k7", "b")]))


def _prepare_merged_logs(storage: Storage, clock: FakeClock | None) -> None:
    """Logs of which some were merged before, and newer ones."""
    _prepare_logs(storage, clock)
    opened(storage, clock).compact_logs(blocks=1)
    opened(storage, clock).upsert(batch(CHANGES))


def _prepare_savepoint(table_type: str) -> Callable[[Storage, FakeClock | None], None]:
    """A savepoint, and after it all that can have happened: updates, a compaction, an overwrite, a plan that waits."""

    def prepare(storage: Storage, clock: FakeClock | None) -> None:
        merge_on_read = table_type == "MERGE_ON_READ"
        (_prepare_logs if merge_on_read else _prepare(table_type))(storage, clock)
        table = opened(storage, clock)
        table.savepoint(comment="before")
        table.upsert(batch(CHANGES))
        if merge_on_read:
            table.compact()
            table.upsert(batch(MORE))
            table.schedule_compaction()
        table.insert_overwrite(batch(OVERWRITES))
        table.upsert(batch(MORE))

    return prepare


def _restore(table: HoodieTable) -> object:
    return table.restore(table.savepoints()[-1].instant)


def _roll_back_newest(table: HoodieTable) -> object:
    return table.rollback(table.timeline.commits[-1].time)


def _prepare_failed_write(storage: Storage, clock: FakeClock | None) -> None:
    """An upsert that died when all its files had their names, right before its completed file."""
    _prepare_logs(storage, clock)
    probe = FaultStorage(storage)
    _run_until_published(probe, clock)


def _prepare_small_files(table_type: str) -> Callable[[Storage, FakeClock | None], None]:
    """Several file groups in a partition, and on merge-on-read logs in some of them."""

    def prepare(storage: Storage, clock: FakeClock | None) -> None:
        create(storage, table_type=table_type)
        table = opened(storage, clock, {"hoodie.parquet.small.file.limit": "0"})
        for start in range(0, len(FIRST), 4):
            table.upsert(batch(FIRST[start : start + 4]))
        table.upsert(batch(MORE))
        table.delete(keys([Input("k6", "a")]))

    return prepare


def _prepare_many_groups(storage: Storage, clock: FakeClock | None) -> None:
    """Eight file groups, each with a log: so many tasks has a plan, one after the other."""
    create(storage, table_type="MERGE_ON_READ")
    table = opened(storage, clock, {"hoodie.parquet.small.file.limit": "0"})
    for row in FIRST:
        table.insert(batch([row]))
    table.upsert(batch(row._replace(val=900, ts=20) for row in FIRST))


def _run_clustering_of_many(table: HoodieTable) -> object:
    """As one whose rows do not fit into memory is run."""
    few = replace(table._context, tuning=replace(table._context.tuning, sorted_bytes=1))
    return HoodieTable(few).cluster(sort_by=["val"], target_file_mb=0.002)


def _cluster_each(table: HoodieTable) -> object:
    """Each file group by itself, so that there are as many tasks."""
    options = {"hoodie.clustering.plan.strategy.max.bytes.per.group": "1"}
    table.schedule_clustering(sort_by=["val"], options=options)
    return table.run_clustering(budget_s=None)


def _run_until_published(storage: FaultStorage, clock: FakeClock | None) -> None:
    # The call that publishes is the one with the name of a completed instant; its number is found by dying before it.
    class DiesBeforePublishing(FaultStorage):
        def create_new(self, path: str, data: bytes, *, via: str | None = None, durable: bool = True) -> None:
            if path.endswith(".deltacommit"):
                raise InjectedFault(f"the process died before {path}")
            super().create_new(path, data, via=via, durable=durable)

        def swap(self, path: str, data: bytes, tag: Hashable) -> Hashable:
            raise InjectedFault(f"the process died before it decided {path}")

    try:
        opened(DiesBeforePublishing(storage), clock).upsert(batch(CHANGES))
    except InjectedFault:
        return
    raise AssertionError("the upsert was to die")


def _run_load(table: HoodieTable) -> object:
    """One worker's share of partition c is worth a file, the shares of the others are gathered."""
    parts = parts_of(batch(r for r in LOADED if r.part == "c"), batch(LOADED[:2]), batch(LOADED[3:5]))
    options = parse_write_options({"hoodie.datasource.write.operation": "bulk_insert"}, defaults={}).write
    writer = HoodieTable(replace(table._context, tuning=replace(SIZED, worth_bytes=200))).writer
    return writer.write(parts, SCHEMA, options.operation, options, engine=Parts(), repeatable=True)


def _run_small_plan(table: HoodieTable) -> object:
    """Two plans, of a file group each, of which one is run; all that is merged goes to the machine's disk and back."""
    tuning = replace(table._context.tuning, least_plan_bytes=1, least_room_bytes=1)
    cramped = HoodieTable(replace(table._context, tuning=tuning))
    options = {"hoodie.memory.compaction.max.size": "100"}
    return cramped.compact(options, budget_s=0)


class _Earlier(FaultStorage):
    """The same storage, whose clock was some days ago."""

    def now_s(self) -> float:
        return super().now_s() - 3 * 24 * 3600.0


def _prepare_old_partitions(storage: Storage, clock: FakeClock | None) -> None:
    """Partitions a and b are three days old; a was changed since, in a log."""
    earlier = _Earlier(storage)
    create(earlier, table_type="MERGE_ON_READ")
    opened(earlier, clock).upsert(batch(FIRST))
    opened(storage, clock).upsert(batch(r for r in CHANGES if r.part != "b"))


def _prepare_strays(storage: Storage, clock: FakeClock | None) -> None:
    """Beside each file that a commit names, one that nothing explains."""
    _prepare_logs(storage, clock)
    put_strays(storage)


def _drop_savepoint(table: HoodieTable) -> object:
    table.drop_savepoint(table.savepoints()[-1].instant)
    return None


def repair(table: HoodieTable) -> object:
    if SERVER is not None:
        time.sleep(1)  # it may tell times rounded up to the next second, and what is of the future counts as young
    return table.repair(dry_run=False, older_than_s=0)


ACTIONS = {
    action.name: action
    for action in (
        Action("copy-on-write upsert", _prepare("COPY_ON_WRITE"), lambda table: table.upsert(batch(CHANGES))),
        Action("upsert with change logs", _prepare_change_logs, lambda table: table.upsert(batch(CHANGES))),
        Action("merge-on-read upsert", _prepare_logs, lambda table: table.upsert(batch(CHANGES))),
        Action("upsert of deleted rows", _prepare_logs, lambda table: table.upsert(batch(AGAIN))),
        Action(
            "upsert with gathered markers", _prepare_logs, lambda table: table.upsert(batch(CHANGES), GATHERED_MARKERS)
        ),
        Action("insert_overwrite", _prepare_logs, lambda table: table.insert_overwrite(batch(OVERWRITES))),
        Action("load in one pass", _prepare("MERGE_ON_READ"), _run_load),
        Action("delete_partitions", _prepare("COPY_ON_WRITE"), lambda table: table.delete_partitions(["b"])),
        Action("compaction", _prepare_logs, lambda table: table.compact()),
        Action("compaction within a budget", _prepare_logs, _run_small_plan),
        Action("log compaction", _prepare_merged_logs, lambda table: table.compact_logs(blocks=1)),
        Action(
            "clustering",
            _prepare_small_files("MERGE_ON_READ"),
            lambda table: table.cluster(sort_by=["val"], where="part='a'"),
        ),
        Action("clustering of many rows", _prepare_small_files("COPY_ON_WRITE"), _run_clustering_of_many),
        Action("large compaction", _prepare_many_groups, lambda table: table.compact()),
        Action("large clustering", _prepare_many_groups, _cluster_each),
        Action("rollback", _prepare_failed_write, lambda table: table.rollback()),
        Action("rollback of the newest commit", _prepare_logs, _roll_back_newest),
        Action("savepoint", _prepare_logs, lambda table: table.savepoint(comment="now")),
        Action("dropped savepoint", _prepare_savepoint("COPY_ON_WRITE"), _drop_savepoint),
        Action("restore", _prepare_savepoint("COPY_ON_WRITE"), _restore),
        Action("restore of logs", _prepare_savepoint("MERGE_ON_READ"), _restore),
        Action("expiry", _prepare_old_partitions, lambda table: table.expire_partitions(days=2)),
        Action("repair", _prepare_strays, repair),
    )
}


MOVES_ROWS = (
    *("compaction", "compaction within a budget", "large compaction", "log compaction"),
    *("clustering", "clustering of many rows", "large clustering"),
)
"""Actions that change no row: their plans stay when they fail, and they may have got further than they could say."""


def crash(storage: Storage, clock: FakeClock | None, action: Action, fault: Fault, *, at_once: int = 1) -> bool:
    """Run the action with the fault; whether it died (else it ended before the call that was to fail)."""
    try:
        action.run(opened(FaultStorage(storage, [fault], at_once=at_once), clock))
    except InjectedFault:
        return True
    return False
