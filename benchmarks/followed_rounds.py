"""How often a storage is listed by rounds of ingestion, compaction and cleaning, with files that are followed and without.

`python -m benchmarks.followed_rounds` prints the table of docs/TIMELINE_SERVICE.md. The storage is memory, and calls are counted.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.model.names import HOODIE
from hoodie.options.parse import parse_write_options
from hoodie.storage.base import FileInfo
from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage
from hoodie.table import HoodieTable, open_at
from hoodie.write.create import create_at

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
ALONE = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
FOLLOWS = {"hoodie.filesystem.view.incr.timeline.sync.enable": "true"}
LISTS = {"hoodie.filesystem.view.incr.timeline.sync.enable": "false"}


class Counted(MemoryStorage):
    """Counts listings of partitions, and of folders below `.hoodie`."""

    def __init__(self) -> None:
        super().__init__()
        self.partitions = self.others = 0

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[FileInfo]:
        self._note(folder)
        return super().list(folder, recursive=recursive)

    def names(self, folder: str) -> Sequence[str]:
        self._note(folder)
        return super().names(folder)

    def _note(self, folder: str) -> None:
        if folder.startswith(HOODIE):
            self.others += 1
        else:
            self.partitions += 1


class Round(NamedTuple):
    """Listings of partitions by each step, and of other folders by all of them."""

    ingest: int
    query: int
    compact: int
    clean: int
    others: int


def rows(ids: Sequence[int], partitions: int, ts: int) -> pa.Table:
    keys = np.asarray(ids, dtype=np.int64)
    return pa.table(
        {"id": keys, "part": [f"p{key % partitions:04d}" for key in ids], "ts": np.full(len(keys), ts), "v": keys * 1.0}
    )


def measure(
    partitions: int, touched: int, rounds: int, options: Mapping[str, str], *, new_processes: bool
) -> list[Round]:
    """`new_processes`: each step is taken by one of its own, and so is nothing that a process keeps."""
    storage = Counted()
    create_at(storage, parse_write_options(TABLE).to_create(), schema=rows([0], 1, 1).schema)
    kept = Cache()

    def table() -> HoodieTable:
        return open_at(storage, options={**ALONE, **options}, cache=Cache() if new_processes else kept)

    table().upsert(rows(range(partitions), partitions, 1))
    table().scan().count()
    found = []
    for number in range(rounds):
        ids = [(number * touched + each) % partitions for each in range(touched)]
        storage.others = 0
        ingest = _listed(storage, lambda ids=ids, ts=2 + number: table().upsert(rows(ids, partitions, ts)))
        query = _listed(storage, lambda: table().scan().plan)
        compact = _listed(storage, lambda: table().compact())
        clean = _listed(storage, lambda: table().clean(retain_commits=2))
        found.append(Round(ingest, query, compact, clean, storage.others))
    return found


def _listed(storage: Counted, act: object) -> int:
    storage.partitions = 0
    act()  # type: ignore[operator]
    return storage.partitions


def cases(partitions: int, touched: int, rounds: int) -> dict[str, list[Round]]:
    """Every case by its name."""
    place = {"hoodie.python.view.checkpoint.path": f"memory://{uuid.uuid4().hex}"}
    return {
        name: measure(partitions, touched, rounds, options, new_processes=new)
        for name, options, new in (
            ("listing, one process", {}, False),
            ("followed, one process", FOLLOWS, False),
            ("listing, a process for each step", {}, True),
            ("followed with a checkpoint, a process for each step", FOLLOWS | place, True),
        )
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--touched", type=int, default=20, help="partitions that each round writes into")
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    print("| | ingest | query | compact | clean | folders of `.hoodie` | all rounds |")
    print("|---|---|---|---|---|---|---|")
    for name, found in cases(args.partitions, args.touched, args.rounds).items():
        last = found[-1]
        total = sum(sum(each[:4]) for each in found)
        print(f"| {name} | {' | '.join(f'{count:,}' for count in last)} | {total:,} |")


if __name__ == "__main__":
    main()
