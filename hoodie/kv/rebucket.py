"""More buckets, or fewer: all rows of the old ones go to new ones, and then one file makes those the store's.

What a bucket's log has and its data files have not is written to files first, as HBase splits a log when regions move. Until the
last step the store is what it was; a process that dies leaves a folder that the next try removes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from hoodie.errors import CommitConflictError, OptionError
from hoodie.kv.binary import Binary
from hoodie.kv.flush import Flusher
from hoodie.kv.lookup import Files
from hoodie.kv.manifest import NO_WINDOW, DataFile
from hoodie.kv.names import bucket_folder, store_file
from hoodie.kv.rows import SortedRows
from hoodie.kv.settings import StoreLayout
from hoodie.kv.writer import BucketWriter
from hoodie.model.names import folder_of
from hoodie.storage.base import Storage


def rebucket(
    storage: Storage,
    layout: StoreLayout,
    new: StoreLayout,
    *,
    below: Callable[[str], Storage],
    writer: Callable[[int], BucketWriter],
    flusher: Callable[[Storage, str], Flusher],
    bucket_of: Callable[[Binary], Binary],
    window: int | None,
) -> None:
    """Make the store one with the buckets of `new`.

    Args:
        writer: of an old bucket.
        bucket_of: new buckets of keys as they are stored.
        window: the last window that is committed as a whole; None: all buckets that have one stand at the same.

    Raises:
        LockError: a bucket has a writer. OptionError: buckets stand at different windows. CommitConflictError: somebody else has
            changed the buckets meanwhile.
    """
    folders = [bucket_folder(new.number, number) for number in range(new.buckets)]
    with ExitStack() as stack:
        old = [stack.enter_context(writer(number)) for number in range(layout.buckets)]
        window = _window([each.last_window for each in old], window, uri=storage.uri)
        storage.delete_folder(folder_of(folders[0]))
        for each in old:
            each.flush()
        _fill(
            [
                flusher(below(folder), f"bucket {number} of store {storage.uri}")
                for number, folder in enumerate(folders)
            ],
            [each.files for each in old],
            bucket_of,
            window=NO_WINDOW if window is None else window,
        )
        try:
            storage.create_new(store_file(new.number), new.encode())
        except FileExistsError as exc:
            raise CommitConflictError(
                f"somebody else has given store {storage.uri} other buckets meanwhile: open it again"
            ) from exc
    storage.delete_folder(folder_of(bucket_folder(layout.number, 0)))


def _window(numbers: Sequence[int | None], stated_window: int | None, *, uri: str) -> int | None:
    windows = sorted({window for window in numbers if window is not None})
    if stated_window is None:
        if len(windows) > 1:
            raise OptionError(
                f"the buckets of store {uri} stand at windows {windows[0]} to {windows[-1]}: say by window= which one is committed in "
                "all buckets that have rows of it"
            )
        return windows[0] if windows else None
    if windows and windows[-1] > stated_window:
        raise OptionError(
            f"a bucket of store {uri} stands at window {windows[-1]}, which is beyond window={stated_window}: let the stream "
            "commit that window in all buckets first"
        )
    return stated_window


def _fill(
    targets: Sequence[Flusher], sources: Sequence[Files], bucket_of: Callable[[Binary], Binary], *, window: int
) -> None:
    """Distribute the rows over the buckets. Sources are sorted and share no key, so each adds one run to a bucket."""
    files_of: list[list[DataFile]] = [[] for _ in targets]
    for run, source in enumerate(sources, 1):
        made_s = max((file.made_s for file in source.manifest.files), default=0.0)
        with ExitStack() as stack:
            writers = [stack.enter_context(target.new_files(run=run, made_s=made_s)) for target in targets]
            for rows in source.scan():
                numbers = np.asarray(bucket_of(rows.keys))
                for number in np.unique(numbers):
                    mask = pa.array(numbers == number)
                    writers[number].add(SortedRows(rows.keys.filter(mask), rows.values.filter(mask)))
        for files, writer in zip(files_of, writers, strict=True):
            files += writer.files
    for target, files in zip(targets, files_of, strict=True):
        target.begin_with(files, window=window)
        target.merge_if_due()
