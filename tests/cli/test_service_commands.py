"""The commands of table services: exit status, dry runs, `--json`, and what an error says."""

import json
import os
from pathlib import Path

import pytest

import hoodie
from hoodie.cli.__main__ import DONE, FAILED, USAGE, main
from hoodie.storage.local import LocalStorage
from hoodie.table import open_at
from tests.damaged_tables import put_strays
from tests.golden_tables import copy_golden

ALONE = {"hoodie.table.services.enabled": "false"}
APART = {"hoodie.parquet.small.file.limit": "0"}


@pytest.fixture
def run(capsys):
    """Runs a command line with `--json` and gives (status, parsed stdout, stderr)."""

    def run_json(*argv):
        status = main([*map(str, argv), "--json"])
        out, err = capsys.readouterr()
        return status, json.loads(out) if out else None, err

    return run_json


@pytest.fixture
def table(tmp_path):
    """Three small files in each of two partitions, and logs in two of them."""
    made = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="city", table_type="MERGE_ON_READ", options=ALONE | APART
    )
    for turn in range(3):
        made.insert(rows(range(4 * turn, 4 * turn + 4), fare=turn))
    made.upsert(rows(range(2), fare=9))
    return made


def rows(ids, *, fare):
    return [{"id": n, "city": "ab"[n % 2], "fare": fare} for n in ids]


def content(path):
    """Of all files but the lock, which is touched when it is taken."""
    files = [file for file in Path(path).rglob("*") if file.is_file() and file.name != "table.lock"]
    return {file: (file.stat().st_mtime_ns, file.stat().st_size) for file in files}


def fares(table):
    found = hoodie.open_table(table.uri).to_arrow().to_pydict()
    return dict(sorted(zip(found["id"], found["fare"], strict=True)))


# -- cluster


def test_a_clustering_is_shown_and_then_done(table, run, capsys):
    before, stored = fares(table), content(table.uri)
    status, shown, _ = run("cluster", table.uri, "--sort-by", "fare", "--dry-run")
    assert (status, shown["dry_run"]) == (DONE, True)
    assert {g["partition"]: len(g["file_ids"]) for g in shown["groups"]} == {"a": 3, "b": 3}
    assert main(["cluster", table.uri, "--dry-run"]) == DONE
    assert "would sort: 6 file groups" in capsys.readouterr().out
    assert content(table.uri) == stored
    status, done, _ = run("cluster", table.uri, "--sort-by", "fare", "--where", "city = 'a'")
    assert (status, done["pending"]) == (DONE, [])
    assert (done["commits"][0]["operation"], len(done["commits"])) == ("cluster", 1)
    assert (len([s for s in table.files() if s.group.partition_path == "a"]), len(table.files())) == (1, 4)
    assert main(["cluster", table.uri, "--where", "city = 'a'"]) == DONE
    assert "nothing to cluster" in capsys.readouterr().out
    assert fares(table) == before


def test_a_clustering_in_two_steps(table, run, capsys):
    status, planned, _ = run("clustering", "plan", table.uri, "--sort-by", "fare,id", "--layout", "hilbert")
    assert (status, planned["scheduled"]) == (DONE, planned["pending"][0]["instant"])
    assert planned["pending"][0]["state"] == "requested"
    with pytest.raises(hoodie.CommitConflictError):
        table.upsert(rows([0], fare=100))
    status, again, _ = run("clustering", "plan", table.uri, "--sort-by", "fare")
    assert (status, again["scheduled"], again["pending"]) == (DONE, None, planned["pending"])
    status, out, err = run("clustering", "run", table.uri, "--instant", "20200101000000000")
    assert (status, out) == (FAILED, None)
    assert "no clustering is pending at instant 20200101000000000" in err
    status, done, _ = run("clustering", "run", table.uri, "--instant", planned["scheduled"], "--budget", "5m")
    assert [c["instant"] for c in done["commits"]] == [planned["scheduled"]]
    assert main(["clustering", "run", table.uri]) == DONE
    assert capsys.readouterr().out == "nothing to cluster\n"


def test_the_plan_of_a_clustering_is_dropped_by_a_rollback(table, run, capsys):
    before = fares(table)
    planned = table.schedule_clustering()
    assert main(["rollback", table.uri, planned]) == DONE
    assert "the plan of a clustering; would be dropped" in capsys.readouterr().out
    assert [i.time for i in table.pending_clusterings()] == [planned]
    status, done, _ = run("rollback", table.uri, planned, "--yes")
    assert (status, done["rolled_back"]) == (DONE, [planned])
    assert table.pending_clusterings() == ()
    assert fares(table) == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--sort-by", "fair"], "cannot be sorted by 'fair': there is no column 'fair'"),
        (["--sort-by", "fare", "--layout", "spiral"], "spiral"),
        (["--where", "fare > 1"], "fare"),
        (["--target-file-mb", "0"], "target_file_mb"),
    ],
)
def test_what_a_clustering_cannot_do_is_said(table, run, arguments, reason):
    for command in (["cluster", table.uri], ["cluster", table.uri, "--dry-run"], ["clustering", "plan", table.uri]):
        stored = content(table.uri)
        status, out, err = run(*command, *arguments)
        assert (status, out) == (FAILED, None)
        assert err.startswith("hoodie: ")
        assert reason in err
        assert content(table.uri) == stored


