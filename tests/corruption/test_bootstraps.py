"""Every kind of damage to a table that was made in place: to the files it was made of, its skeletons and its index."""

import errno
import re
import shutil

import pytest

import hoodie
import hoodie.filegroup.skeleton
import hoodie.repair.check_sources
from hoodie.errors import CorruptFileError, HoodieError
from hoodie.filegroup.skeleton import source_folder
from hoodie.model.findings import Level
from hoodie.model.names import BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE
from hoodie.repair.properties_repair import plan_properties
from hoodie.storage.local import LocalStorage
from hoodie.view.bootstrap import read_index
from tests.corruption.bootstraps import DAMAGES, KNOWN, make, of_equal_size, source
from tests.corruption.damages import PROPERTIES, with_column
from tests.corruption.mending import Refusing, doctor, mend, mend_all, read, rows

NEW = {"id": "rome00", "city": "rome", "ts": 9, "fare": -1.0}


@pytest.fixture(scope="module", params=[("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 9)], ids=["v6-mor", "v9-cow"])
def kept(request, tmp_path_factory):
    """Where a table and its source are, whose paths the index names, and a copy of both."""
    table_type, version = request.param
    root = tmp_path_factory.mktemp("in place") / "root"
    make(root, table_type=table_type, version=version)
    copy = shutil.copytree(root, root.with_name("copy"))
    return root, copy, read(root / "table"), {"hoodie.table.version": str(version)}


@pytest.fixture
def root(kept):
    root, copy, *_ = kept
    shutil.rmtree(root)
    return shutil.copytree(copy, root)


def test_the_table_is_whole_before_anything_is_done(root, kept, capsys):
    assert doctor(root / "table", capsys) == (0, [])
    assert hoodie.open_table(root / "table").validate(deep=True)
    assert len(kept[2]) == 16


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_mended_by_what_the_doctor_prints(name, root, kept, capsys):
    damage, path = DAMAGES[name], root / "table"
    _, copy, expected, version = kept
    damage.do(root)
    answer = read(path)
    assert isinstance(answer, HoodieError) or (answer == expected) is not damage.is_silent

    status, found = doctor(path, capsys)
    bad = [each for each in found if each["level"] != "note"]
    assert status == 1
    assert any(re.search(damage.names, each["what"]) for each in bad), bad
    assert all(each["mend"] for each in bad)
    assert "PATH" not in str(bad)
    if not damage.values:
        table = hoodie.open_table(path)
        assert not table.validate(deep=True)
        assert bool(table.validate()) is damage.only_deep
        assert table.doctor(deep=False).is_healthy is damage.only_deep

    assert mend_all(path, (root, copy), bad, {**damage.values, **version}, capsys) == (0, [])
    table = hoodie.open_table(path)
    assert table.validate(deep=True)
    assert rows(table) == expected
    assert table.upsert([NEW]).updated == 1
    assert hoodie.open_table(path).scan().count() == len(expected)


def test_a_source_file_with_other_values_of_the_same_keys_is_noted(root, capsys):
    of_equal_size(with_column("fare", lambda fares: [each + 1 for each in fares]))(root)
    status, (note,) = doctor(root / "table", capsys)
    assert (status, note["level"], note["kind"]) == (0, "note", "changed-sources")
    assert "source/rome/0.parquet" in note["what"]


def test_rows_that_were_taken_from_another_source_file_are_found(root, capsys):
    of_equal_size(with_column("id", lambda ids: [f"{each}x" for each in ids]))(root)
    hoodie.open_table(root / "table").upsert([NEW])
    hoodie.open_table(root / "table").cluster()
    assert any(each["level"] == "damage" for each in doctor(root / "table", capsys)[1])


def test_a_source_that_this_user_may_not_read_is_named(root, monkeypatch):
    def refusing(table, folder):
        place = source_folder(table, folder).uri
        return Refusing(place, "" if folder.endswith("rome") else None, errno.EACCES)

    for module in (hoodie.filegroup.skeleton, hoodie.repair.check_sources):
        monkeypatch.setattr(module, "source_folder", refusing)
    for deep in (False, True):
        found = hoodie.open_table(root / "table").doctor(deep=deep).findings
        damage = [each for each in found if each.level is Level.DAMAGE]
        path = source(root).parent
        assert [(each.path, each.mend.rstrip("/")) for each in damage] == [
            (None, f"Give this user permission to read {path}")
        ]


def test_a_write_does_not_undo_a_bootstrap_that_lost_its_commit(root, kept, capsys):
    (commit,) = (root / "table/.hoodie").rglob("00000000000001*commit")
    content = commit.read_bytes()
    commit.unlink()
    assert [each["kind"] for each in doctor(root / "table", capsys)[1]] == ["lost-completions"]
    with pytest.raises(CorruptFileError, match="was written after its bootstrap"):
        hoodie.open_table(root / "table").upsert([NEW])
    commit.write_bytes(content)
    assert read(root / "table") == kept[2]


def test_lost_properties_come_back_with_the_place_of_the_source(root, kept):
    (root / "table" / PROPERTIES).unlink()
    plan = plan_properties(LocalStorage(root / "table"), {**KNOWN, **kept[3]})
    assert ("hoodie.bootstrap.base.path", str(root / "source")) in [(each.key, each.value) for each in plan.properties]


@pytest.mark.parametrize(
    "name", ["the index is missing", "the index names another folder", "the index by files is cut"]
)
def test_a_file_of_the_index_is_written_from_the_other_one_as_it_was(name, root, kept, capsys):
    DAMAGES[name].do(root)
    (first, *_) = doctor(root / "table", capsys)[1]
    assert first["kind"] == "bootstrap-index"
    mend(root / "table", (root, kept[1]), first, {}, capsys)
    for path in (BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE):
        before, after = (read_index(LocalStorage(each / "table"), path) for each in (kept[1], root))
        assert {*after.mapped} == {*before.mapped}
        assert after[:2] == before[:2]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("a source file is missing", ["sources"]),
        ("a source file is zeros", ["source-rows"]),
        ("a source file with other keys", ["source-rows"]),
        ("the index lacks a file", ["bootstrap-index"]),
    ],
)
def test_one_damage_is_one_finding(name, kinds, root, capsys):
    DAMAGES[name].do(root)
    found = doctor(root / "table", capsys)[1]
    assert [each["kind"] for each in found if each["level"] != "note"] == kinds
