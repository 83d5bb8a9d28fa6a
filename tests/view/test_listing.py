"""A view takes partitions and files from its listing alone."""

import shutil
from dataclasses import dataclass, field, replace

import pytest

import hoodie
from hoodie.model.names import HOODIE
from hoodie.storage.base import Storage
from hoodie.view.context import TableContext
from hoodie.view.listing import AllFiles, StorageListing
from tests.memory_tables import Input, batch, new_table, opened


@dataclass
class Elsewhere:
    """A listing that was taken down before, as a metadata table has it: no folder is looked into."""

    known: AllFiles
    uri: str = "memory://elsewhere"
    asked: list[str] = field(default_factory=list)

    def files(self, partition_paths):
        self.asked.extend(partition_paths)
        return [self.known.files.get(path, ()) for path in partition_paths]

    def all_files(self):
        self.asked.append("*")
        return self.known


def context_of(storage: Storage) -> TableContext:
    return opened(storage)._context


def test_all_files_are_by_folder_and_partitions_are_marked():
    storage, _ = new_table(table_type="COPY_ON_WRITE")
    for path in ("a/.hoodie_partition_metadata", "a/x", "b/c/y", "z"):
        storage.create_new(path, b"x")
    found = StorageListing(storage).all_files()
    assert found.partitions == ("a",)
    assert {folder: [info.path for info in files] for folder, files in found.files.items()} == {
        "": ["z"],
        "a": ["a/.hoodie_partition_metadata", "a/x"],
        "b/c": ["b/c/y"],
    }
    assert StorageListing(storage).files(["not there", "b/c"]) == [[], found.files["b/c"]]


def test_a_view_asks_its_listing_and_no_storage():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 1, 1), Input("l", "b", 1, 1)]))
    table.upsert(batch([Input("k", "a", 2, 2)]))
    expected = context_of(storage).snapshot().view.latest_slices()

    listing = Elsewhere(StorageListing(storage).all_files())
    context = replace(context_of(storage), listing=listing)
    listed = storage.list
    storage.list = lambda folder: listed(folder) if folder == HOODIE else pytest.fail(f"{folder} was listed")
    assert context.snapshot().view.latest_slices() == expected
    assert listing.asked == ["*"]
    assert context.snapshot().view.latest_slices(["a"]) == [each for each in expected if "a" in each.group]
    assert listing.asked == ["*", "a"]


def test_the_slices_of_many_partitions_take_no_comparison_of_all_with_all():
    compared = []

    class Path(str):
        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    storage, clock = new_table(table_type="MERGE_ON_READ")
    paths = [f"p{number:03}" for number in range(100)]
    opened(storage, clock).upsert(batch([Input("k", path, 1, 1) for path in paths]))
    slices = context_of(storage).snapshot().view.latest_slices(map(Path, paths))
    assert [each.group.partition_path for each in slices] == paths
    assert len(compared) < 10 * len(paths)


@dataclass(frozen=True)
class Everywhere:
    """A choice of all partitions, of which `.hoodie` is none."""

    levels: int

    def leads(self, folders):
        return [not folder.endswith(HOODIE) for folder in folders]

    wants = leads


@pytest.mark.parametrize("partition_by", ["part", ["part", "day"]], ids=["a level", "two levels"])
@pytest.mark.parametrize("inner", [None, "part"], ids=["no partitions", "partitions"])
def test_a_table_inside_of_a_table_has_none_of_its_rows(partition_by, inner, tmp_path):
    """Neither where all is listed nor where the folders of some partitions are."""
    rows = [{"id": n, "part": "a", "day": "b"} for n in range(3)]
    hoodie.create_table(tmp_path / "inner", record_key="id", partition_by=inner).insert(rows)
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=partition_by)
    table.insert(rows)
    shutil.copytree(tmp_path / "inner", tmp_path / "t" / "copy")
    table = hoodie.open_table(tmp_path / "t")
    everything = table._context.listing.all_files()
    assert [path for path in (*everything.partitions, *everything.files) if path.startswith("copy")] == []
    assert everything.tables == ["copy"]
    for levels in (1, 2, 3):
        chosen = table._context.listing.chosen_files(Everywhere(levels)).found
        assert [path for path in (*chosen.partitions, *chosen.files) if path.startswith("copy")] == []
    for where in (None, "part = 'a'", "id >= 0"):
        assert table.scan(where=where).to_arrow()["id"].to_pylist() == [0, 1, 2]
