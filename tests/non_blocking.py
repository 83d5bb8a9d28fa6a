"""Non-blocking writers: the tables that they may write, and what is in one after any order of their beginnings and ends."""

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from hoodie.errors import CommitConflictError
from hoodie.hashes.of_buckets import bucket_numbers, shared_bucket_file_id
from hoodie.table import HoodieTable
from tests.begun import begun
from tests.memory_tables import FakeClock, Input, batch, new_table, opened, plain, snapshot_of

NON_BLOCKING = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
Key = tuple[str, str]


def non_blocking_table(version: str = "9", *, ordering: str | None = "ts", more: Any = None) -> tuple[Any, FakeClock]:
    options = {"hoodie.write.table.version": version, **BUCKETS, **(more or {})}
    return new_table(table_type="MERGE_ON_READ", ordering=ordering, more=options)


def writer(storage: Any, clock: FakeClock, more: dict[str, str] | None = None) -> HoodieTable:
    return opened(storage, clock, {**NON_BLOCKING, **(more or {})})


class Write(NamedTuple):
    instant: str
    rows: dict[Key, Input]

    def by_group(self) -> list["Write"]:
        groups: dict[Key, dict[Key, Input]] = {}
        for key, row in self.rows.items():
            groups.setdefault(group_of(key), {})[key] = row
        return [Write(self.instant, rows) for rows in groups.values()]

    @property
    def group(self) -> Key:
        return group_of(next(iter(self.rows)))


def group_of(key: Key) -> Key:
    """The partition and the file id, which is the same whoever begins the bucket."""
    name, part = key
    return part, shared_bucket_file_id(int(bucket_numbers(pa.array([name]), ("id",), 2)[0]))


class Rule:
    """What Apache Hudi's readers make of a table: logs in the order of their instants, on base files that have what was completed
    before their plans.
    """

    def __init__(self, *, by_ordering: bool) -> None:
        self.by_ordering = by_ordering
        self.base: dict[Key, tuple[Input, str]] = {}
        self.logs: list[Write] = []
        """One for each file group that a write has rows in."""
        self.planned: list[Write] = []

    def merged(self, logs: list[Write]) -> dict[Key, tuple[Input, str]]:
        of_logs: dict[Key, tuple[Input, str]] = {}
        for write in sorted(logs, key=lambda write: write.instant):
            for key, row in write.rows.items():
                older = of_logs.get(key)
                if older is None or not self.by_ordering or row.ts >= older[0].ts:
                    of_logs[key] = (row, write.instant)
        rows = dict(self.base)
        for key, (row, instant) in of_logs.items():
            older = rows.get(key)
            if older is None or not self.by_ordering or row.ts >= older[0].ts:
                rows[key] = (row, instant)
        return {key: found for key, found in rows.items() if not found[0].deleted}

    def snapshot(self) -> list[Any]:
        return sorted(((*row[:4], at) for row, at in self.merged(self.logs).values()), key=repr)

    def read_optimized(self) -> list[Any]:
        return sorted(((*row[:4], at) for row, at in self.base.values()), key=repr)

    def rewrite(self, group: Key) -> None:
        """A new base file in place of a log: so is written what would bring back a row that a log deletes."""
        self.fold([log for log in self.logs if log.group == group])

    def compact(self) -> None:
        planned, self.planned = self.planned, []
        self.fold(planned)

    def fold(self, logs: list[Write]) -> None:
        groups = {write.group for write in logs}
        merged = {key: found for key, found in self.merged(logs).items() if group_of(key) in groups}
        self.base = {key: found for key, found in self.base.items() if group_of(key) not in groups} | merged
        self.logs = [write for write in self.logs if write not in logs]


