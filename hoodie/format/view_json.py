"""File slices and instants as Apache Hudi's timeline server and its clients tell them to each other: JSON objects.

Paths in them are full ones, with the table's address as the client has called it. A base file or log has its modification time as 0:
whoever follows files by the timeline does not know it. Apache Hudi's view that follows the timeline has 0 for those files, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

from hoodie.format.layout import Layout
from hoodie.model.files import BaseFile, FileGroup, FileGroupId, FileSlice, LogFile, SourceFile
from hoodie.model.instant import Instant
from hoodie.model.names import join, name_of
from hoodie.model.payloads import CompactionOperation

Json = dict[str, Any]
NOT_KNOWN: Mapping[Instant, str] = MappingProxyType({})

_ESCAPED = re.compile(r"[^\w\-.~!*'(),;:$&+=@/]")
"""What Java's URI escapes in a path, but for letters of other scripts, which it leaves."""


class Address(NamedTuple):
    """Where a table lies, as one client calls it: without a slash at the end."""

    prefix: str

    def plain(self, relative_path: str) -> str:
        return join(self.prefix, relative_path)

    def uri(self, relative_path: str) -> str:
        """The path as a URI. Hadoop's paths have no escapes, and its URIs have."""
        return _ESCAPED.sub(_escape, self.plain(relative_path))


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def encode_slice(file_slice: FileSlice, address: Address) -> Json:
    """Logs come newest first, as in Apache Hudi."""
    base = file_slice.base
    return {
        "baseFile": None if base is None else encode_base(base, address),
        "logFiles": [encode_log(log, address) for log in reversed(file_slice.logs)],
        "partition": file_slice.group.partition_path,
        "fileId": file_slice.group.file_id,
        "baseInstant": file_slice.base_instant,
    }


def encode_base(base: BaseFile, address: Address) -> Json:
    return {
        "fileStatus": _encode_status(base.path, base.size_bytes, address),
        "fullPath": address.plain(base.path),
        "fileLen": base.size_bytes,
        "commitTime": base.instant,
        "fileId": base.file_id,
        "bootstrapBaseFile": None if base.source is None else _encode_source(base.source),
    }


def _encode_source(source: SourceFile) -> Json:
    """The file that completes a skeleton."""
    return {
        "fileStatus": _status(source.uri, source.size_bytes),
        "fullPath": source.uri,
        "fileLen": source.size_bytes,
        "commitTime": None,
        "fileId": None,
        "bootstrapBaseFile": None,
    }


def encode_log(log: LogFile, address: Address) -> Json:
    return {
        "fileStatus": _encode_status(log.path, log.size_bytes, address),
        "path": address.plain(log.path),
        "len": log.size_bytes,
    }


def _encode_status(path: str, size_bytes: int, address: Address) -> Json:
    return _status(address.uri(path), size_bytes)


def _status(uri: str, size_bytes: int) -> Json:
    return {
        "path": {"uri": uri},
        "length": size_bytes,
        "isdir": False,
        "blockReplication": 0,
        "blocksize": 0,
        "modificationTime": 0,
    }


def encode_groups(groups: Iterable[FileGroup], timeline: Iterable[Instant], address: Address) -> list[Json]:
    """File groups with their slices, newest first. Only the first one tells the timeline, which all have in common."""
    result: list[Json] = [
        {
            "partition": group.id.partition_path,
            "fileId": group.id.file_id,
            "slices": [encode_slice(each, address) for each in reversed(group.slices)],
            "timeline": None,
        }
        for group in groups
    ]
    if result:
        result[0]["timeline"] = encode_timeline(timeline)
    return result


def encode_timeline(instants: Iterable[Instant], completions: Mapping[Instant, str] = NOT_KNOWN) -> Json:
    """`completions`: when those instants were completed that do not say so themselves."""
    return {"instants": [encode_instant(instant, completions) for instant in instants]}


def encode_instant(instant: Instant, completions: Mapping[Instant, str] = NOT_KNOWN) -> Json:
    return {
        "action": instant.action.value,
        "ts": instant.time,
        "state": instant.state.value.upper(),
        "requestedTime": instant.time,
        "completionTime": instant.completion or completions.get(instant),
    }


def encode_compaction(time: str, operation: CompactionOperation) -> Json:
    """One slice of the plan of a compaction at `time`."""
    return {
        "baseInstant": operation.base_instant,
        "compactionInstant": time,
        "dataFileInstant": operation.base_instant if operation.data_file else None,
        "deltaFiles": list(operation.log_files),
        "baseFile": operation.data_file,
        "id": operation.file_id,
        "partition": operation.partition_path,
        "metrics": dict(operation.metrics),
        "bootstrapBaseFile": operation.bootstrap_file,
    }


def encode_clustering(group: FileGroupId, instant: Instant, layout: Layout) -> Json:
    return {
        "id": group.file_id,
        "partition": group.partition_path,
        "instantTime": instant.time,
        "instantState": instant.state.value.upper(),
        "instantAction": layout.action_in_names(instant).value,
    }


def decode_files(groups: object) -> list[tuple[str, int]]:
    """The files of file groups, paths relative to the table and sizes: of what `encode_groups` gives, or Apache Hudi.

    Raises:
        ValueError: it is no list of file groups.
    """
    result = []
    for group in _objects(groups):
        partition_path = _text(group, "partition")
        for each in _objects(group.get("slices")):
            base = each.get("baseFile")
            if base is not None:
                result.append(_decode_file(_object(base), "fullPath", "fileLen", partition_path))
            result += [_decode_file(log, "path", "len", partition_path) for log in _objects(each.get("logFiles"))]
    return result


def _decode_file(file: Mapping[str, object], path: str, length: str, partition_path: str) -> tuple[str, int]:
    status = file.get("fileStatus")
    if status is None:
        name, size = _text(file, path), file.get(length)
    else:
        there = _object(status)
        name, size = unquote(_text(_object(there.get("path")), "uri"), errors="surrogatepass"), there.get("length")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(f"a file has the size {size!r}")
    return join(partition_path, name_of(name)), size


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError(f"a list was expected, and there is a {type(value).__name__}")
    return map(_object, value)


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(f"an object was expected, and there is a {type(value).__name__}")
    return value


def _text(value: Mapping[str, object], name: str) -> str:
    result = value.get(name)
    if not isinstance(result, str):
        raise ValueError(f"{name} was expected to be a text, and is {result!r}")
    return result
