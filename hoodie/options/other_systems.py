"""Options of Delta Lake, Apache Iceberg and Spark's own file formats that people bring along: what they are called here.

Those with the same meaning are names of our options (`keys`). These here would lose or hide rows if they were passed over.
"""

from __future__ import annotations

from types import MappingProxyType

_DELTA, _ICEBERG, _FILES = "Delta Lake's", "Apache Iceberg's", "of Spark's file formats"
_AS_OF = "read as of an instant with as.of.instant; history() lists the instants"
_PARTITIONS = (
    "replace partitions with operation insert_overwrite, where hoodie.static.overwrite.partition.paths names them, or delete by a "
    "condition with delete(where=…) and insert"
)
_BEGIN = "hoodie.datasource.read.begin.instanttime; in a stream hoodie.datasource.streaming.startOffset"
_END = "hoodie.datasource.read.end.instanttime"
_CHANGES = "hoodie.datasource.query.type=incremental with hoodie.datasource.query.incremental.format=before_after"
_FILE_SIZE = "hoodie.parquet.max.file.size"
_CODEC = "hoodie.parquet.compression.codec"
_WHERE = "name rows, not files, with where"
_ONCE = "hoodie.python.stream.id and hoodie.python.stream.batch"
_NOTE = "an option whose name begins with _ is kept in the metadata of the commit"
_SCHEMA = "new columns of the data are added, and the table's columns stay; for other columns make a new table"
_STREAM = "a stream gives the rows that each commit changed"

OTHER_SYSTEMS = MappingProxyType(
    {
        "replaceWhere": (_DELTA, _PARTITIONS),
        "versionAsOf": (_DELTA, _AS_OF),
        "overwriteSchema": (_DELTA, _SCHEMA),
        "readChangeFeed": (_DELTA, _CHANGES),
        "readChangeData": (_DELTA, _CHANGES),
        "startingVersion": (_DELTA, _BEGIN),
        "startingTimestamp": (_DELTA, _BEGIN),
        "endingVersion": (_DELTA, _END),
        "endingTimestamp": (_DELTA, _END),
        "txnAppId": (_DELTA, _ONCE),
        "txnVersion": (_DELTA, _ONCE),
        "userMetadata": (_DELTA, _NOTE),
        "dataChange": (_DELTA, "every write is a change"),
        "ignoreChanges": (_DELTA, _STREAM),
        "ignoreDeletes": (_DELTA, _STREAM),
        "skipChangeCommits": (_DELTA, _STREAM),
        "snapshot-id": (_ICEBERG, _AS_OF),
        "as-of-timestamp": (_ICEBERG, _AS_OF),
        "branch": (_ICEBERG, _AS_OF),
        "tag": (_ICEBERG, _AS_OF),
        "start-snapshot-id": (_ICEBERG, _BEGIN),
        "end-snapshot-id": (_ICEBERG, _END),
        "start-timestamp": (_ICEBERG, _BEGIN),
        "end-timestamp": (_ICEBERG, _END),
        "stream-from-timestamp": (_ICEBERG, "hoodie.datasource.streaming.startOffset"),
        "overwrite-mode": (_ICEBERG, "hoodie.datasource.overwrite.mode"),
        "write-format": (_ICEBERG, "base files are Parquet"),
        "target-file-size-bytes": (_ICEBERG, _FILE_SIZE),
        "compression-codec": (_ICEBERG, _CODEC),
        "compression": (_FILES, _CODEC),
        "maxRecordsPerFile": (_FILES, _FILE_SIZE),
        "maxFilesPerTrigger": (_FILES, "maxCommitsPerTrigger"),
        "pathGlobFilter": (_FILES, _WHERE),
        "modifiedBefore": (_FILES, _WHERE),
        "modifiedAfter": (_FILES, _WHERE),
        "recursiveFileLookup": (_FILES, _WHERE),
        "basePath": (_FILES, "give the table's folder as the path"),
    }
)
"""Name -> whose it is, and what to do here."""

_FOLDED = {name.lower(): name for name in OTHER_SYSTEMS}


def of_another_system(name: str) -> str | None:
    """The sentence for an option of another system; None for what is none, without regard to case."""
    entry = _FOLDED.get(name.lower())
    if entry is None:
        return None
    whose, instead = OTHER_SYSTEMS[entry]
    return f"option {name!r} is {whose} and does nothing here; instead: {instead}"
