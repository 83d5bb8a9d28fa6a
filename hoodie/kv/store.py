"""A store: buckets of keys in a folder of a disk, HDFS or an object store. Needs no table, and no service that runs."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from hoodie.errors import CorruptFileError, LockError, OptionError, TableChangedError, TableNotFoundError
from hoodie.kv.binary import KEYS, VALUES, Binary, Many, as_array, as_bytes, listed
from hoodie.kv.check import BucketCheck, check_bucket
from hoodie.kv.data_files import DEFAULT_FORMAT, format_named
from hoodie.kv.flush import Flusher
from hoodie.kv.manifest import NO_WINDOW, Manifest, read_newest
from hoodie.kv.names import bucket_folder, store_file, store_number
from hoodie.kv.order import LEXICOGRAPHIC, order_named
from hoodie.kv.ownership import Hold
from hoodie.kv.reader import BucketReader
from hoodie.kv.rebucket import rebucket
from hoodie.kv.settings import NO_COMPRESSION, StoreLayout, StoreOptions
from hoodie.kv.wal import Replay
from hoodie.kv.writer import BucketWriter
from hoodie.options.arguments import check_seconds
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, process_cache
from hoodie.storage.refusals import plain_errors, with_hoodie_errors
from hoodie.storage.uri import open_storage

_ROWS = pa.schema([pa.field("key", KEYS), pa.field("value", VALUES)])
DEFAULT_BUCKETS = 8


@with_hoodie_errors
class KeyValueStore:
    """Made by `open_store`."""

    def __init__(
        self,
        storage: Storage,
        layout: StoreLayout,
        options: StoreOptions,
        below: Any,
        *,
        cache: Cache,
        concurrency: ConcurrencyOptions = CONCURRENCY,
    ) -> None:
        self._storage = storage
        self._layout = layout
        self._options = options
        self._below = below
        self._cache = cache
        self._concurrency = concurrency
        self._format = format_named(layout.file_format)
        self._order = order_named(layout.order)

    def __repr__(self) -> str:
        return f"KeyValueStore({self.uri!r}, {self.buckets} buckets)"

    @property
    def uri(self) -> str:
        return self._storage.uri

    @property
    def buckets(self) -> int:
        return self._layout.buckets

    @property
    def file_format(self) -> str:
        return self._layout.file_format

    @property
    def order(self) -> str:
        """Name of the order of keys."""
        return self._layout.order

    def bucket_of(self, key: bytes) -> int:
        """The bucket of a key, by its hash (CRC-32). A store may be filled by another rule: then ask by that."""
        return zlib.crc32(as_bytes(key, "bucket_of")) % self._layout.buckets

    def buckets_of(self, keys: Many) -> Binary:
        """The same for many keys."""
        array = as_array(keys, KEYS, "keys")
        if array.null_count:
            raise OptionError("a key is null, and no bucket has null keys: leave it out")
        return buckets_of(array, self._layout.buckets)

    def writer(self, bucket: int, *, wait_s: float = 0.0, accept_loss: bool = False) -> BucketWriter:
        """The writer of a bucket, which takes up what an earlier one has left in the log.

        Args:
            wait_s: so long it waits for a living writer to end.
            accept_loss: go on without the windows that a log has lost which was cut after its writer was closed.

        Raises:
            LockError: the bucket has a living writer. CorruptFileError: its log or its metadata is damaged. TableChangedError: the
                store has other buckets since it was opened.
        """
        check_seconds(wait_s, "wait_s")
        storage, what = self._bucket(bucket), f"bucket {bucket} of store {self.uri}"
        with plain_errors(storage.uri):
            hold = _take_hold(lambda: Hold(storage, what, self._concurrency), wait_s)
            try:
                # Only now: whoever gives the store other buckets has all of them in hand.
                self._require_newest()
                return BucketWriter(
                    storage,
                    what,
                    self._format,
                    self._order,
                    self._options,
                    self._cache,
                    hold,
                    accept_loss=accept_loss,
                )
            except BaseException:
                hold.abandon()
                raise

    def check(self, *, rows: bool = False) -> list[BucketCheck]:
        """Whether the files and the log of each bucket are whole; nothing is changed.

        Args:
            rows: read every row, too.
        """
        look = partial(
            check_bucket, data_format=self._format, cache=Cache(), rows=rows
        )  # what was read before is read again
        return [look(self._bucket(bucket), bucket) for bucket in range(self.buckets)]

    def reader(self, bucket: int, *, max_age_s: float | None = 1.0) -> BucketReader:
        """A reader of a bucket's data files.

        Args:
            max_age_s: after so many seconds it looks whether there is a newer state; None: only when `refresh` is called.
        """
        check_seconds(max_age_s, "max_age_s", or_none=True)
        self._require_newest()
        return BucketReader(self._bucket(bucket), self._format, self._order, self._cache, max_age_s=max_age_s)

    def scan(self) -> Iterator[pa.RecordBatch]:
        """All rows in data files, bucket after bucket: record batches of `key` (binary) and `value` (large binary)."""
        for bucket in range(self.buckets):
            yield from self.reader(bucket, max_age_s=None).scan()

    def export_parquet(self, path: str) -> int:
        """Write all rows in data files to a Parquet file of this machine; gives their number."""
        rows = 0
        try:
            file = parquet.ParquetWriter(path, _ROWS)
        except (TypeError, UnicodeError, pa.ArrowInvalid) as exc:
            raise OptionError(f"path={path!r:.80} is not a path of a file: {exc}") from exc
        with file as writer:
            for batch in self.scan():
                writer.write_batch(batch)
                rows += batch.num_rows
        return rows

    def import_rows(self, batches: Iterable[pa.RecordBatch], window_id: int) -> int:
        """Put rows of `key` and `value` into the buckets of their keys, as one window in each; gives their number.

        Where a bucket has committed that window, its rows are left out. Rows wait in memory until the last one is there.
        """
        try:
            table = pa.Table.from_batches(list(batches), _ROWS)
        except (TypeError, AttributeError, pa.ArrowInvalid) as exc:
            raise OptionError(
                f"import_rows takes record batches of `key` (binary) and `value` (large binary): {exc}"
            ) from exc
        numbers = self.buckets_of(table["key"].combine_chunks())
        for bucket in range(self.buckets):
            with self.writer(bucket) as writer:
                chosen = table.filter(pc.equal(numbers, bucket))
                writer.put_many(chosen["key"].combine_chunks(), chosen["value"].combine_chunks())
                writer.end_window(window_id)
                writer.flush()
        return table.num_rows

    def rebucket(self, buckets: int, *, window: int | None = None) -> None:
        """Spread the rows over so many buckets, by `bucket_of`. No bucket may have a writer.

        Args:
            window: the last window that is committed in all buckets that have rows of it. Needed only where buckets stand at
                different windows.

        Raises:
            LockError: a bucket has a writer. OptionError: buckets stand at different windows, or beyond that one.
        """
        new = replace(self._layout, number=self._layout.number + 1, buckets=_whole(buckets))
        rebucket(
            self._storage,
            self._layout,
            new,
            below=self._below,
            writer=self.writer,
            flusher=lambda storage, what: Flusher(
                storage, what, self._format, self._options, self._cache, read_newest(storage)
            ),
            bucket_of=lambda stored: buckets_of(self._order.shown_many(stored), new.buckets),
            window=window,
        )
        self._layout = new

    def last_window(self, bucket: int) -> int | None:
        """The last window that is committed in a bucket, without a writer: also while the storage is full. None: there is none.

        Raises:
            CorruptFileError: its log or its metadata is damaged.
        """
        storage = self._bucket(bucket)
        manifest = read_newest(storage)
        log = Replay(storage, manifest.wal_from, sizes=manifest.log)
        last = max([manifest.window, *(window.id for window in log)])
        return None if last == NO_WINDOW else last

    def manifest(self, bucket: int) -> Manifest:
        """The newest state of a bucket, for who counts and shows."""
        return read_newest(self._bucket(bucket))

    def _require_newest(self) -> None:
        newest = read_layout(self._storage)
        if newest is None or newest.number != self._layout.number:
            raise TableChangedError(
                f"store {self.uri} was {'deleted' if newest is None else 'given other buckets'} since it was opened: open it again"
            )

    def _bucket(self, bucket: int) -> Storage:
        if type(bucket) is not int or not 0 <= bucket < self._layout.buckets:
            raise OptionError(
                f"store {self.uri} has buckets 0 to {self._layout.buckets - 1}; there is no bucket {bucket!r}"
            )
        result: Storage = self._below(bucket_folder(self._layout.number, bucket))
        return result


def open_store(
    uri: str,
    buckets: int | None = None,
    file_format: str | None = None,
    order: str | None = None,
    flush_size: int = 1_000_000,
    flush_interval_count: int = 120,
    max_wal_file_size: int = 64 << 20,
    max_file_size: int = 128 << 20,
    *,
    flush_bytes: int = 256 << 20,
    compression: str = NO_COMPRESSION,
    keep_replaced_s: float = 600.0,
    sync: str = "window",
    heartbeat_s: float = 60.0,
    create: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> KeyValueStore:
    """Open a store, or make one where there is none.

    Args:
        uri: a folder: a path, or an address of S3, Google Cloud Storage, Azure or HDFS.
        buckets: how many a new store gets (8). What is said of an old one has to be what it has, also with the two that follow.
        file_format: of data files: "hfile" (the default), as Apache HBase and Apache Hudi have them, or "blocks", one of our own.
        order: of keys: "lexicographic" (the default), "descending", "int64" (8 bytes, little endian), or one that
            `register_order` made known.
        flush_size: so many keys in memory are written to data files.
        flush_interval_count: after so many windows they are.
        max_wal_file_size: bytes of a segment of the log, where a storage can append.
        max_file_size: bytes of a data file.
        flush_bytes: so many bytes of keys and values in memory are written. Twice as many may be there while that goes on.
        compression: of new HFiles: "none", "gz", "snappy", "lz4" or "zstd".
        keep_replaced_s: so many seconds data files stay that were merged or purged, for readers. A scan that takes
            longer fails; single look-ups go on with the newest state.
        heartbeat_s: on HDFS and object stores a writer gives a sign of life so often. One that has missed two may be taken for dead
            by others, if they were told the same.
        create: False: open it only, as who reads does, and may come before who writes.
        sync: "window": a committed window outlives a power cut. "process": it outlives this process.

    Raises:
        OptionError: a value makes no sense, or the store is another one. TableNotFoundError: there is none, with `create=False`.
    """
    options = StoreOptions(
        flush_size,
        flush_interval_count,
        flush_bytes,
        max_wal_file_size,
        max_file_size,
        compression,
        keep_replaced_s,
        sync,
    )

    def below(folder: str) -> Storage:
        return open_storage(f"{str(uri).rstrip('/')}/{folder}" if folder else str(uri), storage_options)

    concurrency = replace(CONCURRENCY, heartbeat_interval_s=_seconds(heartbeat_s))
    with plain_errors(str(uri)):
        return open_at(
            below,
            options,
            buckets=buckets,
            file_format=file_format,
            order=order,
            concurrency=concurrency,
            create=create,
        )


def open_at(
    below: Any,
    options: StoreOptions,
    *,
    buckets: int | None = None,
    file_format: str | None = None,
    order: str | None = None,
    cache: Cache | None = None,
    concurrency: ConcurrencyOptions = CONCURRENCY,
    create: bool = True,
) -> KeyValueStore:
    """As `open_store`; `below` opens the storage of a folder in the store, of "" for the store itself."""
    storage: Storage = below("")
    layout = read_layout(storage)
    _require_codec(
        options.compression, file_format or DEFAULT_FORMAT if layout is None else layout.file_format, storage.uri
    )
    if layout is None:
        if not create:
            raise TableNotFoundError(
                f"there is no key-value store at {storage.uri}: check the path, or create it by hoodie.kv.open_store(path)"
            )
        layout = _created(
            storage,
            StoreLayout(
                1,
                DEFAULT_BUCKETS if buckets is None else _whole(buckets),
                file_format or DEFAULT_FORMAT,
                order or LEXICOGRAPHIC.name,
            ),
        )
    for name, given_value, own_value in (
        ("buckets", buckets, layout.buckets),
        ("file_format", file_format, layout.file_format),
        ("order", order, layout.order),
    ):
        if given_value is not None and given_value != own_value:
            raise OptionError(
                f"store {storage.uri} has {name}={own_value!r}, not {given_value!r}: leave it out to open the store as it is"
            )
    return KeyValueStore(
        storage, layout, options, below, cache=process_cache() if cache is None else cache, concurrency=concurrency
    )


def buckets_of(keys: Binary, buckets: int) -> Binary:
    return pa.array([zlib.crc32(key) % buckets for key in listed(keys)], pa.int32())


def _take_hold(take: Callable[[], Hold], wait_s: float) -> Hold:
    deadline_s = time.monotonic() + wait_s
    pause_s = 0.05
    while True:
        try:
            return take()
        except LockError:
            if time.monotonic() + pause_s > deadline_s:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 2.0)


def read_layout(storage: Storage) -> StoreLayout | None:
    """What the newest file of the store says; None: there is no store."""
    layout_numbers = [number for name in storage.names("") if (number := store_number(name)) is not None]
    if not layout_numbers:
        return None
    path = store_file(max(layout_numbers))
    return StoreLayout.decode(max(layout_numbers), storage.read(path), path=f"{storage.uri.rstrip('/')}/{path}")


def _created(storage: Storage, layout: StoreLayout) -> StoreLayout:
    format_named(layout.file_format)
    order_named(layout.order)
    try:
        storage.create_new(store_file(layout.number), layout.encode())
    except FileExistsError:
        result = read_layout(storage)  # somebody made it this moment
        if result is None:
            raise CorruptFileError(
                f"{storage.uri}/{store_file(layout.number)} was removed as soon as it was written"
            ) from None
        return result
    return layout


def _require_codec(codec: str, file_format: str, uri: str) -> None:
    codecs = format_named(file_format).compressions
    if codec not in codecs:
        raise OptionError(
            f"compression={codec!r} is not known; data files of store {uri} ({file_format}) have {', '.join(codecs)}"
        )


def _seconds(heartbeat_s: Any) -> float:
    if not isinstance(heartbeat_s, int | float) or not 0.1 <= heartbeat_s <= 3_600:
        raise OptionError(f"heartbeat_s={heartbeat_s!r} is not a number of seconds from 0.1 to 3,600")
    return float(heartbeat_s)


def _whole(buckets: Any) -> int:
    if not isinstance(buckets, int) or isinstance(buckets, bool) or not 1 <= buckets <= 100_000:
        raise OptionError(f"buckets={buckets!r} is not a whole number from 1 to 100,000")
    return buckets