# -- compaction


def test_a_strategy_and_a_bound_of_memory_are_taken(table, run):
    status, planned, _ = run("compaction", "plan", table.uri, "--strategy", "log_file_num")
    assert (status, len(planned["pending"][0]["file_groups"])) == (DONE, 2)
    status, done, _ = run("compaction", "run", table.uri, "--memory", "64")
    assert (status, [c["instant"] for c in done["commits"]]) == (DONE, [planned["scheduled"]])
    table.upsert(rows(range(2), fare=10))
    regex = ["-o", "hoodie.compaction.partition.path.regex=a"]
    status, planned, _ = run("compaction", "plan", table.uri, "--strategy", "partition_regex", *regex)
    assert [g["partition"] for g in planned["pending"][0]["file_groups"]] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--strategy", "by_mood"], "by_mood"),
        (["--memory", "0"], "memory"),
        (["--instant", "20200101000000000"], "20200101"),
    ],
)
def test_what_a_compaction_cannot_do_is_said(table, run, arguments, reason):
    status, out, err = run("compaction", "run", table.uri, *arguments)
    assert (status, out) == (FAILED, None)
    assert reason in err
    assert not table.pending_compactions()


# -- savepoints and restores


def test_savepoints_are_listed_for_people(table, capsys):
    assert main(["savepoints", table.uri]) == DONE
    assert capsys.readouterr().out == "no savepoints\n"
    first = table.timeline.commits[0].time
    assert main(["savepoint", table.uri, first, "--comment", "the first one"]) == DONE
    assert f"`hoodie restore {table.uri} {first}` goes back to it" in capsys.readouterr().out
    main(["savepoints", table.uri])
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["instant", "made", "by", "files", "comment"]
    assert line.startswith(first)
    assert line.endswith("the first one")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["savepoint", "T", "20200101000000000"], "20200101000000000"),
        (["savepoint", "T", "FIRST"], "has a savepoint already"),
        (["savepoint", "T", "--drop"], "name the savepoint to drop"),
        (["savepoint", "T", "LAST", "--drop"], "has no savepoint at"),
        (["restore", "T", "20200101000000000"], "a table can be restored to a commit on its active timeline"),
        (["restore", "T", "20200101000000000", "--yes"], "a table can be restored to a commit on its active timeline"),
        (["restore", "T", "SECOND", "--yes"], None),
        (["rollback", "T", "FIRST", "--yes"], "Drop the savepoint first"),
    ],
)
def test_what_cannot_be_kept_or_taken_back_is_said(table, run, command, reason):
    times = [commit.time for commit in table.timeline.commits]
    table.savepoint(times[0])
    names = {"T": table.uri, "FIRST": times[0], "SECOND": times[1], "LAST": times[-1]}
    before = content(table.uri)
    status, _, err = run(*(names.get(word, word) for word in command))
    if reason is None:
        assert status == DONE
        return
    assert status == FAILED
    assert reason in err
    assert content(table.uri) == before


def test_a_restore_past_a_savepoint_is_refused_dry_or_not(table, run):
    times = [commit.time for commit in table.timeline.commits]
    table.savepoint(times[2])
    for flags in ([], ["--yes"]):
        status, _, err = run("restore", table.uri, times[1], *flags)
        assert status == FAILED
        assert f"hoodie savepoint {table.uri} {times[2]} --drop" in err
    status, shown, _ = run("restore", table.uri, times[3])
    assert (status, shown["undone"]) == (DONE, [])


# -- expiry


class Earlier(LocalStorage):
    """A disk whose clock was ten days ago."""

    def now_s(self):
        return super().now_s() - 10 * 24 * 3600.0


def test_partitions_expire_after_a_look(tmp_path, run, capsys):
    hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city", options=ALONE)
    open_at(Earlier(tmp_path / "t"), options=ALONE).upsert(rows(range(2), fare=1))
    table = hoodie.open_table(tmp_path / "t")
    table.upsert(rows([3], fare=2))  # in b
    stored = content(table.uri)
    status, shown, _ = run("ttl", table.uri, "--days", "5", "--dry-run")
    assert (status, shown["dry_run"], shown["instant"], shown["partitions"]) == (DONE, True, None, ["a"])
    assert main(["ttl", table.uri, "--days", "5", "--dry-run"]) == DONE
    assert "  a\n" in capsys.readouterr().out
    assert content(table.uri) == stored
    # The days may come from an option.
    status, done, _ = run("ttl", table.uri, "-o", "hoodie.partition.ttl.strategy.days.retain=5")
    assert (status, done["partitions"], done["instant"]) == (DONE, ["a"], table.timeline.latest_commit.time)
    assert set(fares(table)) == {1, 3}
    assert run("ttl", table.uri, "--days", "5")[1]["partitions"] == []


