"""Record keys of a source, before anything is written: no two rows of a partition may have the same one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.errors import DuplicateKeyError, KeyFieldError
from hoodie.hashes.of_keys import key_hash
from hoodie.hashes.of_values import mixed
from hoodie.keygen.generator import KeyGenerator
from hoodie.migration.rows import Rows
from hoodie.migration.source import described
from hoodie.model.results import format_count

_SHOWN = 5


def refuse_duplicates(rows: Rows, keys: KeyGenerator, columns: list[str]) -> None:
    """Look at all keys: eight bytes of each are in memory, and only keys whose hashes meet are compared.

    Raises:
        DuplicateKeyError: a key is there twice. KeyFieldError: a row has none.
    """
    hashes = [hashed for _, _, hashed in _keys(rows, keys, columns)]
    sorted_hashes = np.sort(np.concatenate(hashes)) if hashes else np.empty(0, np.uint64)
    twice = np.unique(sorted_hashes[1:][sorted_hashes[1:] == sorted_hashes[:-1]])
    if not len(twice):
        return
    counts: dict[tuple[Any, Any], int] = {}
    for key, path, hashed in _keys(rows, keys, columns):
        at = np.flatnonzero(np.isin(hashed, twice))
        picked = pa.array(at)
        for pair in zip(path.take(picked).to_pylist(), key.take(picked).to_pylist(), strict=True):  # duplicates only
            counts[pair] = counts.get(pair, 0) + 1
    repeated: Mapping[tuple[Any, Any], int] = {pair: count for pair, count in counts.items() if count > 1}
    if not repeated:
        return
    examples = "".join(
        f"\n  {count} times: {key[:80]!r}{f' in partition {path!r}' if path else ''}"
        for (path, key), count in sorted(repeated.items())[:_SHOWN]
    )
    raise DuplicateKeyError(
        f"the {described(rows.source)} has {format_count(len(repeated), 'record key')} more than once, {sum(repeated.values()):,} "
        f"rows; nothing was written{examples}\n  fix:     choose key columns that are unique, remove rows from the source, or upsert "
        "them by hoodie.ingest, which keeps of each key the row with the greatest ordering value"
    )


def _keys(rows: Rows, keys: KeyGenerator, columns: list[str]) -> Iterator[tuple[pa.Array, pa.Array, np.ndarray]]:
    for piece in rows.source.pieces:
        for batch in rows.of(piece, columns):
            table = pa.Table.from_batches([batch])
            try:
                key, path = (each.combine_chunks() for each in (keys.keys(table), keys.partitions(table)))
            except KeyFieldError as exc:
                raise KeyFieldError(f"{piece.path} of the {described(rows.source)}: {exc}") from exc
            with np.errstate(over="ignore"):
                yield key, path, key_hash(key) + mixed(key_hash(path))
