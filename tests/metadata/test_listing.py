"""A view on the metadata table finds the file slices that a view on the folders finds, and lists none."""

from pathlib import Path

import pytest

from hoodie.engine.local import LocalEngine
from hoodie.metadata.listing import MetadataFiles, MetadataListing
from hoodie.metadata.table import MetadataTable
from hoodie.model.names import METADATA_TABLE
from hoodie.storage.cache import Cache
from hoodie.storage.local import LocalStorage
from hoodie.view.context import TableContext
from hoodie.view.view import FileSystemView
from tests.golden_tables import copy_golden
from tests.metadata_tables import NoFolders
from tests.public_tables import public_table


def viewed(path, folders=None):
    """The table's slices by its folders, and by its metadata table."""
    context = TableContext.open(LocalStorage(str(path)), LocalEngine(), cache=Cache())
    snapshot = context.snapshot()
    table = MetadataTable.open(context.storage, context.config, snapshot.timeline, Cache())
    listing = MetadataListing(table, folders or context.listing)
    return snapshot.view, FileSystemView(listing, context.active, snapshot.timeline, snapshot.archived)


@pytest.mark.parametrize(
    "name",
    [
        "v6_mdt_cow",
        "v6_mdt_mor",
        "hudi-v6-table-mor",
        "hudi_comprehensive_types_v6_mor",
        "trips_logical_types_json_cow_read_v6",
    ],
)
def test_slices_are_those_of_the_folders(name, tmp_path):
    path = copy_golden(name, tmp_path).path if name.startswith("v6_mdt") else public_table(name, tmp_path).path
    by_folders, by_table = viewed(path, NoFolders())
    assert by_table.partitions() == by_folders.partitions()
    assert by_table.latest_slices() == by_folders.latest_slices()
    _, one = viewed(path, NoFolders())
    for partition in by_folders.partitions():
        assert one.file_groups(partition) == by_folders.file_groups(partition)


def test_of_few_partitions_the_folders_are_listed_and_of_many_the_metadata_table_is_asked(tmp_path):
    path = copy_golden("v6_mdt_mor", tmp_path).path
    context = TableContext.open(LocalStorage(str(path)), LocalEngine(), cache=Cache())
    timeline, asked = context.snapshot().timeline, []

    class Folders(NoFolders):
        def files(self, partition_paths):
            asked.append(tuple(partition_paths))
            return context.listing.files(partition_paths)

    files = MetadataFiles(context.storage, context.config, Cache(), least=2)
    listing = files.under(timeline, Folders)
    (few,), many = listing.files(["a"]), listing.files(["a", "b"])
    assert asked == [("a",)]
    named = {info.name for info in many[0]}
    assert named
    assert named == {info.name for info in few if not info.name.startswith(".hoodie_partition")}
    assert sorted(listing.all_files().partitions) == sorted(context.listing.all_files().partitions)


def test_folders_are_listed_where_the_metadata_table_is_not_available(tmp_path):
    path = copy_golden("v6_mdt_mor", tmp_path).path
    (base,) = (Path(path) / METADATA_TABLE / "files").glob("*.hfile")
    base.write_bytes(base.read_bytes()[:1000])
    by_folders, by_table = viewed(path)
    assert by_table.latest_slices() == by_folders.latest_slices()
    assert by_table.file_groups("a") == by_folders.file_groups("a")