class Play:
    """A seed's history of non-blocking writers, with a check after each step."""

    def __init__(self, seed: int, version: str, *, by_ordering: bool) -> None:
        self.chance = Random(seed)
        self.by_ordering = by_ordering
        self.storage, self.clock = non_blocking_table(version, ordering="ts" if by_ordering else None)
        self.rule = Rule(by_ordering=by_ordering)
        self.under_way: dict[str, tuple[dict[Key, Input], Callable[[], None]]] = {}
        self.reached = "000"
        self.fed: dict[Key, int | None] = {}
        self.steps: list[str] = []
        self.number = 0
        self.rewritten = 0

    def run(self, steps: int = 14) -> None:
        with ExitStack() as self.stack:
            for _ in range(steps):
                act = self.chance.choice(
                    [self.begin, self.begin, self.end, self.end, self.end, self.plan, self.compact]
                )
                act()
                self.check()
            while self.under_way:
                self.end()
                self.check()
            for act in (self.compact, self.plan, self.compact, self.check):
                act()
            assert self.rule.read_optimized() == self.rule.snapshot()

    def rows(self) -> dict[Key, Input]:
        """Of a few keys. Deletes have ordering values of their own: a tie with a row would say nothing of this rule."""
        self.number += 1
        chosen = self.chance.sample([(f"k{n}", part) for n in range(4) for part in "ab"], self.chance.randint(1, 4))
        found = {}
        for key in chosen:
            gone = self.chance.random() < 0.25
            found[key] = Input(*key, self.number, 2 * self.chance.randint(0, 4) + gone, gone)
        return found

    def begin(self) -> None:
        if len(self.under_way) == 3:
            return self.end()
        rows = self.rows()
        end = self.stack.enter_context(begun(writer(self.storage, self.clock), batch(rows.values())))
        instant = max(i.time for i in opened(self.storage, self.clock).timeline.pending_writes)
        self.under_way[instant] = (rows, end)
        self.steps.append(f"begin {instant}")

    def end(self) -> None:
        if not self.under_way:
            return self.begin()
        instant = self.chance.choice(sorted(self.under_way))
        rows, end = self.under_way.pop(instant)
        self.steps.append(f"end {instant}")
        try:
            end()
        except CommitConflictError:  # it was to rewrite a file group, and begins anew
            instant = str(writer(self.storage, self.clock).upsert(batch(rows.values())).instant)
            self.steps.append(f"as {instant}")
        table = opened(self.storage, self.clock)
        stats = table._context.active.read_commit(table.timeline.commit_at[instant]).stats()
        rewritten = {(stat.partition_path, stat.file_id) for stat in stats if stat.log_version is None}
        for write in Write(instant, rows).by_group():
            self.rule.logs.append(write)
            if write.group in rewritten:
                self.rule.rewrite(write.group)
        self.rewritten += len(rewritten)
        lost = {
            key for key, row in rows.items() if group_of(key) in rewritten and self.rule.base.get(key) != (row, instant)
        }
        self.check_pull(Write(instant, {key: row for key, row in rows.items() if key not in lost}))

    def plan(self) -> None:
        """A plan leaves out a file group only where a write that is under way is older than one of its logs."""
        table = writer(self.storage, self.clock)
        if table.pending_compactions() or not self.rule.logs:
            return
        under_way = [each for at, (rows, _) in self.under_way.items() for each in Write(at, rows).by_group()]
        late = {
            log.group
            for log in self.rule.logs
            for each in under_way
            if each.group == log.group and each.instant < log.instant
        }
        free = {log.group for log in self.rule.logs} - late
        self.steps.append(f"plan {sorted(free)}")
        try:
            instant = table.schedule_compaction(wait_s=0)
        except CommitConflictError:
            assert not free
            return
        plan = table._context.active.read_compaction_plan(instant)
        assert {(each.partition_path, each.file_id) for each in plan.operations} == free
        self.rule.planned = [write for write in self.rule.logs if write.group in free]

    def compact(self) -> None:
        """It changes no row but one that was written behind its delete with a smaller ordering value, which no commit tells of."""
        table = writer(self.storage, self.clock)
        if not table.pending_compactions():
            return
        self.steps.append("compact")
        table.run_compaction()
        before = self.rule.merged(self.rule.logs)
        self.rule.compact()
        after = self.rule.merged(self.rule.logs)
        assert before.items() <= after.items()
        assert self.by_ordering or before == after
        self.fed |= {key: row.val for key, (row, _) in after.items()}

    def check(self) -> None:
        table = opened(self.storage, self.clock)
        assert snapshot_of(table) == self.rule.snapshot(), self.steps
        found = plain(table.scan(query="read_optimized", meta_columns=True))
        assert found == self.rule.read_optimized(), self.steps

    def check_pull(self, write: Write) -> None:
        """The rows of the write that was completed last, and nothing else, are in the pull since the one before."""
        table = opened(self.storage, self.clock)
        self.check_feed(table)
        latest = table.timeline.commit_at[write.instant].completion
        pulled = plain(table.changes(since=self.reached, meta_columns=True))
        self.reached = latest
        expected = [(*row[:4], write.instant) for row in write.rows.values() if not row.deleted]
        assert pulled == sorted(expected, key=repr), self.steps

    def check_feed(self, table: HoodieTable) -> None:
        """The changes since the last pull, one after the other, make the rows of now of those of then."""
        feed = table.changes(since=self.reached, images="before_after").to_arrow().to_pylist()
        for change in feed:
            before, after = change["before"], change["after"]
            row = before or after
            key = (row["id"], row["part"])
            assert self.fed.get(key) == (None if before is None else before["val"]), self.steps
            if after is None:
                del self.fed[key]
            else:
                self.fed[key] = after["val"]
        assert self.fed == {key: row.val for key, (row, _) in self.rule.merged(self.rule.logs).items()}, self.steps
