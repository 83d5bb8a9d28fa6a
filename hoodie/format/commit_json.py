"""Commit metadata of table version 6: JSON of commit, deltacommit and replacecommit files, completed or inflight."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hoodie.errors import CorruptFileError
from hoodie.format.log_name_texts import LogNameTexts, cut_lists, put_names
from hoodie.format.stored_stats import MANY_PARTITIONS, StoredStats
from hoodie.model.enums import WriteOperation
from hoodie.model.instant import InstantTime
from hoodie.model.log_names import LogNames
from hoodie.model.names import doctor_of
from hoodie.model.payloads import CommitMetadata, WriteStat

_SCHEMA = "schema"
_NEW_GROUP = "null"
"""`prevCommit` of a file that begins a file group: the text, not JSON's null."""

# Hudi's counter -> ours. Absent and null read as 0: other versions of Hudi leave some of them out.
_COUNTS = {
    "numWrites": "num_writes",
    "numInserts": "num_inserts",
    "numUpdateWrites": "num_updates",
    "numDeletes": "num_deletes",
    "totalWriteBytes": "total_bytes",
    "fileSizeInBytes": "file_size_bytes",
    "totalLogRecords": "total_log_records",
    "totalLogFilesCompacted": "total_log_files_compacted",
    "totalLogSizeCompacted": "total_log_bytes_compacted",
    "totalUpdatedRecordsCompacted": "total_updated_records_compacted",
}
_MAX_COUNT = (1 << 63) - 1
_REPLACING = frozenset(
    {
        WriteOperation.INSERT_OVERWRITE,
        WriteOperation.INSERT_OVERWRITE_TABLE,
        WriteOperation.DELETE_PARTITION,
        WriteOperation.CLUSTER,
    }
)
"""Operations whose commits always say what they replaced, if only that it was nothing."""


def encode_commit(metadata: CommitMetadata) -> bytes:
    """The UTF-8 JSON of a commit, on one line (Hudi reads any layout), the same for equal metadata."""
    return json.dumps(commit_fields(metadata), ensure_ascii=False, separators=(",", ":")).encode()


