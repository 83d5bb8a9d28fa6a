"""Dropping Apache Hudi's metadata table before a commit of ours."""

import logging
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.properties import parse_properties
from hoodie.model.names import METADATA_TABLE, PROPERTIES, PROPERTIES_BACKUP
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.table import open_at
from hoodie.txn.metadata_table import drop_metadata_table

TEXT = b"""#Updated at 2026-11-21T07:53:08Z
hoodie.table.name=trips
hoodie.table.metadata.partitions=files,column_stats
hoodie.some.key.of.theirs=a\\:b
hoodie.table.metadata.partitions.inflight=record_index
hoodie.table.version=6
"""
KEPT = {"hoodie.table.name": "trips", "hoodie.some.key.of.theirs": "a:b", "hoodie.table.version": "6"}


def stored(text=TEXT, *, folder=True, path=PROPERTIES):
    storage = MemoryStorage()
    storage.create_new(path, text)
    if folder:
        storage.create_new(f"{METADATA_TABLE}/.hoodie/hoodie.properties", b"x=y\n")
        storage.create_new(f"{METADATA_TABLE}/files/f.hfile", b"...")
    return storage


def properties(storage):
    return parse_properties(storage.read(PROPERTIES).decode())


def test_its_keys_and_its_folder_go_and_all_else_stays(caplog):
    storage = stored()
    with caplog.at_level(logging.WARNING, logger="hoodie"):
        assert drop_metadata_table(storage)
    assert properties(storage) == KEPT
    assert not storage.exists(METADATA_TABLE)
    assert [r.getMessage().count("files,column_stats, record_index") for r in caplog.records] == [1]


def test_a_table_without_one_is_not_touched(caplog):
    storage = FaultStorage(stored(b"hoodie.table.name=trips\nhoodie.table.metadata.partitions=\n", folder=False))
    assert not drop_metadata_table(storage)
    assert list(storage.trace) == []
    assert caplog.records == []


def test_one_in_the_making_goes_too():
    storage = stored(b"hoodie.table.name=trips\nhoodie.table.metadata.partitions.inflight=files\n")
    assert drop_metadata_table(storage)
    assert properties(storage) == {"hoodie.table.name": "trips"}


@pytest.mark.parametrize("moment", ["before", "torn", "after"])
@pytest.mark.parametrize("at", [1, 2])
def test_readers_never_trust_a_half_deleted_one(at, moment):
    """Killed at any step, the keys are whole or gone; they are never there without the whole folder."""
    inner = stored()
    storage = FaultStorage(inner, [Fault(at, moment)])
    with pytest.raises(InjectedFault):
        drop_metadata_table(storage)
    left = len(inner.list(METADATA_TABLE, recursive=True))
    assert left == 2 or properties(inner) == KEPT
    drop_metadata_table(inner)
    assert properties(inner) == KEPT
    assert not inner.exists(METADATA_TABLE)


def test_properties_that_a_writer_is_replacing_are_read_from_their_backup():
    storage = stored(path=PROPERTIES_BACKUP)
    assert drop_metadata_table(storage)
    assert properties(storage) == KEPT


def test_the_checksum_file_of_hadoop_goes_with_the_old_properties(tmp_path):
    storage = LocalStorage(tmp_path)
    storage.create_new(PROPERTIES, TEXT)
    twin = tmp_path / ".hoodie" / ".hoodie.properties.crc"
    twin.write_bytes(b"crc\0")
    assert drop_metadata_table(storage)
    assert not twin.exists()


def test_a_write_without_it_drops_it_before_its_instant_is_there(golden):
    table = golden("v6_mdt_mor")
    storage = FaultStorage(LocalStorage(table.path))
    rows = open_at(storage).scan().to_arrow()
    open_at(storage, options={"hoodie.metadata.enable": "false"}).upsert(rows.slice(0, 3))
    calls = [f"{call.verb} {call.path}" for call in storage.trace]
    dropped = [calls.index(f"replace {PROPERTIES}"), calls.index(f"delete_folder {METADATA_TABLE}")]
    requested = next(n for n, call in enumerate(calls) if call.endswith(".deltacommit.requested"))
    assert dropped == sorted(dropped)
    assert dropped[-1] < requested
    assert "metadata.partitions" not in Path(table.path, PROPERTIES).read_text()
    assert hoodie.open_table(table.path).scan().to_arrow().num_rows == rows.num_rows


def test_one_made_while_we_wrote_is_dropped_before_the_commit(tmp_path):
    """Another writer's table services may build it between our start and our commit."""
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    table = hoodie.create_table(tmp_path, schema, record_key="id")

    class BuiltMeanwhile(LocalStorage):
        def move_all_new(self, moves):
            super().move_all_new(moves)
            text = self.read(PROPERTIES) + b"hoodie.table.metadata.partitions=files\n"
            super().replace(PROPERTIES, text)
            super().mkdirs(METADATA_TABLE)

    open_at(BuiltMeanwhile(tmp_path)).upsert(pa.table({"id": ["a"], "n": [1]}, schema=schema))
    assert "metadata.partitions" not in (tmp_path / PROPERTIES).read_text()
    assert not (tmp_path / METADATA_TABLE).exists()
    assert table.scan().count() == 1
