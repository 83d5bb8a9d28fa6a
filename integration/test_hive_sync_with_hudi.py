"""Tables in a real Hive metastore: what Apache Hudi registers for the same table is the same but for a list of differences, each goes
on where the other has ended, and Apache Hudi reads by name what was registered here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import hoodie
from hoodie.hive.sync import LAST_COMPLETION
from hoodie.metastore.interface import connected
from hoodie.model.instant import parse_instant
from hoodie.options.hive import servers_of
from integration.hudi_client import ROOT, HudiPeer
from tests.effort import HUNG_S
from tests.metastore_tables import Catalog
from tests.rows import rows_of
from tests.servers.hive import HiveMetastore

PREFIX = "hoodie.datasource.hive_sync."
STATISTICS = {
    "transient_lastDdlTime",
    "numFiles",
    "totalSize",
    "numRows",
    "rawDataSize",
    "numPartitions",
    "last_modified_by",
}
"""What the metastore itself notes, some of it only of tables without partitions."""
THEIR_VERSION = {"hudi_writer_version"}
ROWS = pa.table(
    {
        "id": ["a", "b", "c"],
        "city": ["rome", "oslo", "rome"],
        "day": ["2026-01-01", "2026-01-02", "2026-01-02"],
        "fare": pa.array([1, 2, 3], pa.int32()),
        "ts": pa.array([1, 1, 1], pa.int64()),
        "at": pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
        "price": pa.array(["1.00", "2.00", None]).cast(pa.decimal128(10, 2)),
        "born": pa.array([0, 1, 2], pa.date32()),
        "tags": pa.array([["x"], [], None], pa.list_(pa.string())),
        "more": pa.array(
            [{"Ab": 1, "n": {"x": 0.5}}] * 3, pa.struct([("Ab", pa.int32()), ("n", pa.struct([("x", pa.float64())]))])
        ),
        "props": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "raw": pa.array([b"x", b"", None], pa.binary()),
        "ok": [True, False, None],
    }
)


class Kind(NamedTuple):
    table_type: str
    partition_by: str
    options: Mapping[str, str] = {}
    """Of both writers."""
    sync: Mapping[str, str] = {}
    """Of both registrations."""


HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
KINDS = {
    "copy on write": Kind("COPY_ON_WRITE", "city"),
    "merge on read": Kind("MERGE_ON_READ", "city", HIVE_STYLE),
    "two partition columns": Kind("MERGE_ON_READ", "city,day"),
    "no partitions": Kind("COPY_ON_WRITE", ""),
    "options": Kind(
        "MERGE_ON_READ",
        "day",
        HIVE_STYLE,
        {
            f"{PREFIX}support_timestamp": "true",
            f"{PREFIX}omit_metadata_fields": "true",
            f"{PREFIX}table.strategy": "RO",
            f"{PREFIX}table_properties": "a=1\nb=2",
            f"{PREFIX}serde_properties": "c=3",
        },
    ),
    "not for Spark": Kind("MERGE_ON_READ", "city", {}, {f"{PREFIX}sync_as_datasource": "false"}),
}


def catalog_of(server: HiveMetastore, database: str) -> Catalog:
    servers = servers_of(server.uri, option="the server")
    return Catalog(database, lambda _, *, patience_s: connected(servers, patience_s=patience_s))


def hudi_options(server: HiveMetastore, database: str, kind: Kind) -> dict[str, str]:
    return {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": kind.partition_by,
        "hoodie.datasource.write.table.type": kind.table_type,
        "hoodie.write.complex.keygen.validation.enable": "false",
        f"{PREFIX}enable": "true",
        f"{PREFIX}mode": "hms",
        f"{PREFIX}metastore.uris": server.uri,
        f"{PREFIX}database": database,
        f"{PREFIX}table": "trips",
        **kind.options,
        **kind.sync,
    }


def plain(structure: Any) -> Any:
    """A structure of Thrift as values, without fields that are not set."""
    if hasattr(structure, "thrift_spec"):
        found = {name: plain(getattr(structure, name)) for _, name, *_ in structure.thrift_spec.values()}
        return {name: value for name, value in found.items() if value is not None}
    if isinstance(structure, list):
        return [plain(each) for each in structure]
    return structure


def objects(catalog: Catalog, name: str) -> dict[str, Any]:
    """The table and its partitions, without what differs: docs/HIVE.md has the list."""
    table = plain(catalog.raw(name))
    for field in ("createTime", "dbName"):
        del table[field]
    for parameter in STATISTICS | THEIR_VERSION:
        table["parameters"].pop(parameter, None)
    parts = [plain(part) for part in catalog._ask("get_partitions", catalog.database, name, -1)]
    for part in parts:
        del part["dbName"], part["createTime"]
        part["parameters"] = {k: v for k, v in part.get("parameters", {}).items() if k not in STATISTICS}
    return {"table": table, "partitions": sorted(parts, key=lambda part: part["values"])}


def differences(ours: Any, theirs: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Where two values differ: ours, theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = sorted(ours.keys() | theirs.keys())
        inner = [differences(ours.get(key), theirs.get(key), f"{path}.{key}") for key in keys]
        return {name: found for each in inner for name, found in each.items()}
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        inner = [differences(*pair, f"{path}[{number}]") for number, pair in enumerate(zip(ours, theirs, strict=True))]
        return {name: found for each in inner for name, found in each.items()}
    return {} if ours == theirs else {path: (ours, theirs)}


def names_of(catalog: Catalog) -> set[str]:
    return {name for name in ("trips", "trips_ro", "trips_rt") if catalog.has(name)}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_registered_is_what_apache_hudi_registers(
    metastore: HiveMetastore, hudi_by_name: HudiPeer, tmp_path: Path, name: str
) -> None:
    kind, path, tag = KINDS[name], tmp_path / "trips", name.replace(" ", "_").lower()
    theirs, ours = catalog_of(metastore, f"theirs_{tag}"), catalog_of(metastore, f"ours_{tag}")
    hudi_by_name.write(path, ROWS, hudi_options(metastore, theirs.database, kind))
    t = hoodie.open_table(path)
    spark = {"hoodie.meta_sync.spark.version": hudi_by_name.spark_version}
    hoodie.hive.register(t, metastore=metastore.uri, database=ours.database, options={**kind.sync, **spark})
    assert names_of(ours) == names_of(theirs) != set()
    for each in names_of(theirs):
        pair = objects(ours, each), objects(theirs, each)
        # When the file of the commit came. The JVM cuts off what is less than a millisecond, a float is rounded now and then.
        moments = [parse_instant(found["table"]["parameters"].pop(LAST_COMPLETION)) for found in pair]
        assert abs(moments[0] - moments[1]) <= timedelta(milliseconds=1)
        assert differences(*pair) == {}, each
    assert not hoodie.hive.register(
        t, metastore=metastore.uri, database=theirs.database, options={**kind.sync, **spark}
    ).changed


def test_each_goes_on_where_the_other_has_ended(
    metastore: HiveMetastore, hudi_by_name: HudiPeer, tmp_path: Path
) -> None:
    kind, path, catalog = KINDS["merge on read"], tmp_path / "trips", catalog_of(metastore, "in_turns")
    hudi = hudi_options(metastore, "in_turns", kind)
    ours = {key: value for key, value in hudi.items() if key.startswith(PREFIX)}

    def partitions() -> set[str]:
        (both,) = {frozenset(catalog.table(name).partitions) for name in ("trips_ro", "trips_rt", "trips")}
        return {city for (city,) in both}

    def rows(city: str, **more: Any) -> pa.Table:
        return ROWS.set_column(1, "city", pa.array([city] * 3))

    hudi_by_name.write(path, ROWS, hudi)
    t = hoodie.open_table(path, options=ours)
    t.upsert(rows("bern"))
    assert partitions() == {"rome", "oslo", "bern"}
    t.delete_partitions(["city=oslo"])
    assert partitions() == {"rome", "bern"}
    hudi_by_name.write(path, rows("lima").append_column("tip", pa.array([0.5] * 3)), hudi)
    assert partitions() == {"rome", "bern", "lima"}
    gone = {
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "city=rome",
    }
    hudi_by_name.write(path, rows("rome"), {**hudi, **gone})
    t.upsert(rows("kiel").append_column("tip", pa.array([0.5] * 3)))
    assert partitions() == {"bern", "lima", "kiel"}
    found = catalog.table("trips_rt")
    assert all(columns["tip"] == "double" for columns in found.partition_columns_of_files.values())
    assert hoodie.hive.register(t).changed is False


def test_apache_hudi_reads_both_views_by_the_names_registered_here(
    metastore: HiveMetastore, hudi_by_name: HudiPeer, tmp_path: Path
) -> None:
    schema = {"id": "string", "city": "string", "ts": "int64"}
    for style in ("true", "false"):
        options = {"hoodie.datasource.write.hive_style_partitioning": style}
        t = hoodie.create_table(
            tmp_path / style,
            schema,
            record_key="id",
            partition_by="city",
            ordering="ts",
            table_type="MERGE_ON_READ",
            options=options,
        )
        name = f"trips_{style}"
        enabled = {
            f"{PREFIX}enable": "true",
            f"{PREFIX}metastore.uris": metastore.uri,
            f"{PREFIX}database": "read_by_hudi",
        }
        t = hoodie.open_table(t.uri, options={**enabled, f"{PREFIX}table": name})
        t.upsert([{"id": "a", "city": "rome", "ts": 1}, {"id": "b", "city": "oslo", "ts": 1}])
        t.upsert([{"id": "a", "city": "rome", "ts": 2}])
        for suffix, query in (("_rt", "snapshot"), ("_ro", "read_optimized"), ("", "snapshot")):
            for where in (None, "city = 'rome'"):
                condition = f" where {where}" if where else ""
                found = hudi_by_name.sql(f"select id, city, ts from read_by_hudi.{name}{suffix}{condition}")
                expected = t.scan(columns=["id", "city", "ts"], where=where, query=query).to_arrow()
                assert sorted(found.rows, key=str) == sorted(rows_of(expected), key=str)
                assert len(found.rows) == (1 if where else 2)


def test_a_real_metastore_takes_all_that_the_one_in_memory_took(metastore: HiveMetastore) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(ROOT / "tests" / "hive")]
    environment = {**os.environ, "HOODIE_TEST_HIVE": metastore.uri}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HUNG_S, check=False
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
