"""Which log files the output of a log compaction replaces, as its commit says: readers need not open these.

The header of its blocks lists instants. To know by them that an older log file says nothing else, one would have to read it.
So the commit's extra metadata have `hoodie.python.log.compacted`: a JSON object from the path of each log file that it wrote to
the names of those of its slice (`logFiles` of its write stat) that it does not stand for; mostly none. Other writers leave the
key out, and who does not know it opens the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hoodie.model.enums import WriteOperation
from hoodie.model.names import name_of
from hoodie.model.payloads import CommitMetadata

LOG_COMPACTED = "hoodie.python.log.compacted"


def format_stood_for(others: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The entry. `others`: path of a log file that was written -> names of the older ones that it does not stand for."""
    return {LOG_COMPACTED: json.dumps({path: list(names) for path, names in others.items()}, separators=(",", ":"))}


def stood_for(metadata: CommitMetadata, partition_path: str) -> dict[str, tuple[str, ...]]:
    """Path of each log file that a log compaction wrote into a partition -> names of those that it stands for; none where that is
    not known. Nothing for another commit.
    """
    if metadata.operation is not WriteOperation.LOG_COMPACT:
        return {}
    others = _others(metadata.extra.get(LOG_COMPACTED))
    result: dict[str, tuple[str, ...]] = {}
    for stat in metadata.write_stats.get(partition_path, ()):
        if stat.log_version is not None:
            other_logs = others.get(stat.path)
            older_logs = {*other_logs, name_of(stat.path)} if other_logs is not None else frozenset(stat.log_files)
            result[stat.path] = tuple(name for name in stat.log_files if name not in older_logs)
    return result


def _others(text: str | None) -> Mapping[str, Sequence[str]]:
    """Nothing where the entry is damaged: then the files are opened."""
    try:
        names_of = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(names_of, dict):
        return {}
    return {path: names for path, names in names_of.items() if _are_texts(names)}


def _are_texts(names: object) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)
