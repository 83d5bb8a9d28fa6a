"""Every kind of damage: a query gives the right rows or one error, the doctor names it, and what the doctor prints mends it."""

import errno
import os
import re
import shutil

import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import CorruptFileError, HoodieError, StorageError
from hoodie.model.findings import Level
from tests.corruption.catalogue import DAMAGES
from tests.corruption.damages import (
    FUTURE,
    OLD_S,
    PROPERTIES,
    age,
    base,
    cut,
    later,
    make,
    names_no_file,
    newest,
    replaced,
    rewritten,
    stated,
    with_column,
    without,
)
from tests.corruption.mending import Refusing, doctor, mend, mend_all, read, rows
from tests.golden_tables import copy_golden
from tests.memory_tables import opened


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

    assert mend_all(path, (path, whole), bad, damage.values, capsys) == (0, [])
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
    "the table was copied into itself": (
        lambda t: shutil.copytree(t, t / "copy", ignore=shutil.ignore_patterns("copy")),
        "copy is a table itself",
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
    mend(path, (path, whole), bad, {}, capsys)
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
    mend(path, (path, path), bad, {}, capsys)
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
    mend(path, (path, whole), found[0], {}, capsys)
    assert doctor(path, capsys)[0] == 0
    hoodie.open_table(path, options=options).upsert([{"id": 9}])
    assert hoodie.open_table(path).scan().count() == 5


def test_a_hash_ring_of_a_clustering_goes_with_its_damaged_plan(tmp_path):
    options = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    options |= {"hoodie.bucket.index.num.buckets": "2", "hoodie.write.table.version": "9"}
    table = hoodie.create_table(tmp_path, record_key="id", table_type="MERGE_ON_READ", options=options)
    table.upsert([{"id": n} for n in range(4)])
    begun_clustering(tmp_path, (b"garbage", b""))
    time = max((tmp_path / ".hoodie/timeline").glob("*.clustering.requested")).name[:17]
    ring = next((tmp_path / ".hoodie/.bucket_index").rglob("*.hashing_meta"))
    shutil.copyfile(ring, left := ring.with_name(f"{time}.hashing_meta"))
    assert len(hoodie.open_table(tmp_path).repair("plans", dry_run=False).repairs) == 1
    assert (ring.exists(), left.exists()) == (True, False)


def test_files_of_an_archived_commit_that_names_none_are_no_strays(tmp_path):
    table = hoodie.create_table(tmp_path, record_key="id", partition_by="city")
    for city in ("bern", "oslo", "rome"):
        table.upsert([{"id": 1, "city": city}])
    names_no_file(newest(tmp_path, action="commit", at=0))
    table = hoodie.open_table(tmp_path)
    table.archive(min_commits=1)
    assert len(table.archived_instants()) == 2
    age(base(tmp_path, "bern"))
    result = hoodie.open_table(tmp_path).repair("stray-files")
    assert (result.repairs, [each.path for each in result.left]) == ((), [f"bern/{base(tmp_path, 'bern').name}"])


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


@pytest.mark.parametrize("suffix", [None, ".bak"], ids=["other version", "copy"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_does_not_undo_what_was_completed_under_another_name(version, suffix, tmp_path):
    table = hoodie.create_table(tmp_path, record_key="id", options={"hoodie.write.table.version": version})
    table.upsert([{"id": 1}])
    table.upsert([{"id": 2}])
    path = max((tmp_path / table.config.timeline_folder).glob("*commit"))
    time = path.name[:17]
    other = f"{time}_{path.name}" if version == "6" else f"{time}.commit"
    renamed = path.rename(path.with_name(f"{path.name}{suffix}" if suffix else other))
    with pytest.raises(CorruptFileError, match="was completed, and has a name of another"):
        hoodie.open_table(tmp_path).upsert([{"id": 3}])
    if suffix:
        renamed.rename(path)
    else:
        renamed.unlink()
    hoodie.open_table(tmp_path).upsert([{"id": 3}])
    assert hoodie.open_table(tmp_path).scan().count() == (3 if suffix else 2)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_table_that_lost_its_ordering_column_is_not_written(version, tmp_path):
    options = {"hoodie.write.table.version": version}
    hoodie.create_table(tmp_path, record_key="id", ordering="ts", options=options).upsert([{"id": 1, "ts": 5}])
    without("hoodie.table.ordering.fields", "hoodie.table.precombine.field")(tmp_path)
    assert [each.kind for each in hoodie.open_table(tmp_path).doctor().findings] == ["properties"]
    with pytest.raises(CorruptFileError, match="no ordering column"):
        hoodie.open_table(tmp_path).upsert([{"id": 1, "ts": 4}])


def test_folders_that_may_be_times_say_nothing_against_a_key_generator_of_times(tmp_path):
    table = hoodie.create_table(tmp_path, record_key="id", partition_by="day")
    table.upsert([{"id": 1, "day": "2026-01-01"}])
    stated("hoodie.table.keygenerator.type", "TIMESTAMP")(tmp_path)
    assert hoodie.open_table(tmp_path).doctor().findings == ()


@pytest.mark.parametrize("content", [None, b"", b"99", b"\xff?", b"-1"])
def test_an_archive_without_its_version_is_noted_until_the_next_one(tmp_path, content):
    path = copy_golden("v9_archived", tmp_path).path
    version = path / ".hoodie/timeline/history/_version_"
    before = [each.kind for each in hoodie.open_table(path).doctor().findings]
    version.unlink() if content is None else version.write_bytes(content)
    assert [each.kind for each in hoodie.open_table(path).doctor().findings] == sorted([*before, "archive-version"])
    table = hoodie.open_table(path)
    for n in range(4):
        table.insert([{"id": f"new{n}", "part": "a", "ts": n, "val": n}])
    table.archive(min_commits=1)
    assert [each.kind for each in hoodie.open_table(path).doctor().findings] == before


@pytest.mark.parametrize(
    ("key", "kinds"),
    [("20251124160000000_0_1", []), (f"{'0a' * 16}_3", []), (f"{'0a' * 15}_3", ["properties"]), ("k", ["properties"])],
)
def test_keys_that_no_column_makes_are_those_of_writes_or_of_sql_statements(key, kinds, tmp_path):
    hoodie.create_table(tmp_path, record_key=[]).insert([{"size": n} for n in range(3)])
    rewritten(base(tmp_path, "."), with_column("_hoodie_record_key", lambda keys: [key for _ in keys]))
    assert [each.kind for each in hoodie.open_table(tmp_path).doctor(deep=False).findings] == kinds


def test_a_key_column_that_fits_no_row_is_no_damage_of_base_files(tmp_path):
    table = hoodie.create_table(tmp_path, record_key="id")
    table.upsert([{"id": n, "size": 100 + n} for n in range(4)])
    replaced(tmp_path / PROPERTIES, "recordkey.fields=id", "recordkey.fields=size")
    assert [each.kind for each in hoodie.open_table(tmp_path).doctor(deep=True).findings] == ["properties"]


@pytest.mark.parametrize("version", ["6", "9"])
def test_plans_of_clusterings_are_looked_at_as_those_of_compactions_are(version, tmp_path):
    """A whole one is no damage; one that names a missing file is, and stays where files are named after it."""
    options = {"hoodie.write.table.version": version, "hoodie.parquet.small.file.limit": "0"}
    table = hoodie.create_table(tmp_path, record_key="id", options=options)
    for n in range(2):
        table.insert([{"id": n}], options)
    time = table.schedule_clustering()
    assert time is not None
    assert table.doctor(deep=True).is_healthy
    assert table.repair("plans", dry_run=False).repairs == ()
    path = next((tmp_path / table.config.timeline_folder).glob(f"{time}.*.requested"))
    name = base(tmp_path, ".").name
    token = name.split("_")[1]
    other = f"{token[:-1]}{(int(token[-1]) + 1) % 10}"
    path.write_bytes(path.read_bytes().replace(f"_{token}_".encode(), f"_{other}_".encode()))
    os.utime(path, (OLD_S, OLD_S))
    (found,) = hoodie.open_table(tmp_path).repair("plans").repairs
    assert f"the plan names {name.replace(token, other)}, which is not there" in found.why
    shutil.copyfile(tmp_path / name, tmp_path / f"{name.rpartition('_')[0]}_{time}.parquet")
    result = hoodie.open_table(tmp_path).repair("plans")
    assert (result.repairs, [each.why.rpartition("; ")[2] for each in result.left]) == (
        (),
        [f"{name.rpartition('_')[0]}_{time}.parquet is named after it, so it has to stay"],
    )


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_a_service_whose_completed_file_is_lost_is_not_planned_anew_when_its_files_are_cleaned(
    service, version, tmp_path, capsys
):
    path, whole = tmp_path / "table", tmp_path / "whole"
    table_type = "MERGE_ON_READ" if service == "compact" else "COPY_ON_WRITE"
    options = {"hoodie.write.table.version": version}
    table = hoodie.create_table(path, record_key="id", table_type=table_type, options=options)
    for first in range(0, 8, 4):
        table.insert([{"id": n} for n in range(first, first + 4)])
    if service == "compact":
        table.upsert([{"id": 1}])
    table.compact() if service == "compact" else table.cluster(sort_by="id")
    for _ in range(3):
        table.upsert([{"id": 0}])
    table.clean(retain_commits=1)
    shutil.copytree(path, whole)
    expected = read(path)
    action = "commit" if service == "compact" else "replacecommit"
    (completed,) = (each for each in (path / table.config.timeline_folder).glob(f"*.{action}"))
    completed.unlink()
    assert isinstance(read(path), HoodieError)
    assert hoodie.open_table(path).repair("plans", dry_run=False, older_than_s=0).repairs == ()
    status, found = doctor(path, capsys)
    bad = [each for each in found if each["level"] != "note"]
    assert (status, [each["kind"] for each in bad]) == (1, ["kept-plans"])
    assert "its completed file is lost" in bad[0]["what"]
    assert bad[0]["mend"].startswith(f"Restore the completed file of instant {completed.name[:17]}, in `.hoodie`")
    shutil.copy2(whole / table.config.timeline_folder / completed.name, completed)
    assert doctor(path, capsys)[0] == 0
    assert read(path) == expected


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
