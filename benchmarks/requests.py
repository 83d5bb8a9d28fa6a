"""How many requests operations make of an object store, by kind, and how many of them in a row: the tables of docs/STORAGE.md.

    python -m benchmarks.requests
    python -m benchmarks.requests --only-chains

The store is obstore's own one in memory, and each call of it is counted as the requests that S3 would get: a listing and a bulk
delete one for each 1,000 names, anything else one. Chains are counted, not timed: calls that are made together are run one by one,
and each of them counts from where all of them began.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import obstore
import pyarrow as pa
from obstore.store import MemoryStore

from hoodie.options.parse import parse_write_options
from hoodie.storage import object_store, parallel
from hoodie.storage.cache import Cache
from hoodie.storage.object_store import ObjectStorage
from hoodie.table import HoodieTable, open_at
from hoodie.txn.transaction import Transaction
from hoodie.write.create import create_at

_KINDS = {
    "get": "GET",
    "get_range": "GET",
    "get_ranges": "GET",
    "head": "HEAD",
    "list": "LIST",
    "list_with_delimiter": "LIST",
    "put": "PUT",
    "copy": "COPY",
    "delete": "DELETE",
}
_PAGE = 1000
_TOUCHED = 3
_ROWS_OF_PARTITION = 20


class Counting:
    """obstore's functions, counted."""

    exceptions = obstore.exceptions
    store = obstore.store

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.of_commit: Counter[str] = Counter()
        """What the newest commit made of them, from the lock to the completed instant."""
        self.in_a_row = 0
        """Length of the longest chain of requests that wait for each other, within `chained`."""
        self.chains: dict[str, int] = {}
        """The same by the name of what was measured. Of an upsert of one row: tasks of an engine are not told apart."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(obstore, name)
        kind = _KINDS[name]

        def call(store: Any, *args: Any, **how: Any) -> Any:
            self.in_a_row += 1
            found = function(store, *args, **how)
            if name == "list":
                return self._pages(found)
            self.made[kind] += 1
            return found

        return call

    def _pages(self, chunks: Iterable[list[Any]]) -> Iterator[list[Any]]:
        """A request for each chunk that is taken."""
        self.made["LIST"] += 1
        for number, chunk in enumerate(chunks):
            self.made["LIST"] += number > 0
            yield chunk


@contextmanager
def commits_of(counting: Counting) -> Iterator[None]:
    """Within it `of_commit` is counted."""
    commit = Transaction.commit

    def counted(transaction: Transaction, *args: Any, **how: Any) -> Any:
        before = Counter(counting.made)
        try:
            return commit(transaction, *args, **how)
        finally:
            counting.of_commit = counting.made - before

    Transaction.commit = counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        Transaction.commit = commit  # type: ignore[method-assign]


class _Result:
    """What a call gave, and where its chain ended."""

    def __init__(self, counting: Counting, call: Callable[..., Any], args: Sequence[Any]) -> None:
        began = counting.in_a_row
        self._counting = counting
        self._error: BaseException | None = None
        try:
            self._value = call(*args)
        except BaseException as error:  # noqa: BLE001 - as a future keeps it
            self._error = error
        self.ended = counting.in_a_row
        counting.in_a_row = began

    def result(self) -> Any:
        self._counting.in_a_row = max(self._counting.in_a_row, self.ended)
        if self._error is not None:
            raise self._error
        return self._value


class _Pool:
    """Stands for a `ThreadPoolExecutor`: runs each call when it is submitted, in the thread of the caller."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._results: list[_Result] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._counting.in_a_row = max([self._counting.in_a_row, *(each.ended for each in self._results)])

    def submit(self, call: Callable[..., Any], *args: Any) -> _Result:
        self._results.append(_Result(self._counting, call, args))
        return self._results[-1]


@contextmanager
def chained(counting: Counting) -> Iterator[None]:
    """Within it `in_a_row` is counted."""
    pool = parallel.ThreadPoolExecutor
    parallel.ThreadPoolExecutor = lambda *_, **__: _Pool(counting)  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        parallel.ThreadPoolExecutor = pool  # type: ignore[misc]


class Shape(NamedTuple):
    table_type: str
    partitions: int
    commits: int
    services: bool = False
    """Whether the writes compact, clean and archive."""
    touched: int = _TOUCHED
    """Rows of an upsert, each of another partition."""
    options: Mapping[str, str] = MappingProxyType({})


def _services(on: bool) -> dict[str, str]:
    names = ("hoodie.compact.inline", "hoodie.clean.automatic", "hoodie.archive.automatic")
    return dict.fromkeys(names, str(on).lower())


_AVERAGED = 30


