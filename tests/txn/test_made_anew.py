"""A handle outlives its table: the folder was deleted, and another table made in its place."""

import shutil
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import TableChangedError, TableNotFoundError
from hoodie.model.plans import Merger
from hoodie.options.mergers import register_merger
from hoodie.options.table import PROPERTY_OF, TableConfig
from hoodie.table import HoodieTable
from hoodie.txn.critical import require_same_table
from hoodie.txn.transaction import Transaction

ROWS = pa.table({"id": ["a", "b"], "k2": ["x", "x"], "part": ["1", "2"], "ts": [1, 1]})
PAYLOAD = "org.apache.hudi.common.model.PartialUpdateAvroPayload"

OTHERS = {
    "key": ("hoodie.table.recordkey.fields", {"record_key": "id,k2"}),
    "partition": ("hoodie.table.partition.fields", {"partition_by": "k2"}),
    "type": ("hoodie.table.type", {"table_type": "COPY_ON_WRITE"}),
    "ordering": ("hoodie.table.ordering.fields", {"ordering": "k2"}),
    "name": ("hoodie.table.name", {"name": "another"}),
    "folders": (
        "hoodie.datasource.write.hive_style_partitioning",
        {"options": {"hoodie.datasource.write.hive_style_partitioning": "true"}},
    ),
    "merging": (
        "hoodie.compaction.payload.class",
        {"options": {"hoodie.datasource.write.payload.class": PAYLOAD}},
    ),
    "delete marker": (
        "hoodie.payload.delete.",
        {"options": {"hoodie.payload.delete.field": "k2", "hoodie.payload.delete.marker": "X"}},
    ),
    "columns": ("hoodie.table.create.schema", {"schema": ROWS.schema.append(pa.field("more", pa.string()))}),
}

WRITES: dict[str, Callable[[HoodieTable], object]] = {
    "upsert": lambda table: table.upsert(ROWS),
    "insert": lambda table: table.insert(ROWS),
    "bulk_insert": lambda table: table.bulk_insert(ROWS),
    "delete": lambda table: table.delete(ROWS),
    "delete where": lambda table: table.delete(where="id = 'a'"),
    "insert_overwrite": lambda table: table.insert_overwrite(ROWS),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(ROWS),
    "delete_partitions": lambda table: table.delete_partitions(["*"]),
    "schedule_compaction": lambda table: table.schedule_compaction(),
}


def made(path, **more):
    asked = {
        "record_key": "id",
        "partition_by": "part",
        "ordering": "ts",
        "table_type": "MERGE_ON_READ",
        "schema": ROWS.schema,
    }
    return hoodie.create_table(path, **(asked | more))


def made_anew(path, **more):
    """A handle on a table that is gone, and the one that stands there now, with as many rows."""
    old = made(path)
    old.upsert(ROWS)
    shutil.rmtree(path)
    new = made(path, **more)
    new.upsert(ROWS)
    return old, new


@pytest.mark.parametrize("change", OTHERS)
def test_a_write_by_properties_that_are_others_now_is_refused_by_their_name(tmp_path, change):
    named, more = OTHERS[change]
    if change == "columns":
        old = made(tmp_path / "t")
        shutil.rmtree(tmp_path / "t")
        new = made(tmp_path / "t", **more)
    else:
        old, new = made_anew(tmp_path / "t", **more)
    before, timeline = new.scan().to_arrow(), new.timeline
    with pytest.raises(TableChangedError, match=f"(?s){named}.*open the table again"):
        old.upsert(ROWS)
    assert new.scan().to_arrow() == before
    assert new.timeline == timeline


@pytest.mark.parametrize("write", WRITES)
def test_no_way_of_writing_goes_by_old_properties(tmp_path, write):
    old, new = made_anew(tmp_path / "t", record_key="id,k2")
    timeline = new.timeline
    with pytest.raises(TableChangedError, match=r"recordkey\.fields was 'id', and is 'id,k2' now"):
        WRITES[write](old)
    assert new.timeline == timeline


@pytest.mark.parametrize("step", ["start", "commit"])
def test_a_table_that_is_made_anew_while_a_write_is_at_work_is_not_written(tmp_path, monkeypatch, step):
    old = made(tmp_path / "t")
    was = getattr(Transaction, step)

    def made_anew_before(*args, **more):
        monkeypatch.setattr(Transaction, step, was)
        shutil.rmtree(tmp_path / "t")
        made(tmp_path / "t", record_key="id,k2").upsert(ROWS)
        return was(*args, **more)

    monkeypatch.setattr(Transaction, step, made_anew_before)
    with pytest.raises(TableChangedError, match="recordkey"):
        old.upsert(ROWS)
    new = hoodie.open_table(tmp_path / "t")
    assert new.scan().count() == 2
    assert len(list(new.timeline)) == 1


def test_the_same_table_made_anew_is_written(tmp_path):
    old, new = made_anew(tmp_path / "t")
    old.upsert(ROWS)
    assert new.scan().count() == 2


def test_a_table_that_is_gone_stays_gone(tmp_path):
    old = made(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        old.upsert(ROWS)
    assert not (tmp_path / "t").exists()


def test_every_property_that_rules_writing_is_a_field_of_the_configuration():
    assert set(PROPERTY_OF) <= set(TableConfig.__dataclass_fields__)


def test_a_merger_that_was_registered_after_the_table_was_opened_is_no_other_one(tmp_path):
    register_merger("kept", lambda older, newer: newer)
    config = made(tmp_path / "t", options={"hoodie.python.merger": "kept"}).config
    unregistered = replace(config, rule=replace(config.rule, merger=Merger("kept", None)), raw={**config.raw, "x": "1"})
    require_same_table(unregistered, config)
