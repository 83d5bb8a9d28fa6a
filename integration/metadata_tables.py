"""What a metadata table says, held against the files of its table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.metadata.keys import BLOOM_FILTERS
from hoodie.metadata.listing import MetadataListing
from hoodie.metadata.table import MetadataTable
from hoodie.storage.cache import Cache
from hoodie.storage.local import LocalStorage
from hoodie.view.context import TableContext
from hoodie.view.view import FileSystemView
from tests.metadata_tables import NoFolders, counted


def check(path: Path, *, indexes: bool = True, keys: bool = True) -> None:
    """Files, bounds, blooms and keys by the metadata table are those of the table's own files."""
    context = TableContext.open(LocalStorage(str(path)), LocalEngine(), cache=Cache())
    snapshot = context.snapshot()
    table = MetadataTable.open(context.storage, context.config, snapshot.timeline, Cache())
    folders = FileSystemView(context.listing, context.active, snapshot.timeline, snapshot.archived)
    by_table = FileSystemView(MetadataListing(table, NoFolders()), context.active, snapshot.timeline, snapshot.archived)
    assert table.partitions() is not None, table.reasons
    with_files = [each for each in folders.partitions() if folders.latest_slices([each])]
    assert set(with_files) <= set(by_table.partitions())
    assert counted(by_table.latest_slices()) == counted(folders.latest_slices()), table.reasons
    if not indexes:
        return
    named = context.config.metadata_partitions  # a restore drops the bloom filters
    bases = [piece.base.path for piece in folders.latest_slices() if piece.base is not None]
    blooms = table.bloom_filters(bases)
    assert (blooms is not None) == (BLOOM_FILTERS in named), table.reasons
    assert blooms is None or sorted(blooms) == sorted(bases)
    columns = pa.schema([field for field in snapshot.schema if not pa.types.is_nested(field.type)])
    stats = table.column_stats(bases, columns)
    assert stats is not None, table.reasons
    for number, base in enumerate(bases):
        data = pq.read_table(path / base, partitioning=None)
        stored = data["_hoodie_record_key"].combine_chunks().cast(pa.string())
        assert blooms is None or blooms[base].might_contain(stored).all()
        for column in columns:
            (found,) = stats[column.name].slice(number, 1).to_pylist()
            bounds = pc.min_max(data[column.name]).as_py()
            assert found["values"] == data.num_rows, (base, column.name)
            assert found["nulls"] == data[column.name].null_count
            assert (found["low"], found["high"]) == (bounds["min"], bounds["max"]), (base, column.name)
    if not keys:
        return
    everything = hoodie.open_table(path).scan(meta_columns=True).to_arrow()
    every = everything["_hoodie_record_key"].to_pylist()
    found = table.locations(pa.array([*every, "no such key"]))
    assert found is not None, table.reasons
    files = [name.partition("_")[0] for name in everything["_hoodie_file_name"].to_pylist()]
    there = zip(everything["_hoodie_partition_path"].to_pylist(), files, strict=True)
    places = list(zip(found["partition_path"].to_pylist(), found["file_id"].to_pylist(), strict=True))
    assert places == [*there, (None, None)]
    assert not table.reasons.keys() - {BLOOM_FILTERS}
