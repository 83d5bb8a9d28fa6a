"""hoodie and Apache Hudi append to the same buckets at the same time, both in non-blocking mode: nobody loses, and readers agree.

Each begins before the other one ends. Apache Hudi is held after it has its instant by rows that do not come; ours is begun, and
completed later.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from integration.hudi_client import HudiPeer
from integration.tables import TRIPS, trips
from integration.views import BEGINNING, View, by_hudi, by_rust, differences, ours
from tests.begun import begun
from tests.effort import SOAK, soak_but

MODE = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


class Both:
    """One table, both writers, and the rows that must be in it."""

    def __init__(self, hudi: HudiPeer, path: Path, *, ordering: str | None, version: str, more: Any = None) -> None:
        self.hudi, self.path, self.ordering = hudi, path, ordering
        self.pulled = BEGINNING
        self.options = {
            "hoodie.table.name": path.name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.write.table.version": version,
            **({"hoodie.datasource.write.precombine.field": ordering} if ordering else {}),
            **BUCKETS,
            **MODE,
            **(more or {}),
        }

    def create(self) -> None:
        hoodie.create_table(
            self.path,
            TRIPS,
            record_key="id",
            partition_by="city",
            ordering=self.ordering,
            table_type="MERGE_ON_READ",
            options=self.options,
        )

    @property
    def table(self) -> hoodie.HoodieTable:
        return hoodie.open_table(self.path, options=MODE)

    def arrow(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=TRIPS)

    def we_begin(self, rows: list[dict[str, Any]]) -> AbstractContextManager[Callable[[], None]]:
        return begun(self.table, self.arrow(rows))

    def we_upsert(self, rows: list[dict[str, Any]]) -> None:
        self.table.upsert(self.arrow(rows))

    def hudi_upserts(self, rows: list[dict[str, Any]], more: Any = None) -> None:
        self.hudi.write(self.path, self.arrow(rows), {**self.options, **(more or {})})

    @contextmanager
    def hudi_begins(self, rows: list[dict[str, Any]], more: Any = None) -> Iterator[Callable[[], None]]:
        """Apache Hudi has its instant; gives what lets it write its rows and end."""
        gate = self.path.parent / "gate"
        gate.touch()
        options = {**self.options, **(more or {})}
        with ThreadPoolExecutor(1) as pool:
            writing: Future[None] = pool.submit(
                lambda: self.hudi.write(self.path, self.arrow(rows), options, gate=gate)
            )

            def end() -> None:
                gate.unlink(missing_ok=True)
                writing.result()

            try:
                before = {i.time for i in self.table.timeline.pending_writes}
                while not {i.time for i in self.table.timeline.pending_writes} - before:
                    assert not writing.done(), writing.exception()
                    time.sleep(0.05)
                yield end
            finally:
                gate.unlink(missing_ok=True)

    def fares(self) -> dict[int, int]:
        """Number of a trip -> the fare that it was written with; `trips` adds the number to it."""
        found = ((int(row["id"][1:]), row["fare"]) for row in self.table.scan().to_arrow().to_pylist())
        return {number: fare - number for number, fare in found}

    def began_before_a_compaction(self, view: View) -> bool:
        """As of the instant of a write that was completed after a compaction was planned, Apache Hudi 1.2.0 leaves out its rows."""
        timeline = self.table.timeline
        write = next((i for i in timeline.commits if i.time == view.as_of), None)
        return write is not None and any(write.time < plan < write.position for plan in timeline.compactions)

    def check(self, *, in_bases: bool = False) -> None:
        """All readers see the same; hudi-rs 0.5 does not see file groups that have no base file."""
        seen = ours(self.path, View())
        keys = [row["id"] for row in seen]
        assert len(keys) == len(set(keys))
        assert by_hudi(self.hudi)(self.path, View()) == seen
        assert by_hudi(self.hudi, {"hoodie.metadata.enable": "true"})(self.path, View()) == seen
        assert by_hudi(self.hudi)(self.path, View("read_optimized")) == ours(self.path, View("read_optimized"))
        latest = max(commit.position for commit in self.table.timeline.commits)
        pull = View("incremental", self.pulled, latest)
        assert by_hudi(self.hudi)(self.path, pull) == ours(self.path, pull)
        self.pulled = latest
        if in_bases:
            assert by_rust(self.path, View()) == seen


DEFAULTS = {"hoodie.metadata.enable": "true", "hoodie.clean.automatic": "true", "hoodie.archive.automatic": "true"}
"""Of Apache Hudi, which the peer's settings turn off."""
CASES = {"event time": ("ts", "9", DEFAULTS), "commit time": (None, "9", {}), "version 8": ("ts", "8", DEFAULTS)}


@pytest.mark.parametrize("case", soak_but(["event time", "commit time"], CASES))
def test_each_appends_between_the_beginning_and_the_end_of_the_other(hudi, tmp_path, case):
    ordering, version, more = CASES[case]
    both = Both(hudi, tmp_path / "trips", ordering=ordering, version=version, more=more)
    both.create()
    if more:  # this makes the metadata table, which both keep up from then on
        both.hudi_upserts(trips([20], fare=0, ts=1))
    # New buckets: both begin them.
    with both.we_begin(trips(range(8), fare=1, ts=10)) as end:
        both.hudi_upserts(trips(range(4, 12), fare=2, ts=20))
        end()
    both.check()
    with both.hudi_begins(trips([1, 2, 12], fare=3, ts=30)) as end:
        both.we_upsert(trips([2, 3, 13], fare=4, ts=40))
        end()
    both.check()
    expected = {**dict.fromkeys(range(4), 1), **dict.fromkeys(range(4, 12), 2), 1: 3, 2: 4, 3: 4, 12: 3, 13: 4}
    expected |= {20: 0} if more else {}
    assert both.fares() == expected
    assert both.table.compact()
    assert both.fares() == expected
    both.check(in_bases=True)
    # A compaction of Apache Hudi is planned and run while a write of ours is pending, and the other way round.
    with both.we_begin(trips([5, 14], fare=5, ts=50)) as end:
        both.hudi_upserts(
            trips([6, 15], fare=6, ts=60),
            {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"},
        )
        end()
    both.check(in_bases=True)
    both.hudi_upserts(trips([7], fare=7, ts=70))
    with both.hudi_begins(trips([7, 16], fare=8, ts=80)) as end:
        assert both.table.schedule_compaction(wait_s=0) is not None
        both.table.run_compaction()
        end()
    both.check(in_bases=True)
    if SOAK:
        assert differences(both.path, ours, by_hudi(hudi), skip=both.began_before_a_compaction) == []
    found = both.fares()
    says = (both.path / ".hoodie/hoodie.properties").read_text()
    assert ("hoodie.table.metadata.partitions=column_stats,files,partition_stats" in says) == bool(more)
    assert str(both.table.validate()).startswith("valid")
    assert {n: found[n] for n in (5, 6, 7, 14, 15, 16)} == {5: 5, 6: 6, 7: 8, 14: 5, 15: 6, 16: 8}
