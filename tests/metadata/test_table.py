"""What a metadata table says is what the table's own files say; where it cannot be trusted it says nothing."""

import base64
import shutil
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.errors import SchemaError
from hoodie.format.bloom import build_bloom
from hoodie.metadata.column_stats import stats_flags
from hoodie.metadata.keys import bloom_keys, group_numbers, stats_keys
from hoodie.metadata.merging import merged
from hoodie.metadata.table import MetadataTable
from hoodie.model.names import METADATA_TABLE, PARTITION_METADATA
from hoodie.storage.cache import Cache
from hoodie.storage.local import LocalStorage
from hoodie.view.context import TableContext
from tests.golden_tables import copy_golden
from tests.metadata_tables import FIRST, SCHEMA, Made, bloom, encoded, files, location, stats, t
from tests.public_tables import public_table

GOLDEN = ("v6_mdt_cow", "v6_mdt_mor")
PUBLIC = ("hudi-v6-table-mor", "hudi_comprehensive_types_v6_mor", "trips_logical_types_json_cow_read_v6")


def context_of(path):
    return TableContext.open(LocalStorage(str(path)), LocalEngine(), cache=Cache())


def opened(path):
    context = context_of(path)
    return MetadataTable.open(context.storage, context.config, context.snapshot().timeline, Cache())


def listed(path, partition):
    """The data files of a partition, as the folder has them."""
    found = ((file.name, file.stat().st_size) for file in (Path(path) / partition).iterdir())
    return sorted(pair for pair in found if not pair[0].endswith(".crc") and PARTITION_METADATA not in pair[0])


def told(infos):
    return sorted((info.name, info.size_bytes) for info in infos)


@pytest.fixture(params=[*GOLDEN, *PUBLIC])
def table_path(request, tmp_path):
    if request.param in GOLDEN:
        return copy_golden(request.param, tmp_path).path
    return public_table(request.param, tmp_path).path


def test_files_and_partitions_are_those_of_a_listing(table_path):
    table, partitions = opened(table_path), context_of(table_path).snapshot().view.partitions()
    assert table.partitions() == partitions
    assert [told(infos) for infos in table.files(partitions)] == [listed(table_path, each) for each in partitions]
    assert {path: told(infos) for path, infos in table.all_files().items()} == {
        each: listed(table_path, each) for each in partitions
    }
    assert table.files(["no partition"]) == [[]]
    assert not table.reasons


@pytest.mark.parametrize("name", PUBLIC[1:])
def test_bounds_are_those_of_the_rows_in_each_base_file(name, tmp_path):
    context = context_of(public_table(name, tmp_path).path)
    root, snapshot = Path(context.storage.uri.removeprefix("file://")), context.snapshot()
    table = MetadataTable.open(context.storage, context.config, snapshot.timeline, Cache())
    columns = pa.schema([field for field in snapshot.schema if not pa.types.is_nested(field.type)])
    paths = [info.path for infos in table.all_files().values() for info in infos if info.path.endswith(".parquet")]
    found = table.column_stats(paths, columns)
    known = 0
    for column in columns:
        for path, told_bounds in zip(paths, found[column.name].to_pylist(), strict=True):
            rows = pq.read_table(root / path, partitioning=None)[column.name].combine_chunks()
            if told_bounds["values"] is None:
                continue
            assert (told_bounds["values"], told_bounds["nulls"]) == (len(rows), rows.null_count), (column.name, path)
            if told_bounds["low"] is not None:
                known += 1
                bounds = pc.min_max(rows.cast(column.type)).as_py()
                assert (told_bounds["low"], told_bounds["high"]) == (bounds["min"], bounds["max"]), (column.name, path)
    assert known > len(paths) * len(columns) / 2


def test_keys_are_where_a_scan_finds_them(tmp_path):
    path = public_table("hudi_comprehensive_types_v6_mor", tmp_path).path
    rows = hoodie.open_table(path).scan(meta_columns=True).to_arrow()
    keys = pa.array([*rows["_hoodie_record_key"].to_pylist(), "no such key"])
    found = opened(path).locations(keys)
    there = zip(rows["_hoodie_partition_path"].to_pylist(), rows["_hoodie_file_name"].to_pylist(), strict=True)
    places = zip(found["partition_path"].to_pylist(), found["file_id"].to_pylist(), strict=True)
    assert list(places) == [*((part, name.partition("_")[0]) for part, name in there), (None, None)]