def test_what_cannot_expire_is_said(tmp_path, run):
    plain = hoodie.create_table(tmp_path / "plain", record_key="id")
    plain.upsert([{"id": 1}])
    assert "is not partitioned" in run("ttl", plain.uri, "--days", "5")[2]
    status, _, err = run("ttl", plain.uri, "--days", "0")
    assert (status, "days=0" in err) == (FAILED, True)
    assert main(["ttl", plain.uri, "--days", "soon"]) == USAGE


# -- repair


def test_a_repair_is_shown_done_and_undone(table, run, capsys):
    before = fares(table)
    strays = sorted(put_strays(LocalStorage(table.uri)))
    stored = content(table.uri)
    assert run("repair", table.uri, "stray-files")[1]["repairs"] == []  # they are too young to be judged
    status, shown, _ = run("repair", table.uri, "stray-files", "--older-than", "0s")
    assert (status, shown["dry_run"], shown["set_aside"]) == (DONE, True, None)
    assert sorted(each["path"] for each in shown["repairs"]) == strays
    assert main(["repair", table.uri, "--older-than", "0s"]) == DONE
    assert "add --yes to do it" in capsys.readouterr().out
    assert content(table.uri) == stored
    status, done, _ = run("repair", table.uri, "--older-than", "0s", "--yes")
    assert (status, done["dry_run"]) == (DONE, False)
    assert not any(os.path.exists(f"{table.uri}/{path}") for path in strays)
    status, back, _ = run("repair", table.uri, "--undo", done["set_aside"])
    assert (status, sorted(back["put_back"])) == (DONE, strays)
    status, _, err = run("repair", table.uri, "--undo", done["set_aside"])
    assert (status, f"no repair {done['set_aside']}" in err) == (FAILED, True)
    assert fares(table) == before


def test_properties_are_put_back_with_what_only_the_user_knows(table, run, capsys):
    file = Path(table.uri) / ".hoodie" / "hoodie.properties"
    ordering = "hoodie.table.ordering.fields"
    file.unlink()
    assert main(["show", table.uri]) == FAILED
    capsys.readouterr()
    status, shown, _ = run("repair", table.uri, "properties")
    assert (status, shown["dry_run"], file.exists()) == (DONE, True, False)
    unknown = [each.partition(":")[0] for each in shown["unknown"]]
    assert unknown == [ordering]
    status, _, err = run("repair", table.uri, "properties", "--yes")
    assert (status, ordering in err, file.exists()) == (FAILED, True, False)
    status, done, _ = run("repair", table.uri, "properties", "--set", f"{ordering}=", "--yes")
    assert (status, done["dry_run"], file.exists()) == (DONE, False, True)
    assert fares(table)[0] == 9
    assert run("repair", table.uri, "properties")[1]["damage"] is None


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["everything"], USAGE),
        (["--older-than", "long"], USAGE),
        (["properties", "--set", "nothing"], USAGE),
        (["stray-files", "--set", "a=b"], FAILED),
    ],
)
def test_a_repair_that_makes_no_sense_is_refused(table, capsys, arguments, status):
    stored = content(table.uri)
    assert main(["repair", table.uri, *arguments]) == status
    assert capsys.readouterr().err
    assert content(table.uri) == stored


# -- all of them


@pytest.mark.parametrize(
    "command",
    [
        ["cluster"],
        ["clustering", "plan"],
        ["clustering", "run"],
        ["savepoint"],
        ["savepoints"],
        ["ttl", "--days", "5"],
        ["repair"],
        ["clean", "--dry-run"],
        ["archive", "--dry-run"],
    ],
)
def test_each_prints_text_for_people_and_says_where_no_table_is(table, tmp_path, capsys, command):
    name, *arguments = command
    words = [name] if not arguments or arguments[0].startswith("--") else command
    rest = arguments if words == [name] else []
    assert main([*words, table.uri, *rest]) == DONE
    out, err = capsys.readouterr()
    assert out.strip()
    assert not err
    assert main([*words, str(tmp_path / "none"), *rest]) == FAILED
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"hoodie: no table at {tmp_path / 'none'}")


def test_a_table_of_version_9_is_served_too(tmp_path, run):
    path = copy_golden("v9_mor", tmp_path).path
    before = hoodie.open_table(path).to_arrow().sort_by("id")
    for command in ("cluster", "savepoint", "archive", "clean"):
        status, _, err = run(command, path)
        assert status == DONE, err
    assert run("repair", path, "stray-files")[0] == DONE
    assert hoodie.open_table(path).to_arrow().sort_by("id") == before