def rows(ids: Iterable[int], partitions: int, ts: int) -> pa.Table:
    keys = np.fromiter(ids, dtype=np.int64)
    return pa.table(
        {
            "id": keys,
            "part": pa.array([f"p{key % partitions:04d}" for key in keys]),
            "ts": np.full(len(keys), ts),
            "v": keys * 1.0,
        }
    )


def measure(shape: Shape, counting: Counting) -> list[tuple[str, Counter[str]]]:
    store = MemoryStore()

    def storage() -> ObjectStorage:
        return ObjectStorage("memory://counted", store, store)

    def opened() -> HoodieTable:
        """As another process opens it."""
        return open_at(storage(), cache=Cache())

    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": shape.table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    touched = range(shape.touched)
    create_at(storage(), parse_write_options(options).to_create(), schema=rows([0], 1, 1).schema)
    table = opened()
    table.upsert(rows(range(shape.partitions * _ROWS_OF_PARTITION), shape.partitions, 1), dict(shape.options))
    services, alone = ({**_services(on), **shape.options} for on in (shape.services, False))
    for n in range(shape.commits):
        table.upsert(rows(touched, shape.partitions, 2 + n), services)
    last = table.timeline.commits[-2].time
    acts: list[tuple[str, Callable[[], object]]] = [
        ("upsert", lambda: table.upsert(rows(touched, shape.partitions, 10_000), alone)),
        ("upsert of a new process", lambda: opened().upsert(rows(touched, shape.partitions, 10_001), alone)),
        ("scan", lambda: opened().scan().to_arrow()),
        ("pull of two commits", lambda: opened().changes(since=last).to_arrow()),
    ]
    if shape.table_type == "MERGE_ON_READ":
        acts.append(("compaction", lambda: opened().compact()))
    found = []
    for name, act in acts:
        counting.made.clear()
        counting.in_a_row = 0
        with commits_of(counting):
            act()
        counting.chains[name] = counting.in_a_row
        found.append((name, Counter(counting.made)))
        if name == "upsert":
            found.append(("of which its commit", Counter(counting.of_commit)))
    if shape.services:
        counting.made.clear()
        for n in range(_AVERAGED):
            table.upsert(rows(touched, shape.partitions, 20_000 + n), services)
        mean = Counter({kind: round(count / _AVERAGED) for kind, count in counting.made.items()})
        found.append((f"upsert with services, mean of {_AVERAGED}", mean))
    return found


def print_chains(counting: Counting) -> None:
    """Requests of an upsert of one row, and how many of them wait for each other."""
    print("| table | metadata table | what | requests | in a row |")
    print("|---|---|---|---|---|")
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for metadata in ("false", "true"):
            shape = Shape(table_type, 4, 3, touched=1, options={"hoodie.metadata.enable": metadata})
            with chained(counting):
                found = dict(measure(shape, counting))
            for name in ("upsert", "upsert of a new process"):
                print(f"| {table_type} | {metadata} | {name} | {found[name].total()} | {counting.chains[name]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--partitions", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--commits", type=int, nargs="*", default=[10, 1000])
    parser.add_argument(
        "--only-services", action="store_true", help="only the tables whose writes compact, clean and archive"
    )
    parser.add_argument("--only-chains", action="store_true", help="only upserts of one row, with their chains")
    args = parser.parse_args()
    counting = Counting()
    object_store._obstore = lambda: counting  # type: ignore[assignment,return-value]
    if args.only_chains:
        print_chains(counting)
        return
    kinds = ("GET", "HEAD", "LIST", "PUT", "COPY", "DELETE")
    print("| table | partitions | commits | what | " + " | ".join(kinds) + " | all |")
    print("|---|---|---|---|" + "---|" * (len(kinds) + 1))
    shapes = [Shape("MERGE_ON_READ", p, args.commits[0]) for p in args.partitions]
    shapes += [Shape("MERGE_ON_READ", args.partitions[0], c) for c in args.commits[1:]]
    shapes.append(Shape("COPY_ON_WRITE", args.partitions[0], args.commits[0]))
    served = [Shape("MERGE_ON_READ", args.partitions[0], c, services=True) for c in args.commits]
    for shape in served if args.only_services else [*shapes, *served]:
        for name, made in measure(shape, counting):
            counts = " | ".join(str(made[kind]) for kind in kinds)
            kind = "merge-on-read" if shape.table_type == "MERGE_ON_READ" else "copy-on-write"
            commits = f"{shape.commits}, services" if shape.services else str(shape.commits)
            print(f"| {kind} | {shape.partitions} | {commits} | {name} | {counts} | {sum(made.values())} |")


if __name__ == "__main__":
    main()