@pytest.mark.parametrize("name", GOLDEN)
def test_what_a_pending_instant_wrote_is_not_told(name, tmp_path):
    golden = copy_golden(name, tmp_path)
    last = max(golden.path.glob(".hoodie/*commit"))
    written_by_it = {
        info.path for infos in opened(golden.path).files(["a", "b"]) for info in infos if last.stem in info.path
    }
    newest = max(golden.path.glob("a/*.log.*"), default=None) if name == "v6_mdt_mor" else None
    last.unlink()
    left = {info.path for infos in opened(golden.path).files(["a", "b"]) for info in infos}
    assert written_by_it or newest
    assert not written_by_it & left
    assert newest is None or f"a/{newest.name}" not in left


@pytest.mark.parametrize("lost", ["20261121075311478.deltacommit", "20261121075317810.deltacommit"])
def test_one_that_lacks_a_commit_is_not_available(lost, tmp_path):
    golden = copy_golden("v6_mdt_mor", tmp_path)
    for file in (golden.path / METADATA_TABLE / ".hoodie").glob(f"{lost}*"):
        file.unlink()
    table = opened(golden.path)
    assert table.partitions() is None
    assert "lacks" in table.reasons["files"]
    assert lost[:17] in table.reasons["files"]


@pytest.mark.parametrize("place", ["timeline.path", "timeline.history.path"])
def test_one_whose_timeline_and_archive_have_other_names_is_read_by_these(place, tmp_path):
    path = copy_golden("v9_mdt_mor", tmp_path).path
    meta = path / METADATA_TABLE / ".hoodie"
    usual = meta / ("timeline" if place == "timeline.path" else "timeline/history")
    if usual.exists():
        usual.rename(usual.with_name("elsewhere"))
    properties = meta / "hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith(f"hoodie.{place}=")]
    properties.write_text("\n".join([*lines, f"hoodie.{place}=elsewhere", ""]))
    table, partitions = opened(path), context_of(path).snapshot().view.partitions()
    assert [told(infos) for infos in table.files(partitions)] == [listed(path, each) for each in partitions]
    assert (table.reasons, table._opened.folder, table._opened.history) == (
        {},
        ".hoodie/elsewhere" if place == "timeline.path" else ".hoodie/timeline",
        ".hoodie/elsewhere/history" if place == "timeline.path" else ".hoodie/timeline/elsewhere",
    )


def test_one_that_is_gone_or_of_another_version_is_not_available(tmp_path):
    golden = copy_golden("v6_mdt_mor", tmp_path)
    properties = golden.path / METADATA_TABLE / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text(encoding="utf-8").replace("version=6", "version=8"), encoding="utf-8")
    table = opened(golden.path)
    assert table.files(["a"]) is None
    assert "version 8" in table.reasons["files"]
    shutil.rmtree(golden.path / METADATA_TABLE)
    assert opened(golden.path).files(["a"]) is None


