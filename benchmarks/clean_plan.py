"""How long archiving a large table takes, and planning its clean, and how much memory: 10,000 partitions, a million files,
simulated metadata.

`python -m benchmarks.clean_plan` prints a line for archiving and one for the incremental plan, which must not list the table, and one
for the first plan of a table, which lists all of it.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import hoodie
from hoodie.format.service_plans import encode_clean_metadata
from hoodie.model.enums import Action, CleanPolicy, State, WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.payloads import CleanPlan, CommitMetadata, WriteStat
from hoodie.options.cleaning import CleaningOptions
from hoodie.options.parse import parse_write_options
from hoodie.services.archiving import archive
from hoodie.services.clean_plan import plan_clean
from hoodie.storage.base import FileInfo
from hoodie.storage.uri import open_storage
from hoodie.table import open_at
from hoodie.view.context import TableContext
from hoodie.view.listing import AllFiles

PARTITIONS, FILES = 10_000, 100
COMMITS, TOUCHED = 40, 100
OLD = "20250101000000000"


def _partition(number: int) -> str:
    return f"day={number:05d}"


def _file_id(partition: int, number: int) -> str:
    return f"{partition:05d}{number:03d}-0000-4000-8000-000000000000-0"


def _times() -> list[str]:
    return [f"20260101{hour:02d}0000000" for hour in range(24)] + [f"20260102{hour:02d}0000000" for hour in range(16)]


def _touched(commit: int) -> range:
    return range(commit * TOUCHED, (commit + 1) * TOUCHED)


class Simulated:
    """The listing of such a table; it counts what it is asked."""

    uri = "memory://clean-plan"

    def __init__(self) -> None:
        self.partitions = 0
        self.whole = 0
        self._newer = {n: time for commit, time in enumerate(_times()) for n in _touched(commit)}

    def _files(self, number: int) -> Iterator[FileInfo]:
        path = _partition(number)
        yield FileInfo(f"{path}/.hoodie_partition_metadata", 96, 0.0, False, None)
        for file in range(FILES):
            yield FileInfo(f"{path}/{_file_id(number, file)}_0-0-0_{OLD}.parquet", 1000, 0.0, False, None)
        if number in self._newer:
            name = f"{_file_id(number, 0)}_0-0-1_{self._newer[number]}.parquet"
            yield FileInfo(f"{path}/{name}", 1000, 0.0, False, None)

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        self.partitions += len(partition_paths)
        return [list(self._files(int(path.rpartition("=")[2]))) for path in partition_paths]

    def all_files(self) -> AllFiles:
        self.whole += 1
        return AllFiles.of(info for number in range(PARTITIONS) for info in self._files(number))


def _table(listing: Simulated, *, name: str, cleaned: bool) -> TableContext:
    uri = f"{listing.uri}-{name.replace(' ', '-').replace(',', '')}"
    hoodie.create_table(uri, {"id": "string", "day": "string"}, record_key="id", partition_by="day")
    context = open_at(open_storage(uri)).writer.context
    for number, time_ in enumerate(_times()):
        stats = {
            _partition(n): (
                WriteStat(
                    _file_id(n, 0),
                    _partition(n),
                    f"{_partition(n)}/{_file_id(n, 0)}_0-0-1_{time_}.parquet",
                    prev_commit=OLD,
                    file_size_bytes=1000,
                ),
            )
            for n in _touched(number)
        }
        completed = Instant(time_, Action.COMMIT, State.COMPLETED)
        data = context.active.encode_commit(completed, CommitMetadata(WriteOperation.UPSERT, stats))
        context.active.create(completed, data)
    if cleaned:
        plan = CleanPlan(CleanPolicy.KEEP_LATEST_COMMITS, {}, (_times()[10], Action.COMMIT), _times()[20])
        data = encode_clean_metadata(plan, instant="20260103000000000", took_ms=0)
        context.active.create(Instant("20260103000000000", Action.CLEAN, State.COMPLETED), data)
    return replace(context, listing=listing)


def _measured(what: str, act: Callable[[TableContext], object], *, cleaned: bool = True) -> None:
    listing = Simulated()
    context = _table(listing, name=what, cleaned=cleaned)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    did = act(context)
    took = time.perf_counter() - started
    grew = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    sys.stdout.write(
        f"{what}: {took:.2f} s, {grew:.0f} MB more; {did}; listed {listing.partitions:,} partitions, "
        f"the table {listing.whole} times\n"
    )


def _cleans(context: TableContext) -> str:
    planned = plan_clean(context, context.snapshot(), CleaningOptions())
    return f"{planned.plan.count if planned else 0:,} files to delete"


def _archives(context: TableContext) -> str:
    return f"{len(archive(context, parse_write_options({}).write).instants):,} instants archived"


def main() -> None:
    _measured("archiving", _archives)
    _measured("clean, incremental", _cleans)
    _measured("clean, first, of the whole table", _cleans, cleaned=False)


if __name__ == "__main__":
    main()
