"""Base files and log files: how large, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hoodie.options.option import Keys, fixed, option
from hoodie.options.values import LogBlockFormat, boolean, choice, one_of, whole


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    max_file_size_bytes: int = option("hoodie.parquet.max.file.size", whole(1), 120 * 1024 * 1024)
    """Bytes that a base file should have."""
    small_file_limit_bytes: int = option("hoodie.parquet.small.file.limit", whole(0, clamp=True), 100 * 1024 * 1024)
    """Base files of fewer bytes get new rows first; 0: never."""
    compression: str = option(
        "hoodie.parquet.compression.codec",
        choice(
            # As pyarrow names them.
            {"zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "uncompressed": "none", "lz4_raw": "lz4"},
            unsupported=("lzo", "lz4", "brotli"),
        ),
        "zstd",
    )
    """Compression of base files (Apache Hudi's default: gzip). Files of up to 4 KB of rows have Snappy in place of zstd."""
    record_size_estimate_bytes: int = option("hoodie.copyonwrite.record.size.estimate", whole(1), 1024)
    """Accepted, without effect: the size of a record is taken from the files of its partition, else from the batch."""
    log_max_size_bytes: int = option("hoodie.logfile.max.size", whole(1), 1024**3)
    """Accepted, without effect: every write makes new log files."""
    log_block_format: LogBlockFormat = option(
        "hoodie.logfile.data.block.format", one_of(LogBlockFormat, unsupported=("hfile", "lance")), "avro"
    )
    """Merge-on-read: format of the data blocks of log files; each write chooses, and a slice may have both. `parquet`
    is compressed like base files: an upsert writes little more than its batch as Parquet. `avro` is not compressed: an
    upsert writes 2 to 3 times as much. Tables with a string as ordering field always get `avro`, because Apache Hudi
    misreads their Parquet blocks."""
    record_positions: bool = option("hoodie.write.record.positions", boolean(), True)
    """Merge-on-read tables of versions 8 and 9: log blocks state which rows of the base file their records change.
    Apache Hudi's readers merge by these positions; hoodie's merge by keys."""
    key_map: bool = option("hoodie.python.parquet.key.map", boolean(), False)
    """Base files of 16,384 to 2,097,152 rows say where their keys stand, so that look-ups of many keys read a few pages of each file.
    It takes 3.2 bytes and 90 ns of CPU a row. Each write, compaction and clustering chooses."""
    log_block_max_size_bytes: int = option("hoodie.logfile.data.block.max.size", whole(1), 256 * 1024 * 1024)
    """Maximum bytes of a log data block."""

    OTHERS: ClassVar[Keys] = (
        fixed(
            "hoodie.parquet.outputtimestamptype",
            "TIMESTAMP_MICROS",
            "timestamps are stored as they come, in the units that Arrow and Spark give them",
            "Type of timestamps in base files.",
        ),
    )
