"""Options of a write, and what a write asks of its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie.model.enums import WriteOperation
from hoodie.model.plans import FileOptions
from hoodie.options import keys
from hoodie.options.services import CompactionOptions, ConcurrencyOptions
from hoodie.options.table import TableOptions
from hoodie.options.values import IndexType, MorInserts

_PARALLELISM = {
    WriteOperation.UPSERT: keys.UPSERT_PARALLELISM.default,
    WriteOperation.INSERT: keys.INSERT_PARALLELISM.default,
    WriteOperation.BULK_INSERT: keys.BULK_PARALLELISM.default,
    WriteOperation.DELETE: keys.DELETE_PARALLELISM.default,
}


@dataclass(frozen=True)
class IndexOptions:
    type: IndexType = keys.INDEX_TYPE.default
    bloom_fpp: float = keys.BLOOM_FPP.default
    bloom_num_entries: int | None = keys.BLOOM_ENTRIES.default
    """None: the number of records of the file."""
    bloom_type: str = keys.BLOOM_TYPE.default
    bloom_max_entries: int = keys.BLOOM_MAX_ENTRIES.default
    prune_by_ranges: bool = keys.BLOOM_PRUNE.default


@dataclass(frozen=True)
class WriteOptions:
    """How one write goes about its work; nothing here is remembered by the table."""

    operation: WriteOperation = keys.OPERATION.default
    combine_before_upsert: bool = keys.COMBINE_BEFORE_UPSERT.default
    combine_before_insert: bool = keys.COMBINE_BEFORE_INSERT.default
    combine_before_delete: bool = keys.COMBINE_BEFORE_DELETE.default
    complex_key_new_encoding: bool | None = keys.COMPLEX_NEW_ENCODING.default
    """COMPLEX keys of one column without its name; None: as the table's files have it."""
    parallelism: Mapping[WriteOperation, int] = field(default_factory=_PARALLELISM.copy)
    """Tasks by operation; 0: derived."""
    driver_max_bytes: int = keys.DRIVER_MAX_BYTES.default
    max_file_size_bytes: int = keys.MAX_FILE_SIZE.default
    small_file_limit_bytes: int = keys.SMALL_FILE_LIMIT.default
    compression: str = keys.COMPRESSION.default
    """As pyarrow names it."""
    record_size_estimate_bytes: int = keys.RECORD_SIZE.default
    log_max_size_bytes: int = keys.LOG_MAX_SIZE.default
    log_block_format: str = keys.LOG_BLOCK_FORMAT.default
    log_block_max_size_bytes: int = keys.LOG_BLOCK_MAX_SIZE.default
    mor_inserts: MorInserts | None = keys.MOR_INSERTS.default
    """None: as the table remembers it."""
    metadata_enable: bool | None = keys.METADATA_ENABLE.default
    index: IndexOptions = field(default_factory=IndexOptions)
    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)

    @property
    def combine(self) -> bool:
        """Whether rows of one key in the batch are reduced to one, for the operation of this write."""
        by_operation = {
            WriteOperation.UPSERT: self.combine_before_upsert,
            WriteOperation.DELETE: self.combine_before_delete,
        }
        return by_operation.get(self.operation, self.combine_before_insert)

    def file_options(self) -> FileOptions:
        """What the tasks need to know of this."""
        return FileOptions(
            compression=self.compression,
            bloom_type=self.index.bloom_type,
            bloom_fpp=self.index.bloom_fpp,
            bloom_num_entries=self.index.bloom_num_entries,
            bloom_max_entries=self.index.bloom_max_entries,
            max_block_bytes=self.log_block_max_size_bytes,
        )


@dataclass(frozen=True)
class WriteRequest:
    """A parsed option mapping of a write."""

    table: TableOptions
    """Only what was set; for `check_against` where the table exists."""
    write: WriteOptions
    ignored: tuple[str, ...] = ()
    """Options of Apache Hudi that are not needed here, as the user spelled them; the door warns once of all."""
    table_defaults: TableOptions = field(default_factory=TableOptions)
    """Table options of the defaults: they count when a table is created and never contradict one that exists."""

    def to_create(self) -> TableOptions:
        """What a table is created with: what was set, then the defaults."""
        return self.table.over(self.table_defaults)
