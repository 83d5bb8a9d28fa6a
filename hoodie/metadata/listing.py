"""Partitions and files of a table from its metadata table, without a look at its folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoodie.metadata.table import MetadataTable
from hoodie.storage.base import FileInfo
from hoodie.view.listing import AllFiles, Listing


@dataclass(frozen=True)
class MetadataListing:
    """`Listing` by a metadata table, for views of one snapshot; where that gives no answer, by the folders.

    Folders have files that no completed commit wrote, and those of a dead try; here they are missing. So it is for who reads, and not
    for who looks for such files.
    """

    table: MetadataTable
    folders: Listing

    @property
    def uri(self) -> str:
        return self.folders.uri

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        found = self.table.files(partition_paths)
        return self.folders.files(partition_paths) if found is None else found

    def all_files(self) -> AllFiles:
        found = self.table.all_files()
        return self.folders.all_files() if found is None else AllFiles(tuple(found), found)
