"""What a completed commit says twice must agree: nothing else tells its damaged file from a whole one.

The metadata have no checksum. A data file whose path has changed in them would be taken for the leftover of a dead attempt,
and its rows would be gone without a word. And paths in them must stay inside the table, whoever wrote them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.stored_stats import StoredStats
from hoodie.model.log_names import LogNames
from hoodie.model.names import is_inside, is_partition_path, parse_base_file, parse_log_file
from hoodie.model.payloads import CommitMetadata, WriteStat

_EXTERNAL = "_hudiext"
_ADVICE = "the metadata are damaged, restore the file from a copy"


def check_commit(metadata: CommitMetadata, *, path: str, time: str | None = None) -> CommitMetadata:
    """The metadata themselves, once they are sound; `time` is the commit's instant where it is known. Stats of many partitions are
    checked when they are asked for.

    Each data file must lie in its partition, belong to its file group and, a base file, to the instant; a log file must be
    in the list of its slice's log files and have the version that is stated.

    Raises:
        CorruptFileError: they contradict themselves, or a path leads out of the table; the message names `path`.
        UnsupportedTableError: they name data files that other systems wrote (`_hudiext`).
    """
    for partition in (*metadata.write_stats, *metadata.replaced_file_ids):
        if not is_partition_path(partition):
            raise CorruptFileError(
                f"{path}: partition path {partition[:200]!r} leads out of the folders where data files may lie; {_ADVICE}"
            )
    if isinstance(metadata.write_stats, StoredStats):
        stats = metadata.write_stats.checked(partial(_check_stat, path=path, time=time))
        return replace(metadata, write_stats=stats)
    for stat in metadata.stats():
        _check_stat(stat, path, time)
    return metadata


def _check_stat(stat: WriteStat, path: str, time: str | None) -> None:
    for name in () if isinstance(stat.log_files, LogNames) else stat.log_files:  # those were found to be plain names
        if "/" in name or not is_inside(name):
            raise CorruptFileError(
                f"{path}: log file {name[:200]!r} of group {stat.file_id!r} is not a file name; {_ADVICE}"
            )
    for change_log in stat.change_logs:
        folder, _, name = change_log.rpartition("/")
        if folder != stat.partition_path or parse_log_file(name) is None:
            raise CorruptFileError(
                f"{path}: {change_log[:200]!r} is no change log of partition {stat.partition_path!r}; {_ADVICE}"
            )
    if not stat.path:  # Hudi leaves it out where a task wrote nothing
        if stat.num_writes or stat.num_deletes:
            raise CorruptFileError(
                f"{path}: a write stat of partition {stat.partition_path!r} counts {stat.num_writes + stat.num_deletes} "
                f"records and names no file; {_ADVICE}"
            )
        return
    folder, _, name = stat.path.rpartition("/")
    base = parse_base_file(name)
    log = parse_log_file(name) if base is None else None
    parsed = base or log
    if parsed is None and _EXTERNAL in name:
        raise UnsupportedTableError(f"{path}: {stat.path!r} was written by another system; such files are not read")
    agrees = parsed is not None and (folder, parsed.file_id) == (stat.partition_path, stat.file_id)
    if base is not None and time is not None:
        agrees = agrees and base.instant == time
    if log is not None:
        agrees = agrees and stat.log_version in (None, log.version) and (not stat.log_files or name in stat.log_files)
    if not agrees:
        raise CorruptFileError(
            f"{path}: {stat.path[:300]!r} does not fit to the instant, partition {stat.partition_path!r}, file group "
            f"{stat.file_id!r} and log files of its write stat; {_ADVICE}"
        )
