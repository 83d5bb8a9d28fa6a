"""A class of Apache Hudi that moved is known by each of its names, in options and in tables."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import OptionError
from hoodie.format.layout import LAYOUTS
from hoodie.model.enums import MergeMode, PartitionFilter, TableVersion
from hoodie.options.class_names import one_name
from hoodie.options.compaction import CompactionOptions
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.merging import PAYLOADS, merge_rule
from hoodie.options.option import key_of
from hoodie.options.parse import parse_write_options
from hoodie.options.table_options import KEYGEN_CLASS, PAYLOAD_CLASS

LOCKS, STRATEGIES = key_of(ConcurrencyOptions, "lock_provider"), key_of(CompactionOptions, "strategies")
EXTRACTOR = key_of(HiveSyncOptions, "extractor")
HUDI = "org.apache.hudi."
DMS = f"{HUDI}common.model.AWSDmsAvroPayload"
OLDER = [
    (PAYLOAD_CLASS, f"{HUDI}payload.AWSDmsAvroPayload", DMS),
    (PAYLOAD_CLASS, f"{HUDI}OverwriteWithLatestAvroPayload", f"{HUDI}common.model.OverwriteWithLatestAvroPayload"),
    (PAYLOAD_CLASS, "com.uber.hoodie.OverwriteWithLatestAvroPayload", f"{HUDI}common.model.OverwriteWithLatestAvroPayload"),
    (KEYGEN_CLASS, f"{HUDI}SimpleKeyGenerator", f"{HUDI}keygen.SimpleKeyGenerator"),
    (KEYGEN_CLASS, f"{HUDI}ComplexKeyGenerator", f"{HUDI}keygen.ComplexKeyGenerator"),
    (KEYGEN_CLASS, "com.uber.hoodie.NonpartitionedKeyGenerator", f"{HUDI}keygen.NonpartitionedKeyGenerator"),
    (KEYGEN_CLASS, f"{HUDI}utilities.keygen.TimestampBasedKeyGenerator", f"{HUDI}keygen.TimestampBasedKeyGenerator"),
    (LOCKS, f"{HUDI}hive.HiveMetastoreBasedLockProvider", f"{HUDI}hive.transaction.lock.HiveMetastoreBasedLockProvider"),
    (LOCKS, f"{HUDI}core.transaction.lock.InProcessLockProvider", f"{HUDI}client.transaction.lock.InProcessLockProvider"),
    (STRATEGIES, f"{HUDI}io.compact.strategy.BoundedIOCompactionStrategy", "bounded_io"),
    (STRATEGIES, "com.uber.hoodie.io.compact.strategy.DayBasedCompactionStrategy", "day_based"),
    (EXTRACTOR, "com.uber.hoodie.hive.MultiPartKeysValueExtractor", f"{HUDI}hive.MultiPartKeysValueExtractor"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "older", "now"), OLDER, ids=[older for _, older, _ in OLDER])
def test_an_older_name_means_the_same(key, older, now):
    assert key.parse(older) == key.parse(now)


@pytest.mark.parametrize("name", [*PAYLOADS, "com.acme.Mine", "org.apache.hudi.keygen.SimpleKeyGenerator", ""])
def test_the_newest_name_stays(name):
    assert one_name(name) == name


def test_a_table_keeps_the_newest_name_and_is_read_by_the_older(tmp_path):
    job = {"hoodie.datasource.write.payload.class": f"{HUDI}payload.AWSDmsAvroPayload"}
    table = hoodie.create_table(tmp_path / "t", {"id": "int64", "Op": "string"}, record_key="id", options=job)
    path = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    text = path.read_text()
    assert f"hoodie.compaction.payload.class={DMS}\n" in text
    table.upsert(pa.table({"id": [1, 2], "Op": ["I", "I"]}))
    path.write_text("".join(
        line for line in text.replace(DMS, f"{HUDI}payload.AWSDmsAvroPayload").splitlines(True) if "checksum" not in line
    ))  # fmt: skip
    again = hoodie.open_table(tmp_path / "t")
    again.upsert(pa.table({"id": [2], "Op": ["D"]}), options=job)
    assert again.scan(columns=["id"]).to_arrow().to_pylist() == [{"id": 1}]


@pytest.mark.parametrize("version", [TableVersion.V6, TableVersion.V8])
def test_merge_rules_go_by_any_name(version):
    rules = [
        merge_rule({"hoodie.compaction.payload.class": name}, layout=LAYOUTS[version], ordering=())
        for name in (DMS, f"{HUDI}payload.AWSDmsAvroPayload")
    ]
    assert rules[0] == rules[1]
    assert rules[0].mode is MergeMode.COMMIT_TIME_ORDERING


@pytest.mark.parametrize(
    ("name", "mode"),
    [("RecentDays", PartitionFilter.RECENT_DAYS), ("SelectedPartitions", PartitionFilter.SELECTED_PARTITIONS)],
)
def test_clustering_plans_by_partitions_are_a_filter_mode_by_now(name, mode):
    strategy = "hoodie.clustering.plan.strategy."
    bounds = {f"{strategy}cluster.begin.partition": "a", f"{strategy}cluster.end.partition": "b"}
    for engine in ("Spark", "Java"):
        older = {f"{strategy}class": f"{HUDI}client.clustering.plan.strategy.{engine}{name}ClusteringPlanStrategy"}
        assert parse_write_options(older | bounds).write.clustering.partition_filter is mode


@pytest.mark.parametrize("name", ["EmptyHoodieRecordPayload", "common.model.EmptyHoodieRecordPayload"])
def test_an_upsert_with_an_empty_payload_is_a_delete(tmp_path, name):
    table = hoodie.create_table(tmp_path / "t", {"id": "int64", "ts": "int64"}, record_key="id", ordering="ts")
    table.upsert({"id": [1, 2], "ts": [5, 5]})
    payload = {"hoodie.datasource.write.payload.class": HUDI + name}
    with pytest.raises(OptionError, match=r"payload\.class says delete, but upsert\(\) was called"):
        table.upsert({"id": [1], "ts": [9]}, options=payload)
    with pytest.raises(OptionError, match="deletes, and operation insert does not"):
        parse_write_options({**payload, "hoodie.datasource.write.operation": "insert"})
    assert parse_write_options(payload).table.payload is None
    table.delete({"id": [1], "ts": [1]}, options=payload)
    assert table.scan(columns=["id"]).to_arrow().to_pylist() == [{"id": 2}]
