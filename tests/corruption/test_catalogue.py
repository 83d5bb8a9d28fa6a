"""Every kind of damage: a query gives the right rows or one error, the doctor names it, and what the doctor prints mends it."""

import errno
import os
import re
import shlex
import shutil

import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import HoodieError, StorageError
from hoodie.model.findings import Level
from hoodie.storage.local import LocalStorage
from tests.corruption.catalogue import DAMAGES
from tests.corruption.damages import (
    FUTURE,
    OLD_S,
    PROPERTIES,
    base,
    cut,
    findings,
    later,
    make,
    newest,
    replaced,
)
from tests.golden_tables import copy_golden
from tests.memory_tables import opened

ROUNDS = 5
"""A way out may have several steps: each mends what the doctor says then."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "table"
    make(path)
    return path


@pytest.fixture(scope="module")
def states(whole):
    """The rows as they are, and as they were before the newest commit."""
    table = hoodie.open_table(whole)
    return [rows(table), *(rows(table, as_of=table.timeline.commits[at].time) for at in (-2, -3))]


def rows(table, **query):
    return sorted(table.scan(**query).to_arrow().to_pylist(), key=repr)


def read(path):
    """The rows of a snapshot, or the error."""
    try:
        return rows(hoodie.open_table(path))
    except HoodieError as error:
        return error


def doctor(path, capsys):
    capsys.readouterr()
    status = main(["doctor", str(path), "--json"])
    out = capsys.readouterr()
    assert out.out, out.err
    return status, findings(out.out)


def mend(path, whole, finding, values, capsys):
    """Do what the doctor says."""
    action = finding["mend"]
    assert action, finding
    command = re.search(r"`hoodie ([^`]*)`", action)
    if command is not None and not action.startswith("Restore "):
        words = shlex.split(command[1])
        words = [re.sub(r"^(.*)=VALUE$", lambda found: f"{found[1]}={values[found[1]]}", word) for word in words]
        capsys.readouterr()
        assert main(words) == 0, (words, capsys.readouterr())
    elif action.startswith("Restore "):
        assert "from a copy" in action
        shutil.rmtree(path)
        shutil.copytree(whole, path)
    else:
        assert action.startswith(("Delete ", "Remove ")), action
        found = path / finding["path"]
        shutil.rmtree(found) if found.is_dir() else found.unlink()


def test_the_table_is_whole_before_anything_is_done(whole, capsys):
    status, found = doctor(whole, capsys)
    assert (status, [each for each in found if each["level"] != "note"]) == (0, [])
    assert hoodie.open_table(whole).validate(deep=True)


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_mended_by_what_the_doctor_prints(name, whole, states, tmp_path, capsys):
    damage = DAMAGES[name]
    path = tmp_path / "the table"  # a path that a shell has to have quoted
    shutil.copytree(whole, path)
    damage.do(path)

    answer = read(path)
    assert isinstance(answer, HoodieError) or (answer == states[0]) is not damage.is_silent
    if isinstance(answer, HoodieError):
        assert damage.is_damage
        assert str(error := answer).count("\n") < 8, error

    status, found = doctor(path, capsys)
    bad = [each for each in found if each["level"] != "note"]
    assert status == 1
    assert any(re.search(damage.names, each["what"]) for each in bad), bad
    assert all(each["mend"] for each in bad)
    assert "PATH" not in str(bad)
    if damage.is_damage and not damage.values:
        table = hoodie.open_table(path)
        assert not table.validate(deep=True)
        assert bool(table.validate()) is damage.only_deep
        assert table.doctor(deep=False).is_healthy is damage.only_deep

    for _ in range(ROUNDS):
        mend(path, whole, bad[0], damage.values, capsys)
        status, found = doctor(path, capsys)
        bad = [each for each in found if each["level"] != "note"]
        if not bad:
            break
    assert (status, bad) == (0, [])
    table = hoodie.open_table(path)
    assert table.validate(deep=True)
    assert rows(table) == states[damage.undoes]
    table.upsert([{"id": 100, "city": "rome", "ts": 9, "fare": 9.0}])
    assert table.scan().count() == len(states[damage.undoes]) + 1


def begun_clustering(table, content):
    """A clustering in its two pending states; None: the state is not there."""
    time = later(max((table / ".hoodie/timeline").glob("2*")).name[:17])
    for state, data in zip(("requested", "inflight"), content, strict=True):
        if data is not None:
            path = table / f".hoodie/timeline/{time}.clustering.{state}"
            path.write_bytes(data)
            os.utime(path, (OLD_S, OLD_S))


OF_VERSION_9 = {
    "a clustering plan is garbage": (
        lambda t: begun_clustering(t, (b"garbage", None)),
        "clustering.requested does not decode",
        "command",
    ),
    "a clustering plan is empty": (
        lambda t: begun_clustering(t, (b"", b"")),
        "clustering.requested is empty",
        "command",
    ),
    "a clustering was begun and its plan is gone": (
        lambda t: begun_clustering(t, (None, b"")),
        r"the plan of \d+.clustering is gone",
        "command",
    ),
    "another folder of the timeline": (
        lambda t: replaced(t / PROPERTIES, "timeline.path=timeline", "timeline.path=nope"),
        "nope, which has no instant",
        "command",
    ),
    "a folder of the timeline outside of the table": (
        lambda t: replaced(t / PROPERTIES, "timeline.path=timeline", "timeline.path=../.."),
        "timeline.path",
        "command",
    ),
    "the timeline is lost": (lambda t: shutil.rmtree(t / ".hoodie/timeline"), "has no instant, and", "copy"),
    "the folder of metadata is lost": (lambda t: shutil.rmtree(t / ".hoodie"), "there is no .hoodie, and", "copy"),
    "the folder of metadata has another name": (
        lambda t: (t / ".hoodie").rename(t / ".Hoodie"),
        "there is no .hoodie, and",
        "copy",
    ),
    "a base file is missing": (lambda t: base(t, "a").unlink(), r"a/.*\.parquet", "copy"),
    "a folder without partition metadata": (
        lambda t: (t / "a/.hoodie_partition_metadata").unlink(),
        "a/.hoodie_part",
        "command",
    ),
    "a wrong record key": (
        lambda t: replaced(t / PROPERTIES, "recordkey.fields=id", "recordkey.fields=nope"),
        "'nope'",
        "command",
    ),
    "a completion of 2099": (lambda t: renamed_newest(t, FUTURE), "completed in the future", "copy"),
    "a completion that is no moment": (
        lambda t: renamed_newest(t, "20269999999999999"),
        "no time of completion",
        "copy",
    ),
}


def renamed_newest(table, completion):
    path = max((table / ".hoodie/timeline").glob("*_*commit"))
    path.rename(path.with_name(f"{path.name[:17]}_{completion}{path.suffix}"))


@pytest.mark.parametrize("name", OF_VERSION_9)
def test_a_table_of_version_9_is_mended_as_well(name, tmp_path, capsys):
    do, names, way = OF_VERSION_9[name]
    whole, path = copy_golden("v9_mor", tmp_path / "whole").path, tmp_path / "table"
    shutil.copytree(whole, path)
    expected = read(path)
    do(path)
    _, found = doctor(path, capsys)
    bad = next(each for each in found if each["level"] == "damage")
    assert re.search(names, bad["what"])
    assert ("from a copy" in bad["mend"]) is (way == "copy")
    mend(path, whole, bad, {}, capsys)
    status, found = doctor(path, capsys)
    assert status == 0, found
    assert read(path) == expected


def test_on_version_9_too_a_newest_commit_that_is_cut_is_rolled_back(tmp_path, capsys):
    path = copy_golden("v9_mor", tmp_path).path
    before = hoodie.open_table(path).timeline.commits[-2].time
    expected = rows(hoodie.open_table(path), as_of=before)
    cut(max((path / ".hoodie/timeline").glob("*commit")))
    status, found = doctor(path, capsys)
    bad = next(each for each in found if each["level"] == "damage")
    assert (status, "rollback" in bad["mend"]) == (1, True)
    mend(path, path, bad, {}, capsys)
    status, found = doctor(path, capsys)
    assert status == 0, found
    assert rows(hoodie.open_table(path)) == expected


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("content", [b"", b"garbage", b"null"])
def test_a_hash_ring_that_does_not_decode_is_named(version, content, tmp_path, capsys):
    path, whole = tmp_path / "table", tmp_path / "whole"
    options = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.write.table.version": version,
    }
    table = hoodie.create_table(path, record_key="id", table_type="MERGE_ON_READ", options=options)
    table.upsert([{"id": n} for n in range(4)])
    shutil.copytree(path, whole)
    ring = next((path / ".hoodie/.bucket_index").rglob("*.hashing_meta"))
    ring.write_bytes(content)
    status, found = doctor(path, capsys)
    assert (status, [each["kind"] for each in found]) == (1, ["hash-rings"])
    mend(path, whole, found[0], {}, capsys)
    assert doctor(path, capsys)[0] == 0
    hoodie.open_table(path, options=options).upsert([{"id": 9}])
    assert hoodie.open_table(path).scan().count() == 5


def test_rows_that_a_global_index_left_in_their_folder_are_no_damage(tmp_path):
    options = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    table = hoodie.create_table(tmp_path, record_key="id", partition_by="city", options=options)
    table.upsert([{"id": n, "city": "oslo"} for n in range(3)])
    table.upsert([{"id": n, "city": "bern"} for n in range(3, 6)])
    table.upsert([{"id": n, "city": "rome"} for n in range(3)], options)
    assert table.partitions() == ("bern", "oslo")
    assert hoodie.open_table(tmp_path).doctor(deep=True).findings == ()
    hoodie.open_table(tmp_path, options=options).upsert([{"id": 6, "city": "bern"}])


def test_a_folder_that_is_a_link_is_named_with_what_to_do(whole, tmp_path, capsys):
    path = tmp_path / "table"
    shutil.copytree(whole, path)
    (path / "rome").rename(tmp_path / "rome")
    (path / "rome").symlink_to(tmp_path / "rome")
    status, found = doctor(path, capsys)
    assert status == 1
    assert (found[0]["what"].partition(":")[0], found[0]["mend"]) == (
        "rome is a symbolic link to a folder",
        "Replace it by the folder itself",
    )
    assert not hoodie.open_table(path).validate()


def test_properties_are_not_set_to_columns_that_are_not_there(whole, tmp_path, capsys):
    path = tmp_path / "table"
    shutil.copytree(whole, path)
    replaced(path / PROPERTIES, "recordkey.fields=id", "recordkey.fields=nope")
    before = (path / PROPERTIES).read_bytes()
    assert main(["repair", str(path), "properties", "--set", "hoodie.table.recordkey.fields=VALUE", "--yes"]) == 1
    assert "has no column 'VALUE'" in capsys.readouterr().err
    assert (path / PROPERTIES).read_bytes() == before


class Refusing(LocalStorage):
    """A storage on which a file or a folder cannot be read."""

    def __init__(self, root, path, number):
        super().__init__(root)
        self.refused = (path, number)

    def _refuse(self, path):
        if path == self.refused[0]:
            raise OSError(self.refused[1], os.strerror(self.refused[1]), f"{self.uri}/{path}")

    def read(self, path):
        self._refuse(path)
        return super().read(path)

    def open_input(self, path, *, mapped=True):
        self._refuse(path)
        return super().open_input(path, mapped=mapped)

    def list(self, path, *, recursive=False):
        self._refuse(path)
        return super().list(path, recursive=recursive)


UNREADABLE = {
    "a base file": base,
    "a commit": newest,
    "partition metadata": lambda t: t / "rome/.hoodie_partition_metadata",
    "the archive": lambda t: t / ".hoodie/history",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_this_user_may_not_read_is_named(name, whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "table")  # this process has read the other one
    path = str(UNREADABLE[name](copy).relative_to(copy))
    table = opened(Refusing(copy, path, errno.EACCES))
    damage = [each for each in table.doctor(deep=True).findings if each.level is Level.DAMAGE]
    assert [(each.path, each.mend) for each in damage] == [(path, f"Give this user permission to read {copy}/{path}")]
    assert [each.path for each in table.validate(deep=True).problems] == [path]


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_storage_that_fails_is_no_damage(name, whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "table")
    table = opened(Refusing(copy, str(UNREADABLE[name](copy).relative_to(copy)), errno.EIO))
    with pytest.raises(StorageError):
        table.doctor(deep=True)
