"""A metadata table that is wrong is found, and what is said to mend it mends it."""

import shutil

import pytest

import hoodie
from hoodie.model.findings import Level, RepairKind
from hoodie.model.names import HOODIE, METADATA_TABLE, PROPERTIES
from hoodie.storage.cache import Cache
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from tests.golden_tables import copy_golden
from tests.memory_tables import Input, batch, new_table, opened
from tests.public_tables import public_table
from tests.rows import rows_of

BY_FOLDERS = {"hoodie.metadata.enable": "false"}


def cut(path, pattern):
    (file,) = (path / METADATA_TABLE).glob(pattern)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_newest(path, pattern):
    file = max((path / METADATA_TABLE).glob(pattern))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def lose(path, pattern):
    for file in (path / METADATA_TABLE).glob(pattern):
        file.unlink()


def go_stale(path):
    shutil.copytree(path / HOODIE, path.parent / "copy")
    table = opened(LocalStorage(str(path)), options=BY_FOLDERS, cache=Cache())
    table.delete(table.scan().to_arrow().slice(0, 1))
    shutil.copytree(path.parent / "copy" / "metadata", path / METADATA_TABLE)
    shutil.copy(path.parent / "copy" / "hoodie.properties", path / PROPERTIES)


DAMAGE = {
    "cut base file": lambda path: cut(path, "files/*.hfile"),
    "cut log": lambda path: cut_newest(path, "files/.*.log.*"),
    "no files": lambda path: lose(path, "files/*"),
    "no properties": lambda path: lose(path, ".hoodie/hoodie.properties"),
    "lost commit": lambda path: lose(path, ".hoodie/**/2*.deltacommit"),
    "stale": go_stale,
    "not there": lambda path: shutil.rmtree(path / METADATA_TABLE),
}


def found(path):
    doctor = opened(LocalStorage(str(path)), cache=Cache()).doctor()
    return {each.kind: each for each in doctor.findings if each.level is Level.DAMAGE}


@pytest.mark.parametrize("name", ["v6_mdt_cow", "v6_mdt_mor", "v9_mdt_mor"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_and_the_repair_drops_it(name, damage, tmp_path):
    path = copy_golden(name, tmp_path).path
    DAMAGE[damage](path)
    expected = rows_of(opened(LocalStorage(str(path)), options=BY_FOLDERS, cache=Cache()).scan().to_arrow())
    assert "metadata-table --yes` drops it" in found(path)["metadata-damage"].mend
    table = opened(LocalStorage(str(path)), cache=Cache())
    assert [each.kind for each in table.repair("metadata-table", dry_run=False).repairs] == [RepairKind.METADATA_TABLE]
    assert not (path / METADATA_TABLE).exists()
    assert "metadata" not in (path / PROPERTIES).read_text(encoding="utf-8").replace("metafile", "")
    assert not found(path)
    assert rows_of(opened(LocalStorage(str(path)), cache=Cache()).scan().to_arrow()) == expected


RIGHT = ("v6_mdt_cow", "v6_mdt_mor", "v9_mdt_mor")
PUBLIC = ("hudi-v6-table-mor", "hudi_comprehensive_types_v6_mor", "hudi-v8-table-mor", "hudi-v9-table-mor")


@pytest.mark.parametrize("name", [*RIGHT, *PUBLIC])
def test_one_that_is_right_is_let_alone(name, tmp_path):
    path = (copy_golden if name in RIGHT else public_table)(name, tmp_path).path
    assert "metadata-damage" not in found(path)
    assert not opened(LocalStorage(str(path)), cache=Cache()).repair("metadata-table").repairs


def test_the_doctor_says_what_the_next_write_drops(tmp_path):
    """Of a metadata table without other indexes than those that writes keep up that is nothing."""
    path = copy_golden("v6_mdt_cow", tmp_path).path

    def noted():
        findings = opened(LocalStorage(str(path)), cache=Cache()).doctor().findings
        return [each.what for each in findings if each.kind == "metadata-table"]

    assert noted() == []
    text = (path / PROPERTIES).read_text()
    (path / PROPERTIES).write_text(text.replace("partitions=files", "partitions=files,bloom_filters"))
    assert noted() == []
    (path / PROPERTIES).write_text(text.replace("partitions=files", "partitions=files,secondary_index_x"))
    assert ["secondary_index_x" in each for each in noted()] == [True]
    (path / PROPERTIES).write_text(text.replace("metadata.partitions=files", "metadata.partitions="))
    assert ["no metadata table" in each for each in noted()] == [True]


def test_a_table_that_was_opened_before_it_had_one_is_told_nothing(tmp_path):
    table = hoodie.create_table(str(tmp_path / "t"), {"id": "string", "ts": "int64"}, record_key="id", ordering="ts")
    table.upsert([{"id": "a", "ts": 1}], {"hoodie.metadata.enable": "true"})
    assert (tmp_path / "t" / METADATA_TABLE).is_dir()
    assert not [finding for finding in table.doctor().findings if "metadata table" in str(finding)]


@pytest.mark.parametrize("undo", ["restore", "rollback"])
def test_while_a_restore_that_died_stands_only_that_is_found(undo):
    """Whoever ends it brings the metadata table along."""
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock, {"hoodie.metadata.enable": "true"}, cache=Cache())
    old, new = (table.upsert(batch([Input("k", "a", turn, turn)])).instant for turn in range(2))
    dying = opened(FaultStorage(storage, [Fault(4, "after")]), clock, cache=Cache())
    with pytest.raises(InjectedFault):
        getattr(dying, undo)(old if undo == "restore" else new)
    found = [each for each in opened(storage, clock, cache=Cache()).doctor().findings if each.level is not Level.NOTE]
    assert [(each.kind, undo in each.what) for each in found] == [("dead-writes", True)]
    table.upsert(batch([Input("k", "a", 2, 2)]))
    assert opened(storage, clock, cache=Cache()).doctor(deep=True).is_healthy
