"""Partition metadata: the file that makes a folder a partition. Where it is missing Spark's readers do not see the folder at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoodie.errors import CorruptFileError
from hoodie.format.properties import parse_properties_file
from hoodie.model.findings import Repair, RepairKind
from hoodie.model.instant import is_instant_time
from hoodie.model.names import PARTITION_METADATA, folder_of, is_partition_path, join, parse_base_file, parse_log_file
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import WRITES
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.publish import depth_of, partition_metadata

_TIME, _DEPTH = "commitTime", "partitionDepth"
_MOST_BYTES = 64 * 1024


def find_partition_repairs(
    context: TableContext, files: Mapping[str, Sequence[FileInfo]], snapshot: Snapshot
) -> tuple[Repair, ...]:
    """Partition metadata files that are missing, or do not say what they should.

    A folder is a partition where a file lies in it that counts; one that only a failed write has begun needs none.
    `files`: all of the table, by folder.
    """
    result = []
    for folder in sorted(files):
        if is_partition_path(folder):
            why = _wrong(context, folder, files[folder], snapshot)
            if why is not None:
                result.append(Repair(RepairKind.PARTITION_METADATA, join(folder, PARTITION_METADATA), why))
    return tuple(result)


def rewrite_partition_metadata(context: TableContext, repairs: Sequence[Repair], snapshot: Snapshot) -> None:
    """Write them anew; call it under the table lock."""
    storage = context.storage
    first = _FirstCommits(context, snapshot)
    for each in repairs:
        folder = folder_of(each.path)
        storage.replace(each.path, partition_metadata(folder, first.of(folder)))


def _wrong(context: TableContext, folder: str, infos: Sequence[FileInfo], snapshot: Snapshot) -> str | None:
    """What is wrong with the file; None where nothing is, or where no file is due."""
    names = {info.name: info for info in infos if not info.is_folder}
    if PARTITION_METADATA in names:
        info = names[PARTITION_METADATA]
        return _damage(context, folder, info) if info.size_bytes <= _MOST_BYTES else "it is far too large"
    if any(name.startswith(f"{PARTITION_METADATA}.") for name in names if not name.endswith(".crc")):
        return None  # in the format of the base files, as `hoodie.partition.metafile.use.base.format` has it
    return "it is missing, and no engine sees the files of the folder" if _counts(names, snapshot) else None


def _damage(context: TableContext, folder: str, info: FileInfo) -> str | None:
    if not info.size_bytes:
        return "it is empty"
    try:
        properties = parse_properties_file(context.storage.read(info.path), path=info.path)
    except FileNotFoundError:
        return None
    except CorruptFileError:
        return "it is damaged"
    if not is_instant_time(properties.get(_TIME, "").strip()):
        return f"it does not say its {_TIME}"
    depth = properties.get(_DEPTH, "").strip()
    if depth != str(depth_of(folder)):
        return f"its {_DEPTH} is {depth or 'not said'}, and the folder lies {depth_of(folder)} deep"
    return None


def _counts(names: Mapping[str, FileInfo], snapshot: Snapshot) -> bool:
    """Whether readers count a file of these."""
    bases = {base.instant for name in names if (base := parse_base_file(name)) is not None}
    slices = {log.base_instant for name in names if (log := parse_log_file(name)) is not None}
    return any(snapshot.timeline.sees(time) for time in bases | slices)


class _FirstCommits:
    """The first commit that wrote into each partition: of the active timeline, or of the archive."""

    def __init__(self, context: TableContext, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._first: dict[str, str] = {}
        archive = snapshot.archived
        older = tuple(i for i in archive.instants if i.action in WRITES) if archive.files else ()
        metadata = archive.read_commits(older)
        commits = snapshot.timeline.commits
        metadata |= {i.time: m for i, m in zip(commits, context.active.read_commits(commits), strict=True)}
        for time in sorted(metadata):
            for folder in metadata[time].write_stats:
                self._first.setdefault(folder, time)

    def of(self, folder: str) -> str:
        """Where nobody says it any more, the newest commit will do: no reader goes by it."""
        latest = self._snapshot.timeline.latest_commit
        return self._first.get(folder) or (latest.time if latest else "00000000000000000")
