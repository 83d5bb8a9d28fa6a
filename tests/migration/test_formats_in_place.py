"""Delta and Iceberg tables become tables where they are: the files that count, and no other one; or one sentence says why not."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import OptionError
from hoodie.migration import in_place
from hoodie.migration.as_files import as_files
from hoodie.migration.migrate import migrate
from hoodie.migration.sources import opener_of
from tests.migrated_sources import ROWS, delta_table, iceberg_of, iceberg_table, rows_of, with_deletion_vector

LEFT = ROWS.filter(pa.array([key not in ("k04", "k05") for key in ROWS["id"].to_pylist()]))


def changed_delta(folder, *, partitioned):
    """Files of rows that were deleted, compacted away and vacuumed, and some that are no longer named and lie about."""
    for start in (0, 10, 20):
        write_deltalake(folder, ROWS.slice(start, 10), mode="append", partition_by=["day"] if partitioned else None)
    table = DeltaTable(folder)
    table.delete("id = 'k04'")
    table.optimize.compact()
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    table.delete("id = 'k05'")
    assert len(list(folder.rglob("*.parquet"))) > len(table.file_uris())
    return folder


def changed_iceberg(folder, *, partitioned):
    table = iceberg_table(folder, partitioned=partitioned)
    table.delete("id == 'k04'")
    table.delete("id == 'k05'")
    return table


@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 9)])
@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("make", [changed_delta, changed_iceberg])
def test_the_files_that_count_are_the_table_and_stay_until_they_are_written_anew(
    tmp_path, make, partitioned, kind, version
):
    source = make(tmp_path / "s", partitioned=partitioned)
    before = {path: path.read_bytes() for path in (tmp_path / "s").rglob("*") if path.is_file()}
    asked = {"record_key": "id", "mode": "in_place", "table_type": kind, "table_version": version}
    done = migrate(source, tmp_path / "t", **asked)
    assert (done.ok, done.source_rows, done.target_rows) == (True, 28, 28)
    assert done.partition_by == (("day",) if partitioned else ())
    assert {name for path in (tmp_path / "t").rglob("*.parquet") for name in pq.read_schema(path).names[5:]} == set()
    table = hoodie.open_table(tmp_path / "t")
    assert rows_of(table.scan().to_arrow()) == rows_of(LEFT)
    assert table.scan(where="day = 'tue wed'").count() == 9
    again = migrate(source, tmp_path / "t", **asked)
    assert (again.done_before, again.steps, again.ok) == (done.files, (), True)

    changed = ROWS.slice(0, 3).set_column(2, "n", pa.array([100, 200, 300], pa.int64()))
    assert table.upsert(changed).updated == 3
    table.delete(ROWS.slice(7, 1))
    table.insert(ROWS.slice(4, 1))
    expected = rows_of(pa.concat_tables([changed, ROWS.slice(3, 2), ROWS.slice(6, 1), ROWS.slice(8)]))
    assert rows_of(table.scan().to_arrow()) == expected
    if kind == "MERGE_ON_READ":
        table.compact()
        assert rows_of(table.scan(query="read_optimized").to_arrow()) == expected
    assert main(["check", str(tmp_path / "t"), "--rows"]) == 0
    assert {path: path.read_bytes() for path in (tmp_path / "s").rglob("*") if path.is_file()} == before


def test_a_run_goes_on_with_the_version_that_was_begun_with(tmp_path, monkeypatch):
    source = delta_table(tmp_path / "s")
    asked = {"record_key": "id", "mode": "in_place"}

    def write_index(*given, **more):
        raise ZeroDivisionError

    with monkeypatch.context() as dies:
        dies.setattr(in_place, "write_index", write_index)
        with pytest.raises(ZeroDivisionError):
            migrate(source, tmp_path / "t", **asked)
    DeltaTable(source).delete("id = 'k04'")
    done = migrate(source, tmp_path / "t", **asked)
    assert (done.ok, done.version, done.target_rows) == (True, "2", 30)


def test_signs_in_partition_values_are_encoded_in_folders(tmp_path):
    rows = pa.table({"id": [1, 2, 3], "p": ["a/b", "x=1%20", None]})
    write_deltalake(tmp_path / "s", rows, partition_by=["p"])
    assert migrate(tmp_path / "s", tmp_path / "t", record_key="id", mode="in_place").ok
    table = hoodie.open_table(tmp_path / "t")
    assert sorted(table.partitions()) == ["p=__HIVE_DEFAULT_PARTITION__", "p=a%2Fb", "p=x%3D1%2520"]
    assert rows_of(table.scan().to_arrow(), "id", "p") == rows.to_pylist()


def test_where_the_files_are_does_not_matter(tmp_path):
    source = delta_table(tmp_path / "s")
    for folder, name in (("day=mon", "aB"), ("day=tue%20wed", "cD"), ("day=__HIVE_DEFAULT_PARTITION__", "eF")):
        (source / folder).rename(source / name)  # as delta.randomizeFilePrefixes has it
        for log in (source / "_delta_log").glob("*.json"):
            log.write_text(log.read_text().replace(f"{folder.replace('%', '%25')}/", f"{name}/"))
    assert migrate(source, tmp_path / "t", record_key="id", mode="in_place").ok
    table = hoodie.open_table(tmp_path / "t")
    assert sorted(table.partitions()) == ["day=__HIVE_DEFAULT_PARTITION__", "day=mon", "day=tue wed"]
    assert rows_of(table.scan().to_arrow()) == rows_of(ROWS)


def test_columns_that_were_added_are_null_and_numbers_that_grew_are_read(tmp_path):
    table = iceberg_table(tmp_path, partitioned=False)
    with table.update_schema() as change:
        change.add_column("more", LongType())
    grown = ROWS.slice(0, 1).set_column(0, "id", pa.array(["new"])).append_column("more", pa.array([7]))
    table.append(grown)
    assert migrate(table.location(), tmp_path / "t", record_key="id", mode="in_place").ok
    found = hoodie.open_table(tmp_path / "t").scan()
    assert rows_of(found.to_arrow(), *grown.column_names) == rows_of(
        pa.concat_tables([ROWS, grown], promote_options="default"), *grown.column_names
    )


def mapped(folder):
    source = delta_table(folder / "m")
    (log,) = (source / "_delta_log").glob("*00.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
    log.write_text("\n".join(map(json.dumps, lines)))
    return source


def with_vector(folder):
    source = delta_table(folder / "v")
    with_deletion_vector(source, [0, 2])
    return source


def renamed(folder):
    table = iceberg_table(folder / "r")
    with table.update_schema() as change:
        change.rename_column("n", "number")
    assert any(
        "columns are those of the snapshot" in each
        for each in migrate(table, folder / "t", record_key="id", dry_run=True).notes
    )
    table.append(ROWS.slice(0, 1).drop_columns(["n"]).set_column(0, "id", pa.array(["new"])))
    return table


def made_anew(folder):
    table = iceberg_table(folder / "a")
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("n")
    with table.update_schema() as change:
        change.add_column("n", LongType())
    table.append(ROWS.slice(0, 1).set_column(0, "id", pa.array(["new"])))
    return table


def bucketed(folder):
    table = iceberg_table(folder / "b", partitioned=False)
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "part")
    return table


def moved(folder):
    table = iceberg_table(folder / "o", partitioned=False)
    with table.transaction() as change:
        change.set_properties(**{"write.data.path": f"file://{folder}/elsewhere"})
    table.append(ROWS.slice(0, 1).set_column(0, "id", pa.array(["new"])))
    return table


@pytest.mark.parametrize("by", [[], ["n"]])
def test_no_column_is_lost_that_the_files_lack(tmp_path, by):
    with pytest.raises(OptionError, match=r"lacks column 'day', .*partition the table by it"):
        migrate(
            delta_table(tmp_path / "s"), tmp_path / "t", record_key="id", partition_by=by, mode="in_place", dry_run=True
        )
    done = migrate(iceberg_table(tmp_path), tmp_path / "u", record_key="id", partition_by=[], mode="in_place")
    assert done.ok  # files of Iceberg have it


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (mapped, "columns have other names in the files"),
        (with_vector, "deletion vectors take rows of 1 files away"),
        (renamed, "column 'n' of .* is none of the table's"),
        (made_anew, "column 'n' of .* is none of the table's"),
        (bucketed, r"partitioned by bucket\[4\]\(id\)"),
        (moved, "is outside of its folder"),
    ],
)
def test_what_metadata_alone_cannot_hold_is_refused_before_anything_is_written(tmp_path, make, why):
    with pytest.raises(OptionError, match=f"cannot be migrated in place: .*{why}.*; migrate it by mode='copy'"):
        migrate(make(tmp_path), tmp_path / "t", record_key="id", mode="in_place", dry_run=True)
    assert not (tmp_path / "t").exists()


def test_an_iceberg_table_with_delete_files_is_refused(tmp_path):
    source = opener_of(iceberg_table(tmp_path), None, None, None)(None)
    next(iter(source.tasks.values())).delete_files.add("x")
    with pytest.raises(OptionError, match="delete files take rows of 1 files away"):
        as_files(source, partition_given=False)


def test_an_iceberg_table_with_maps_is_taken_as_it_is(tmp_path):
    kind = pa.map_(pa.string(), pa.list_(pa.struct([("n", pa.int64())])))
    rows = pa.table({"id": [1, 2], "of": pa.array([[("a", [{"n": 1}])], None], kind)})
    table = iceberg_of(tmp_path / "s", rows.schema, [])
    table.append(rows)
    assert migrate(table, tmp_path / "t", record_key="id", mode="in_place").ok
    assert hoodie.open_table(tmp_path / "t").scan().to_arrow()["of"].to_pylist() == [[("a", [{"n": 1}])], None]


def test_a_partitioning_that_no_column_has_is_left_out_where_the_user_says_so(tmp_path):
    assert migrate(bucketed(tmp_path), tmp_path / "t", record_key="id", partition_by=[], mode="in_place").ok
