"""The bucket indexes: the hash of a key says in which file group of its partition it stands, so no file is looked into.

Which rows go to which bucket is found out once for each chunk; the tasks that write a bucket then pick their rows, as after any
other look-up. What a table's files say of its layout, where its properties do not: `evidence_of`. Source: Apache Hudi's RFC-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.filegroup.chunks import load_chunk, stage_rows
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.hashes.of_buckets import bucket_hashes, bucket_numbers, bucket_of_file_id, ring_hashes
from hoodie.index.stored_keys import stored_keys
from hoodie.model.buckets import BucketLayout, BucketRows, BucketTask, HashRing, places_on
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import Chunk, Matches, UnstoredColumns
from hoodie.storage.base import Storage
from hoodie.storage.refusals import is_of_storage

MAX_BUCKETS = 1_000_000
"""A file id that begins with a greater number in decimal digits is a plain uuid: one in forty is."""
_SAMPLED_KEYS = 10_000
_MAX_SUBSETS_OF = 4
"""With more key columns only all of them together are tried as hash fields."""


def plan_buckets(
    chunks: Sequence[Chunk], layout: BucketLayout, *, stage_to: str | None, rings: Mapping[str, HashRing] | None = None
) -> list[BucketTask]:
    """One task for each chunk that has rows; `rings`: of each partition path, where buckets lie on rings."""
    return [
        BucketTask(
            n,
            chunk,
            layout,
            stage_to,
            {} if rings is None else {span.partition_path: rings[span.partition_path].values for span in chunk.ranges},
        )
        for n, chunk in enumerate(chunks)
        if chunk.rows
    ]


def run_buckets(storage: Storage, task: BucketTask) -> list[BucketRows]:
    """The rows of the chunk by partition and bucket; row numbers ascend in each."""
    keys = load_chunk(storage, task.chunk).column(RECORD_KEY)
    lengths = [span.length for span in task.chunk.ranges]
    buckets, count = _on_rings(task, keys, lengths) if task.rings else _by_count(task, keys, lengths)
    spans = np.repeat(np.arange(len(lengths)), lengths)
    codes = spans * count + buckets
    order = np.argsort(codes, kind="stable").astype(np.int32)
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.append(True, sorted_codes[1:] != sorted_codes[:-1]))
    ends = np.append(starts[1:], len(order))
    path = None if task.stage_to is None else stage_rows(storage, task.stage_to, order)
    result = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        span, bucket = divmod(int(sorted_codes[start]), count)
        # One staged file serves all buckets of the chunk: a file for each would be thousands.
        rows = order[start:end] if path is None else None
        matches = Matches(task.number, rows=rows, path=path, count=end - start, start=start)
        result.append(BucketRows(task.chunk.ranges[span].partition_path, bucket, matches))
    return result


def _by_count(task: BucketTask, keys: pa.ChunkedArray, lengths: Sequence[int]) -> tuple[np.ndarray, int]:
    """The bucket of each row, and how many there are at most in a partition."""
    layout = task.layout
    if layout.rules is None:
        return bucket_numbers(keys, layout.fields, layout.count), layout.count
    counts = np.array([layout.count_in(span.partition_path) for span in task.chunk.ranges], np.uint32)
    return bucket_numbers(keys, layout.fields, np.repeat(counts, lengths)), int(counts.max())


def _on_rings(task: BucketTask, keys: pa.ChunkedArray, lengths: Sequence[int]) -> tuple[np.ndarray, int]:
    hashes = ring_hashes(keys, task.layout.fields)
    ends = np.cumsum(lengths)
    values = [task.rings[span.partition_path] for span in task.chunk.ranges]
    places = [places_on(each, hashes[end - n : end]) for each, end, n in zip(values, ends, lengths, strict=True)]
    return np.concatenate(places), max(map(len, values))


def slices_by_bucket(
    slices: Iterable[FileSlice], layout: BucketLayout, *, table: str
) -> dict[tuple[str, int], FileSlice]:
    """(partition path, bucket) -> its slice.

    Raises:
        UnsupportedTableError: a file group that is no bucket's, or a second one of a bucket: keys would be missed or doubled.
    """
    result: dict[tuple[str, int], FileSlice] = {}
    for file_slice in slices:
        bucket = bucket_of_file_id(file_slice.group.file_id)
        where = (
            f"file group {file_slice.group.file_id} in partition {file_slice.group.partition_path!r} of table {table}"
        )
        count = layout.count_in(file_slice.group.partition_path)
        if bucket is None or bucket >= count:
            raise UnsupportedTableError(
                f"{where} is not one of the {count} buckets of the partition: another writer wrote it without the bucket index, or "
                "with another number of buckets. This release does not write such a table; load its rows into a new one"
            )
        other = result.setdefault((file_slice.group.partition_path, bucket), file_slice)
        if other is not file_slice:
            raise UnsupportedTableError(
                f"{where} is a second file group of bucket {bucket}, beside {other.group.file_id}: a second bulk_insert by Apache "
                "Hudi makes one, and its keys may be stored twice. Nobody can write this table; load its rows into a new one"
            )
    return result


def looks_bucketed(file_ids: Iterable[str]) -> bool:
    """Whether all file ids begin as those of buckets do. The keys have the last word: `evidence_of`."""
    numbers = [bucket_of_file_id(file_id) for file_id in file_ids]
    return bool(numbers) and all(number is not None and number < MAX_BUCKETS for number in numbers)


@dataclass(frozen=True)
class Evidence:
    """What files say of a table's buckets, if these columns are the hash fields."""

    fields: tuple[str, ...]
    divisor: int
    """Every possible number of buckets divides it; 0: any may be."""
    greatest: int
    """The greatest bucket number of a file id."""

    def allows(self, count: int) -> bool:
        return count > self.greatest and self.divisor % count == 0

    @property
    def possible(self) -> bool:
        return self.divisor == 0 or self.divisor > self.greatest

    @property
    def only_count(self) -> int | None:
        """The one possible number of buckets; None when there are several."""
        if not self.divisor:
            return None
        small = [n for n in range(1, int(self.divisor**0.5) + 1) if self.divisor % n == 0]
        counts = {n for m in small for n in (m, self.divisor // m) if n > self.greatest}
        return counts.pop() if len(counts) == 1 else None


def evidence_of(
    storage: Storage,
    bases: Iterable[BaseFile],
    *,
    greatest: int,
    choices: Sequence[tuple[str, ...]],
    unstored: UnstoredColumns | None = None,
) -> Iterator[list[Evidence]]:
    """What is possible after each of the files, for each choice of hash fields; stop when it is enough.

    A key's hash leaves the bucket's number as the remainder when it is divided by the number of buckets: so that number divides
    all differences between the two. Some thousand keys leave nothing else to be shared by them.

    Raises:
        CorruptFileError: keys cannot be read.
    """
    divisors = dict.fromkeys(choices, 0)
    for base in bases:
        bucket = bucket_of_file_id(base.file_id)
        keys = some_keys(storage, base, unstored)
        for fields in choices:
            hashes = (bucket_hashes(keys, fields) & np.uint32(0x7FFFFFFF)).astype(np.int64)
            shared = np.gcd.reduce(np.abs(hashes - (bucket or 0)), initial=divisors[fields])
            divisors[fields] = int(shared)
        evidence = [Evidence(fields, divisor, greatest) for fields, divisor in divisors.items()]
        yield [each for each in evidence if each.possible]


def hash_field_choices(record_key_fields: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Which columns may be the hash fields: all of the key's, which is Apache Hudi's default, then any of them."""
    if len(record_key_fields) > _MAX_SUBSETS_OF:
        return [record_key_fields]
    sizes = range(len(record_key_fields), 0, -1)
    return [choice for size in sizes for choice in combinations(record_key_fields, size)]


def some_keys(storage: Storage, base: BaseFile, unstored: UnstoredColumns | None) -> pa.Array:
    """Some record keys of a base file.

    Raises:
        CorruptFileError: they cannot be read.
    """
    with open_base_file(storage, base) as (file, _):
        try:
            where = f"{base.path} of table {storage.uri}"
            for keys in stored_keys(file, base.path, unstored, batch_rows=_SAMPLED_KEYS, path=where):
                return keys
        except (pa.ArrowInvalid, OSError, KeyError) as exc:
            if is_of_storage(exc):
                raise
            raise CorruptFileError(
                f"the record keys of {base.path} of table {storage.uri} cannot be read: {exc}"
            ) from exc
    return pa.array([], pa.string())
