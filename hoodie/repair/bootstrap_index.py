"""The index of a bootstrap, which is in two files that say the same: one that is damaged is written from the other.

Queries go by the one by partition, and Apache Hudi's take a table for none of a bootstrap if either is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hoodie.errors import HoodieError
from hoodie.filegroup.skeleton import source_folder
from hoodie.model.files import FileGroupId
from hoodie.model.findings import Repair, RepairKind
from hoodie.model.instant import BOOTSTRAP_INSTANTS
from hoodie.model.names import BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE, parse_base_file
from hoodie.repair.stray_files import NOTHING, Strays
from hoodie.storage.base import FileInfo, Storage
from hoodie.view.bootstrap import IndexContent, SkeletonSource, read_index, write_index
from hoodie.view.context import TableContext

_PATHS = (BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE)


class _Half(NamedTuple):
    """One of the two files."""

    path: str
    content: IndexContent | None
    """None: it is damaged."""
    why: str

    @property
    def sources(self) -> Mapping[FileGroupId, SkeletonSource]:
        mapped = self.content.mapped if self.content else ()
        return {FileGroupId(each.partition_path, each.file_id): each for each in mapped}


def find_index_damage(context: TableContext, files: Mapping[str, Sequence[FileInfo]]) -> Strays:
    """Files of the index that are missing or damaged, or say something else than the other one.

    `files`: the data files of the table, by folder.
    """
    skeletons = {
        FileGroupId(folder, base.file_id)
        for folder, infos in files.items()
        for info in infos
        if (base := parse_base_file(info.name)) is not None and base.instant == BOOTSTRAP_INSTANTS[0]
    }
    if not skeletons:
        return NOTHING
    halves = [_half(context.storage, path, skeletons) for path in _PATHS]
    damaged = [each for each in halves if each.content is None]
    if not damaged:
        damaged = _wrong(context.storage, halves, skeletons)
    repairs = tuple(Repair(RepairKind.BOOTSTRAP_INDEX, each.path, each.why) for each in damaged)
    return Strays(certain=repairs) if len(repairs) < len(halves) else Strays(doubtful=repairs)


def rewrite_index(context: TableContext, repairs: Sequence[Repair]) -> None:
    """Write what is damaged anew, from the other file; call it under the table lock."""
    damaged = {each.path for each in repairs}
    for path in _PATHS if damaged else ():
        if path not in damaged:
            content = read_index(context.storage, path)
            base = content.base or context.config.bootstrap_base
            write_index(context.storage, base, content.mapped, made_ms=content.made_ms)


def _half(storage: Storage, path: str, skeletons: set[FileGroupId]) -> _Half:
    try:
        content = read_index(storage, path)
    except (FileNotFoundError, IsADirectoryError):
        return _Half(path, None, "it is gone")
    except HoodieError as exc:
        return _Half(path, None, f"it does not decode: {exc}")
    half = _Half(path, content, "")
    missing = sorted(skeletons - half.sources.keys())
    if missing:
        return _Half(path, None, f"it does not say which file has the columns of {'/'.join(filter(None, missing[0]))}")
    return half


def _wrong(storage: Storage, halves: Sequence[_Half], skeletons: set[FileGroupId]) -> list[_Half]:
    """Those of two whole ones that are wrong, if they differ: of which a file is not there."""
    one, other = (each.sources for each in halves)
    differing = sorted(each for each in skeletons if _said(one[each]) != _said(other[each]))
    if not differing:
        return []
    why = f"the two files of the index differ on {'/'.join(filter(None, differing[0]))}"
    wrong = [each for each in halves if not _are_there(storage, [each.sources[key] for key in differing])]
    return [each._replace(why=why) for each in (wrong or halves)]


def _said(source: SkeletonSource) -> tuple[str, int]:
    return source.uri, source.size_bytes


def _are_there(storage: Storage, sources: Sequence[SkeletonSource]) -> bool:
    folders = {each.uri.rpartition("/")[0] for each in sources}
    infos = {f"{folder}/{info.path}": info for folder in folders for info in source_folder(storage, folder).list("")}
    return all(each.uri in infos and infos[each.uri].size_bytes == each.size_bytes for each in sources)
