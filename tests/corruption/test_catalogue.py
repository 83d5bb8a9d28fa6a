"""Every kind of damage: a query gives the right rows or one error, the doctor names it, and what the doctor prints mends it."""

import re
import shlex
import shutil

import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import HoodieError
from tests.corruption.catalogue import DAMAGES, FUTURE, PROPERTIES, base, cut, findings, make, replaced
from tests.golden_tables import copy_golden

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


OF_VERSION_9 = {
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