@pytest.mark.parametrize("pattern", ["*.hfile", ".*.log.2*", ".*.log.4*"])
@pytest.mark.parametrize("damage", ["gone", "cut", "garbled"])
def test_a_damaged_file_makes_it_unavailable(pattern, damage, tmp_path):
    golden = copy_golden("v6_mdt_cow", tmp_path)
    (file,) = (golden.path / METADATA_TABLE / "files").glob(pattern)
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data[: len(data) // 2] if damage == "cut" else data[:40] + bytes(len(data) - 40))
    table = opened(golden.path)
    assert table.files(["a", "b"]) is None
    assert table.reasons["files"]


def test_only_partitions_that_the_table_names_and_that_are_finished_are_available():
    made = Made("record_index")
    made.base("record-index-0000-0", FIRST, {"k": location("p", file_id="g")})
    keys = pa.array(["k"])
    assert made.opened().locations(keys) is not None
    pending = made.opened(inflight="record_index")
    assert pending.locations(keys) is None
    assert "being made" in pending.reasons["record_index"]
    other = made.opened()
    assert other.bloom_filters([]) is None
    assert "no such partition" in other.reasons["bloom_filters"]
    assert other.files([""]) is None
    assert "file groups" in other.reasons["files"]


def test_a_missing_file_group_makes_an_index_unavailable():
    made = Made("record_index")
    for number in (0, 2):
        made.base(f"record-index-{number:04d}-0", FIRST, {f"k{number}": location("p", file_id="g")})
    table = made.opened()
    assert table.locations(pa.array(["k0"])) is None
    assert "not numbered" in table.reasons["record_index"]


def test_files_add_up_over_base_file_and_logs():
    made = Made("files")
    made.base("files-0000-0", FIRST, {"__all_partitions__": files({"p": 0, "q": 0}), "p": files({"a": 5, "b": 6})})
    made.log("files-0000-0", FIRST, t(1), {"p": files({"c": 7, "b": 4}, deleted=["a"])})
    made.log("files-0000-0", FIRST, t(2), {"p": files({"a": 8}, deleted=["never there"]), "q": files({"d": 1})})
    made.log("files-0000-0", FIRST, t(3), deleted=["q"])
    found = made.opened()
    assert found.partitions() == ("p", "q")
    assert [told(infos) for infos in found.files(["q", "p"])] == [[], [("a", 8), ("b", 6), ("c", 7)]]
    earlier = made.opened([f"{t(1)}.deltacommit", f"{t(2)}.deltacommit", f"{t(3)}.deltacommit.inflight"])
    assert [told(infos) for infos in earlier.files(["q"])] == [[("d", 1)]]


def test_a_table_without_partitions_has_the_partition_path_that_is_empty():
    made = Made("files")
    made.base("files-0000-0", FIRST, {"__all_partitions__": files({".": 0}), ".": files({"a": 5})})
    found = made.opened()
    assert found.partitions() == ("",)
    assert [info.path for info in found.files([""])[0]] == ["a"]
    assert list(found.all_files()) == [""]


def test_the_newest_record_of_a_key_counts_in_whichever_file_group_it_is():
    keys = [f"key {number}" for number in range(40)] + ["ключ", "鍵", "🔑", ""]
    names = [f"record-index-{number:04d}-0" for number in range(7)]
    groups = dict(zip(keys, group_numbers(pa.array(keys), 7).tolist(), strict=True))
    made, ids = Made("record_index"), {key: uuid.uuid5(uuid.NAMESPACE_OID, key) for key in keys}

    def record(key, part, written=0):
        high, low = (int.from_bytes(ids[key].bytes[at : at + 8], "big", signed=True) for at in (0, 8))
        return location(part, high=high, low=low, index=len(key) - 5, written=written)

    for number, name in enumerate(names):
        mine = [key for key in keys if groups[key] == number]
        made.base(name, FIRST, {key: record(key, "old") for key in mine})
        made.log(name, FIRST, t(1), {key: record(key, "new", 1_700_000_000_123) for key in mine[1:3]})
        made.log(name, FIRST, t(2), deleted=mine[:2])
    moved = {key for number in range(7) for key in [key for key in keys if groups[key] == number][2:3]}
    deleted = {key for number in range(7) for key in [key for key in keys if groups[key] == number][:2]}
    asked = [*reversed(keys), "no such key", keys[0]]
    table = made.opened()
    found = table.locations(pa.array(asked))
    assert found is not None, table.reasons
    found = found.to_pylist()
    for key, row in zip(asked, found, strict=True):
        if key in deleted or key not in groups:
            assert row == {"partition_path": None, "file_id": None, "written": None}
            continue
        index = len(key) - 5
        assert row["file_id"] == (str(ids[key]) if index == -1 else f"{ids[key]}-{index}")
        assert row["partition_path"] == ("new" if key in moved else "old")
        if key in moved:
            assert row["written"] == datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)