def commit_fields(metadata: CommitMetadata) -> dict[str, Any]:
    """The fields of a commit by Hudi's names: what `commit_of` reads."""
    extra = {key: value for key, value in metadata.extra.items() if key != _SCHEMA}
    if metadata.schema_json is not None:
        extra[_SCHEMA] = metadata.schema_json
    result: dict[str, Any] = {
        "partitionToWriteStats": {
            partition: [stat_fields(stat) for stat in stats] for partition, stats in metadata.write_stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": extra,
        "operationType": metadata.operation.value,
    }
    if metadata.replaced_file_ids or metadata.operation in _REPLACING:
        result["partitionToReplaceFileIds"] = {key: list(ids) for key, ids in metadata.replaced_file_ids.items()}
    return result


def decode_commit(
    data: bytes, *, path: str, completed: bool = False, texts: LogNameTexts | None = None
) -> CommitMetadata:
    """The metadata in a commit file. Keys that this package does not use are left out.

    `texts`: what was read of other commits of the table, so that names of log files which they have too are not decoded again.

    In an inflight file (the plan of Hudi's writers) a stat's `path` is "" and its `file_id` is "" for planned inserts.
    An operation that is not in `WriteOperation` is UNKNOWN.

    Raises:
        CorruptFileError: the bytes are no such JSON, an empty file included; the message names `path`.
    """
    try:
        parsed = _parsed(data, texts) if texts is not None else None
        if parsed is None:
            parsed = json.loads(data, object_pairs_hook=_unique)
        if b"\\u" in data:
            json.dumps(
                parsed, ensure_ascii=False, default=list
            ).encode()  # half a character (a lone surrogate) has no UTF-8
    except (ValueError, RecursionError) as exc:
        raise CorruptFileError(
            f"{path}: {len(data)} bytes that are not the JSON of a commit ({exc}); "
            f"a commit file is never empty or partial: {doctor_of(path)}"
        ) from exc
    return commit_of(parsed, path=path, completed=completed)


def _parsed(data: bytes, texts: LogNameTexts) -> object | None:
    """The JSON with the names of log files as `LogNames`; None where it is to be parsed in the usual way."""
    short, lists = cut_lists(data)
    if not lists:
        return None
    try:
        parsed: object = json.loads(short, object_pairs_hook=_unique)
    except ValueError:
        return None
    return parsed if put_names(parsed, lists, texts) else None


def commit_of(parsed: object, *, path: str, completed: bool = False) -> CommitMetadata:
    """The metadata in a commit's fields, by Hudi's names: of the JSON, or of the Avro record that versions 8 and 9 store.

    Raises:
        CorruptFileError: a field has another type, or what every completed commit has is missing; the message names `path`.
    """
    top = _Fields(parsed, path, "the commit")
    operation = top.text("operationType")
    if completed:
        top.require("partitionToWriteStats")
        if operation in _REPLACING and path.endswith(".replacecommit"):
            top.require("partitionToReplaceFileIds")
    extra = {}
    for key, value in top.mapping("extraMetadata").items():
        if value is not None:
            extra[key] = _string(value, path, f"extraMetadata {key!r}")
    return CommitMetadata(
        operation=WriteOperation(operation) if operation in _OPERATIONS else WriteOperation.UNKNOWN,
        write_stats=_write_stats(dict(top.mapping("partitionToWriteStats")), path),
        # Old Hudi versions wrote an empty text where no schema was known.
        schema_json=extra.pop(_SCHEMA, None) or None,
        extra=extra,
        compacted=top.flag("compacted"),
        replaced_file_ids={
            partition: _strings(ids, path, f"partitionToReplaceFileIds {partition!r}")
            for partition, ids in top.mapping("partitionToReplaceFileIds").items()
        },
    )


def _write_stats(values: dict[str, object], path: str) -> Mapping[str, tuple[WriteStat, ...]]:
    def decode(partition: str, stats: object) -> tuple[WriteStat, ...]:
        where = f"a write stat of partition {partition!r}"
        listed = _list(stats, path, f"partitionToWriteStats {partition!r}")
        return tuple([_stat_from_json(_Fields(stat, path, where), partition) for stat in listed])

    if len(values) >= MANY_PARTITIONS:
        return StoredStats(values, decode)
    return {partition: decode(partition, stats) for partition, stats in values.items()}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError(f"a key stands twice in one object of {len(pairs)} keys")
    return result


_OPERATIONS = frozenset(operation.value for operation in WriteOperation)


def stat_fields(stat: WriteStat) -> dict[str, Any]:
    """One of `partitionToWriteStats`."""
    result: dict[str, Any] = {
        "fileId": stat.file_id,
        "path": stat.path or None,
        "prevCommit": _NEW_GROUP if stat.prev_commit is None else stat.prev_commit,
        "partitionPath": stat.partition_path,
        "totalWriteErrors": 0,
        "prevBaseFile": stat.prev_base_file,
    }
    for key, name in _COUNTS.items():
        result[key] = getattr(stat, name)
    if stat.change_logs:
        result["cdcStats"] = dict(stat.change_logs)
    if stat.log_version is not None:
        # These make it a delta write stat for Hudi. Log files are written once, so each write begins at their start.
        result |= {"logVersion": stat.log_version, "logOffset": 0, "logFiles": list(stat.log_files)}
        if stat.base_file is not None:
            result["baseFile"] = stat.base_file
    return result


def _stat_from_json(stat: _Fields, partition: str) -> WriteStat:
    previous = stat.text("prevCommit")
    return WriteStat(
        file_id=stat.text("fileId") or "",
        # Hudi leaves it null in inflight files; the key of the map says the same.
        partition_path=partition,
        path=_relative(stat.text("path") or "", partition),
        prev_commit=None if previous in (None, _NEW_GROUP) else InstantTime(previous),
        prev_base_file=stat.text("prevBaseFile"),
        log_version=None if stat.get("logVersion") is None else stat.count("logVersion"),
        base_file=stat.text("baseFile"),
        log_files=stat.names("logFiles"),
        change_logs=stat.counts("cdcStats"),
        **{name: stat.count(key) for key, name in _COUNTS.items()},
    )


def _relative(path: str, partition: str) -> str:
    """The path below the table. Apache Hudi 1.2 puts `file:` in front where it adds a log file that only a marker names, as after a
    rollback that wrote to that file (integration/test_metadata_table_of_hudi.py).
    """
    if ":" not in path:
        return path
    scheme, colon, rest = path.partition(":")
    folder = f"{partition}/" if partition else ""
    is_marked = colon and scheme.isalpha() and rest.startswith(folder) and "/" not in rest[len(folder) :]
    return rest if is_marked and not path.startswith(folder or "/") else path


class _Fields:
    """A JSON object whose values are asked for by type; what is absent is null."""

    def __init__(self, value: object, path: str, where: str) -> None:
        if not isinstance(value, dict):
            raise _unexpected(value, path, where, "an object")
        self._value: Mapping[str, object] = value
        self._path = path
        self._where = where

    def get(self, key: str) -> object:
        return self._value.get(key)

    def text(self, key: str) -> str | None:
        value = self._value.get(key)
        if value is None or isinstance(value, str):
            return value
        raise _unexpected(value, self._path, f"{key} of {self._where}", "a string")

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._value.get(key)
        return () if value is None else _strings(value, self._path, f"{key} of {self._where}")

    def names(self, key: str) -> Sequence[str]:
        """One text each in memory, however often they are named."""
        value = self._value.get(key)
        return value if isinstance(value, LogNames) else tuple(map(sys.intern, self.texts(key)))

    def counts(self, key: str) -> Mapping[str, int]:
        inner = self.mapping(key)
        if not inner:
            return {}
        sizes = _Fields(inner, self._path, f"{key} of {self._where}")
        return {name: sizes.count(name) for name in inner}

    def count(self, key: str) -> int:
        value = self._value.get(key)
        if value is None:
            return 0
        if type(value) is int and 0 <= value <= _MAX_COUNT:
            return value
        if not isinstance(value, int) or isinstance(value, bool):
            raise _unexpected(value, self._path, f"{key} of {self._where}", "a whole number")
        if value > _MAX_COUNT:
            raise _unexpected(value, self._path, f"{key} of {self._where}", "a number of 64 bits")
        return max(0, value)  # -1 is how some writers say that they did not count

    def flag(self, key: str) -> bool:
        value = self._value.get(key)
        if value is not None and not isinstance(value, bool):
            raise _unexpected(value, self._path, f"{key} of {self._where}", "true or false")
        return bool(value)

    def require(self, key: str) -> None:
        if self._value.get(key) is None:
            raise CorruptFileError(
                f"{self._path}: {self._where} has no {key}: the file is damaged, restore it from a copy"
            )

    def mapping(self, key: str) -> Mapping[str, object]:
        value = self._value.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _unexpected(value, self._path, f"{key} of {self._where}", "an object")
        return value


def _string(value: object, path: str, where: str) -> str:
    if not isinstance(value, str):
        raise _unexpected(value, path, where, "a string")
    return value


def _list(value: object, path: str, where: str) -> list[object]:
    if not isinstance(value, list):
        raise _unexpected(value, path, where, "a list")
    return value


def _strings(value: object, path: str, where: str) -> tuple[str, ...]:
    return tuple(_string(item, path, where) for item in _list(value, path, where))


def _unexpected(value: object, path: str, where: str, expected: str) -> CorruptFileError:
    return CorruptFileError(f"{path}: {where} is {str(value)[:80]!r}, expected {expected}")
