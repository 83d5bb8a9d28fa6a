"""Tables that Apache Hudi bootstraps, and goes on with: every view of them is read as Apache Hudi reads it."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.types import LongType

import hoodie
from hoodie.migration.bootstrap import bootstrap
from hoodie.model.meta_fields import META_COLUMNS
from integration import rust_peer as hudi_rs
from integration.hudi_client import HudiPeer
from tests.effort import soak_but
from tests.migrated_sources import iceberg_of
from tests.rows import rows_of, without

SCHEMA = pa.schema([("id", pa.string()), ("qty", pa.int64()), ("price", pa.float64()), ("tags", pa.list_(pa.string()))])
KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "qty",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
BOOTSTRAP = {
    "hoodie.datasource.write.operation": "bootstrap",
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
    "hoodie.bootstrap.parallelism": "2",
}


def some(*numbers: int, qty: int = 0) -> pa.Table:
    rows = [
        {"id": f"k{n:03}", "qty": n + qty, "price": None if n % 5 == 0 else n / 4, "tags": ["a"] * (n % 3)}
        for n in numbers
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def files_of(folder: Path) -> Path:
    """Two partitions, whose column the files have as well; several row groups each."""
    for part, numbers in (("a", range(40)), ("b", range(40, 70))):
        (folder / f"part={part}").mkdir(parents=True)
        rows = some(*numbers).append_column("part", pa.array([part] * len(numbers)))
        pq.write_table(rows, folder / f"part={part}" / "rows.parquet", row_group_size=7)
    return folder


@pytest.mark.parametrize(
    ("kind", "version"),
    soak_but(
        [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 9)], [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 6), ("MERGE_ON_READ", 9)]
    ),
)
def test_all_views_are_those_of_hudi(hudi: HudiPeer, tmp_path: Path, kind: str, version: int) -> None:
    path, source = tmp_path / "t", files_of(tmp_path / "source")
    options = {**KEYS, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": str(version)}
    hudi.write(path, some(), {**options, **BOOTSTRAP, "hoodie.bootstrap.base.path": str(source)}, mode="overwrite")
    assert not pq.read_schema(next(path.glob("part=a/*.parquet"))).names[5:]  # a skeleton
    compare(hudi, path)
    changed = some(1, 2, 41, 90, qty=500).append_column("part", pa.array(["a", "a", "b", "b"]))
    hudi.write(path, changed, {**options, "hoodie.datasource.write.operation": "upsert"})
    compare(hudi, path)
    gone = some(3, 42, qty=900).append_column("part", pa.array(["a", "b"]))
    hudi.write(path, gone, {**options, "hoodie.datasource.write.operation": "delete"})
    compare(hudi, path)
    if kind == "MERGE_ON_READ":
        compact = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
        more = some(5, qty=700).append_column("part", pa.array(["a"]))
        hudi.write(path, more, {**options, **compact, "hoodie.datasource.write.operation": "upsert"})
        compare(hudi, path)


@pytest.mark.parametrize(
    ("kind", "version"),
    soak_but(
        [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 9)], [("COPY_ON_WRITE", 6), ("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9)]
    ),
)
def test_hudi_reads_what_we_write_on_its_bootstrap(hudi: HudiPeer, tmp_path: Path, kind: str, version: int) -> None:
    path, source = tmp_path / "t", files_of(tmp_path / "source")
    options = {**KEYS, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": str(version)}
    hudi.write(path, some(), {**options, **BOOTSTRAP, "hoodie.bootstrap.base.path": str(source)}, mode="overwrite")
    table = hoodie.open_table(path)
    table.upsert(parted(some(1, 41, 90, qty=500), "aba"))
    compare(hudi, path)
    table.delete(parted(some(3, 42, qty=900), "ab"))
    compare(hudi, path)
    hudi.write(path, parted(some(1, 2, qty=950), "aa"), {**options, "hoodie.datasource.write.operation": "upsert"})
    compare(hudi, path)
    if kind == "MERGE_ON_READ":
        table.schedule_compaction()
        hudi.run_compaction(path)  # by the plan, which names the sources
        compare(hudi, path)
        table.upsert(parted(some(6, qty=960), "a"))
        table.compact()
        compare(hudi, path)
    table.cluster()
    compare(hudi, path)
    table.upsert(parted(some(7, qty=970), "a"))
    table.clean(retain_commits=1)
    compare(hudi, path)
    assert not list(path.rglob("*_00000000000001.parquet"))
    assert hudi_rs.read(path) == rows_of(table.scan(meta_columns=True).to_arrow())


def parted(rows: pa.Table, parts: str) -> pa.Table:
    return rows.append_column("part", pa.array(list(parts)))


def compare(hudi: HudiPeer, path: Path) -> None:
    table = hoodie.open_table(path)
    newest = table.timeline.commits[-1].time
    for query in ("snapshot", "read_optimized"):
        ours = table.scan(query=query, meta_columns=True).to_arrow()
        assert rows_of(ours) == hudi.read(path, query).rows, query
    ours = table.scan(as_of=newest, meta_columns=True).to_arrow()
    assert rows_of(ours) == hudi.read(path, as_of=newest).rows
    if table.config.version == 6:  # where instants are the positions of both
        for begin in (commit.time for commit in table.timeline.commits):
            pulled = table.changes(since=begin, meta_columns=True).to_arrow()
            assert rows_of(pulled) == hudi.read(path, "incremental", begin=begin).rows, begin


@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 9)])
def test_hudi_reads_and_writes_what_we_bootstrapped(hudi: HudiPeer, tmp_path: Path, kind: str, version: int) -> None:
    path, source = tmp_path / "t", tmp_path / "source"
    for part, numbers in (("a", range(40)), ("b c", range(40, 70))):  # the files lack the column
        (source / f"part={part}").mkdir(parents=True)
        pq.write_table(some(*numbers), source / f"part={part}" / "some rows.parquet", row_group_size=7)
    done = hoodie.migrate(
        source, path, record_key="id", ordering="qty", mode="in_place", table_type=kind, table_version=version, name="t"
    )
    assert done.ok
    compare(hudi, path)
    options = {**KEYS, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": str(version)}
    changed = some(1, 41, 90, qty=500).append_column("part", pa.array(["a", "b c", "b c"]))
    hudi.write(path, changed, {**options, "hoodie.datasource.write.operation": "upsert"})
    compare(hudi, path)
    gone = some(3, 42, qty=900).append_column("part", pa.array(["a", "b c"]))
    hudi.write(path, gone, {**options, "hoodie.datasource.write.operation": "delete"})
    compare(hudi, path)
    if kind == "MERGE_ON_READ":
        hudi.run_compaction(path, op="scheduleAndExecute")
        compare(hudi, path)
    hoodie.open_table(path).upsert(parted(some(5, qty=950), "a"))
    compare(hudi, path)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_reads_and_writes_delta_and_iceberg_tables_in_place(hudi: HudiPeer, tmp_path: Path, kind: str) -> None:
    """With files that no longer count, and signs in values of partition columns."""
    parts, days = ["a", "b=c/d %20", None], [date(2026, 1, 2), date(1969, 12, 31)]
    rows = some(*range(20)).append_column("part", pa.array([parts[n % 3] for n in range(20)]))
    rows = rows.append_column("day", pa.array([days[n // 4 % 2] for n in range(20)], pa.date32()))
    source: Any = tmp_path / "source"
    by = ["part"] if kind == "COPY_ON_WRITE" else ["part", "day"]  # Apache Hudi 1.2.0 does not rewrite files of dates
    if kind == "COPY_ON_WRITE":
        at = rows.schema.get_field_index(
            "tags"
        )  # Apache Hudi 1.2.0 does not rewrite files that say "item", as deltalake does
        rows = rows.set_column(at, "tags", rows["tags"].cast(pa.list_(pa.field("element", pa.string()))))
        write_deltalake(source, rows.slice(0, 12), partition_by=by)
        write_deltalake(source, rows.slice(12), mode="append")
        DeltaTable(source).delete("id = 'k004'")
    else:
        source = iceberg_of(tmp_path, rows.schema.set(1, pa.field("qty", pa.int32())), by)
        source.append(rows.slice(0, 12).set_column(1, "qty", rows["qty"].slice(0, 12).cast(pa.int32())))
        with source.update_schema() as change:
            change.update_column("qty", LongType())
            change.add_column("more", LongType())
        source.append(rows.slice(12).append_column("more", pa.array([1] * 8)))
        source.delete("id == 'k004'")
    path, asked = tmp_path / "t", {"table_type": kind, "table_version": 9, "name": "t"}
    done = hoodie.migrate(source, path, record_key="id", ordering="qty", mode="in_place", **asked)  # type: ignore[arg-type]
    assert (done.ok, done.target_rows) == (True, 19)
    compare(hudi, path)
    changed = hoodie.open_table(path).scan(where="id IN ('k001', 'k002')").to_arrow()
    options = {
        **KEYS,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.partitionpath.field": ",".join(by),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.complex.keygen.validation.enable": "false",
        "hoodie.write.table.version": "9",
    }
    hudi.write(path, changed.set_column(1, "qty", pa.array([500, 500])), options)
    hoodie.open_table(path).delete(rows.slice(5, 1))
    compare(hudi, path)


def test_hudi_reads_and_writes_what_a_job_bootstrapped(hudi: HudiPeer, tmp_path: Path) -> None:
    """The files of one folder stay, those of the other are copied. Of its own such table Apache Hudi 1.2.0 fails to read rows."""
    source = files_of(tmp_path / "source")
    options = {
        **KEYS,
        **BOOTSTRAP,
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.keygen.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
        "hoodie.bootstrap.mode.selector.regex": "part=a",
        "hoodie.bootstrap.mode.selector.regex.mode": "FULL_RECORD",
        "hoodie.write.table.version": "6",
    }
    bootstrap(str(tmp_path / "t"), options, lambda address: None, defaults={})
    compare(hudi, tmp_path / "t")
    stored = pa.concat_tables([parted(some(*range(40)), "a" * 40), parted(some(*range(40, 70)), "b" * 30)])
    assert without(hudi.read(tmp_path / "t").rows, *META_COLUMNS) == rows_of(stored)
    upsert = {**KEYS, "hoodie.datasource.write.operation": "upsert", "hoodie.write.table.version": "6"}
    hudi.write(tmp_path / "t", parted(some(1, 41, 90, qty=500), "abb"), upsert)
    compare(hudi, tmp_path / "t")