def test_bloom_filters_are_those_that_were_written():
    paths = [f"p{number % 2}/file{number}_0-0-0_{t(1)}.parquet" for number in range(9)]
    groups = group_numbers(bloom_keys(paths), 4).tolist()
    made = Made("bloom_filters")

    def text(number):
        keys = pa.array([f"{number} {row}" for row in range(20)])
        made_bloom = build_bloom("DYNAMIC_V0", keys, num_entries=100, fpp=1e-6, max_entries=1000)
        return base64.b64encode(made_bloom.to_bytes()).decode()

    for group in range(4):
        mine = [n for n in range(9) if groups[n] == group]
        keys = dict(zip(range(9), bloom_keys(paths).to_pylist(), strict=True))
        made.base(f"bloom-filters-{group:04d}-0", FIRST, {keys[n]: bloom("DYNAMIC_V0", text(n)) for n in mine})
        gone = {keys[n]: bloom("DYNAMIC_V0", "", deleted=True) for n in mine if n == 3}
        if gone:
            made.log(f"bloom-filters-{group:04d}-0", FIRST, t(1), gone)
    found = made.opened().bloom_filters([*paths, "p0/no file"])
    assert sorted(found) == sorted(set(paths) - {paths[3]})
    for number, path in enumerate(paths):
        if number != 3:
            assert found[path].might_contain(pa.array([f"{number} 7", f"{number + 1} 7"])).tolist() == [True, False]


def test_bounds_of_a_file_add_up_and_a_deleted_one_is_forgotten():
    made, paths = Made("column_stats"), ["p/merged", "p/tight", "p/deleted", "p/empty", "p/unknown"]
    keys = stats_keys(paths, "c").to_pylist()

    def written(*records):
        return {key: record for key, record in zip(keys, records, strict=False) if record is not None}

    first = written(
        *(stats("c", "LongWrapper", 5, 9, nulls=1, values=4) for _ in paths[:3]), stats("c", None, nulls=2, values=2)
    )
    second = written(
        stats("c", "IntWrapper", 7, 12, values=3),
        stats("c", "LongWrapper", 6, 7, values=2, tight=True),
        stats("c", None, nulls=0, values=0, deleted=True),
        stats("c", "LongWrapper", 3, 4, values=5),
    )
    made.base("col-stats-0000-0", FIRST, first)
    made.log("col-stats-0000-0", FIRST, t(1), second)
    found = made.opened().column_stats(paths, pa.schema([("c", pa.int64()), ("d", pa.string())]))
    rows = [tuple(row.values()) for row in found["c"].to_pylist()]
    nothing = (None, None, None, None)
    assert rows == [(5, 12, 1, 7), (6, 7, 0, 2), nothing, (3, 4, 2, 7), nothing]
    assert [tuple(row.values()) for row in found["d"].to_pylist()] == [nothing] * len(paths)


def test_a_compaction_leaves_out_what_a_delete_block_took_away():
    """Apache Hudi's writers put keys of bounds into delete blocks, too."""
    made, keys = Made("column_stats"), stats_keys(["p/gone", "p/back", "p/kept"], "c").to_pylist()
    bounds = [stats("c", "LongWrapper", n, n + 1, values=1) for n in range(4)]
    made.base("col-stats-0000-0", FIRST, dict(zip(keys, bounds, strict=False)))
    made.log("col-stats-0000-0", FIRST, t(1), deleted=keys[:2])
    made.log("col-stats-0000-0", FIRST, t(2), {keys[1]: bounds[3]})
    shard = merged(made.opened().layers_of("column_stats", 0), SCHEMA, 0, stats_flags)
    assert dict(zip(shard.keys.to_pylist(), shard.values.to_pylist(), strict=True)) == {
        keys[1].encode(): encoded(bounds[3]),
        keys[2].encode(): encoded(bounds[2]),
    }


def test_a_record_of_another_partition_is_damage():
    made = Made("record_index")
    made.base("record-index-0000-0", FIRST, {"k": files({"a": 1})})
    table = made.opened()
    assert table.locations(pa.array(["k"])) is None
    assert "recordIndexMetadata" in table.reasons["record_index"]


def test_keys_that_are_none_are_an_error_of_the_caller():
    made = Made("record_index")
    made.base("record-index-0000-0", FIRST, {"k": location("p", file_id="g")})
    table = made.opened()
    for wrong in (pa.array([1]), pa.array(["k", None])):
        with pytest.raises(SchemaError):
            table.locations(wrong)
    assert table.locations(pa.array(["k"])).to_pylist()[0]["file_id"] == "g"


def test_a_name_of_a_partition_that_is_no_text_is_damage():
    made = Made("files")
    made.base("files-0000-0", FIRST, {"__all_partitions__": files({"p": 0}), b"\xff": files({"a": 1})})
    table = made.opened()
    assert table.partitions() == ("p",)
    assert table.all_files() is None
