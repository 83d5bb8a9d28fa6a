"""Which files a flush and a merge make, and which they leave alone. Pure.

Files of one run do not overlap. New rows go into the oldest run above everything that they overlap: keys that only grow stay in one
run, and nothing is ever rewritten for them. Where ranges overlap, runs pile up. A look-up asks each of them, so beyond a number the
newest ones are merged, as size-tiered (universal) compaction does it: an older run is taken along when it is not much larger than
the newer ones together, so that each byte is rewritten about once for each doubling of the bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hoodie.kv.manifest import DataFile

MOST_RUNS = 4
_RATIO = 1.5


class Merge(NamedTuple):
    files: tuple[DataFile, ...]
    """To be replaced, oldest run first."""
    run: int
    """Of what comes in their place."""
    moved: tuple[DataFile, ...]
    """They only change their run: nothing else that is merged overlaps them."""
    drops_deletes: bool
    """Nothing older is left that a deleted key could hide."""


def run_for(files: Iterable[DataFile], first: bytes, last: bytes) -> int:
    """The run of new rows in that range."""
    return 1 + max((file.run for file in files if overlaps(file, first, last)), default=0)


def overlaps(file: DataFile, first: bytes, last: bytes) -> bool:
    return file.first <= last and first <= file.last


def plan_merge(files: Sequence[DataFile], *, most_runs: int = MOST_RUNS) -> Merge | None:
    """What to merge now, if anything."""
    runs = sorted({file.run for file in files}, reverse=True)
    if len(runs) <= most_runs:
        return None
    sizes = {run: sum(file.size_bytes for file in files if file.run == run) for run in runs}
    count, total = 1, sizes[runs[0]]
    for run in runs[1:]:
        if sizes[run] > _RATIO * total and len(runs) - count < most_runs:
            break
        total += sizes[run]
        count += 1
    return merge_of(files, set(runs[:count]))


def merge_all(files: Sequence[DataFile]) -> Merge | None:
    """Everything into one run; None where it is one already."""
    runs = {file.run for file in files}
    return merge_of(files, runs) if len(runs) > 1 or any(file.has_deletes for file in files) else None


def merge_of(files: Sequence[DataFile], runs: set[int]) -> Merge:
    chosen = [file for file in files if file.run in runs]
    oldest = min(runs)
    alone: list[DataFile] = []
    together: list[DataFile] = []
    is_bottom = oldest == min(file.run for file in files)
    for file in chosen:
        beside = any(other is not file and overlaps(other, file.first, file.last) for other in chosen)
        rewritten = beside or (is_bottom and file.has_deletes)
        (together if rewritten else alone).append(file)
    return Merge(
        tuple(sorted(together, key=lambda file: (file.run, file.first))),
        oldest,
        tuple(file._replace(run=oldest) for file in alone),
        drops_deletes=is_bottom,
    )


def cuts(files: Sequence[DataFile]) -> list[tuple[bytes, bytes | None]]:
    """Ranges, from a key on and before another, that lie between the beginnings of the files, in order: what is merged at once."""
    firsts = sorted({file.first for file in files})
    return list(zip(firsts, [*firsts[1:], None][: len(firsts)], strict=True))
