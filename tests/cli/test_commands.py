import json
import re
import shutil
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli.__main__ import DONE, FAILED, USAGE, main
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from hoodie.table import open_at
from tests.golden_tables import FOLDER


def rows(keys, *, fare=1.0, ts=1):
    keys = list(keys)
    return pa.table(
        {
            "uuid": [f"k{k:04d}" for k in keys],
            "city": [["rome", "sf"][k % 2] for k in keys],
            "fare": [fare] * len(keys),
            "ts": pa.array([ts] * len(keys), pa.int64()),
        }
    )


@pytest.fixture
def make_table(tmp_path):
    def make(table_type="MERGE_ON_READ"):
        batch = rows(range(20))
        table = hoodie.create_table(
            tmp_path / "trips",
            batch.schema,
            record_key="uuid",
            partition_by="city",
            ordering="ts",
            table_type=table_type,
        )
        table.upsert(batch)
        table.upsert(rows(range(5), fare=2.0, ts=2))
        return table

    return make


@pytest.fixture
def run(capsys):
    """Runs a command line with `--json` and gives (status, parsed stdout, stderr)."""

    def run_json(*argv):
        status = main([*map(str, argv), "--json"])
        out, err = capsys.readouterr()
        return status, json.loads(out) if out else None, err

    return run_json


def leave_dead_write(table):
    """A third upsert whose process dies just before its commit is published."""
    storage = FaultStorage(LocalStorage(table.uri))
    batch = rows(range(3), fare=9.0, ts=9)
    probe = hoodie.create_table(table.uri + "-probe", batch.schema, record_key="uuid", partition_by="city", ordering="ts",
                                table_type=table.config.table_type)  # fmt: skip
    probe.upsert(rows(range(20)))
    probe.upsert(rows(range(5), fare=2.0, ts=2))
    rehearsal = FaultStorage(LocalStorage(probe.uri))
    open_at(rehearsal).upsert(batch)
    at = next(c.n for c in rehearsal.trace if c.verb == "create_new" and c.path.endswith("commit"))
    storage.revive([Fault(at)])
    with pytest.raises(InjectedFault):
        open_at(storage).upsert(batch)
    (dead,) = hoodie.open_table(table.uri).timeline.pending_writes
    return dead.time


def test_show_tells_what_the_table_is_and_holds(make_table, run):
    table = make_table()
    status, found, _ = run("show", table.uri)
    assert status == DONE
    assert (found["name"], found["table_type"], found["table_version"]) == ("trips", "MERGE_ON_READ", 6)
    assert (found["record_key"], found["partition_by"], found["ordering"]) == (["uuid"], ["city"], ["ts"])
    assert (found["commits"], found["partitions"], found["file_groups"], found["base_files"], found["log_files"]) == (
        2,
        2,
        2,
        2,
        2,
    )
    assert found["latest_commit"] == table.timeline.latest_commit.time
    assert found["base_bytes"] == sum(s.base.size_bytes for s in table.files())


def test_show_says_what_becomes_of_pending_work(make_table, capsys):
    table = make_table()
    plan, dead = table.schedule_compaction(), leave_dead_write(table)
    main(["show", table.uri])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("pending"))
    assert re.search(
        rf"{plan}\S* \(`hoodie compaction run {re.escape(table.uri)}` runs it\); {dead}\S* \(.*the next write undoes it\)",
        line,
    )


def test_show_of_a_table_without_commits(tmp_path, capsys):
    table = hoodie.create_table(tmp_path / "new", record_key="uuid")
    assert main(["show", table.uri]) == DONE
    assert re.search(r"^commits +0$", capsys.readouterr().out, re.MULTILINE)
    assert main(["schema", table.uri]) == DONE
    assert "no commit yet" in capsys.readouterr().out


def test_timeline_lists_every_instant_with_its_state(make_table, run):
    table = make_table()
    planned = table.schedule_compaction()
    _, found, _ = run("timeline", table.uri)
    states = [(i["instant"], i["action"], i["state"]) for i in found["instants"]]
    assert states == [(i.time, i.action.value, i.state.value) for i in table.timeline]
    assert states[-1] == (planned, "compaction", "requested")


def test_limit_keeps_the_newest_and_says_so(make_table, capsys):
    table = make_table()
    main(["timeline", table.uri, "--limit", "1"])
    out = capsys.readouterr().out
    assert table.timeline.commits[1].time in out
    assert table.timeline.commits[0].time not in out
    assert "1 older not shown" in out
    main(["timeline", table.uri, "--limit", "0"])
    assert "not shown" not in capsys.readouterr().out


def test_commits_tells_what_each_commit_did(make_table, run):
    table = make_table()
    _, found, _ = run("commits", table.uri)
    first, second = found["commits"]
    assert (first["operation"], first["inserted"], first["updated"]) == ("upsert", 20, 0)
    assert (second["inserted"], second["updated"], second["deleted"], second["files"]) == (0, 5, 0, 2)
    assert [first["instant"], second["instant"]] == [i.time for i in table.timeline.commits]


def test_files_names_base_and_log_files_of_a_partition(make_table, run):
    table = make_table()
    _, found, _ = run("files", table.uri, "--partition", "sf")
    (file_slice,) = found["file_slices"]
    (expected,) = [s for s in table.files() if s.group.partition_path == "sf"]
    assert file_slice["file_id"] == expected.group.file_id
    assert file_slice["base_file"] == expected.base.name
    assert file_slice["log_files"] == [log.name for log in expected.logs]
    assert file_slice["log_bytes"] == sum(log.size_bytes for log in expected.logs) > 0


def test_schema_names_types_and_roles(make_table, run):
    _, found, _ = run("schema", make_table().uri)
    assert [(c["name"], c["type"], c["roles"]) for c in found["columns"]] == [
        ("uuid", "string", ["record key"]),
        ("city", "string", ["partition"]),
        ("fare", "double", []),
        ("ts", "int64", ["ordering"]),
    ]


@pytest.mark.parametrize(
    "command", [["show"], ["timeline"], ["commits"], ["files"], ["schema"], ["compaction", "plan"], ["rollback"]]
)
def test_every_command_prints_text_for_people(make_table, capsys, command):
    assert main([*command, make_table().uri]) == DONE
    out, err = capsys.readouterr()
    assert out.strip()
    assert not err


def test_commands_that_look_leave_the_table_as_it_is(make_table, tmp_path):
    table = make_table()
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    for command in ("show", "timeline", "commits", "files", "schema", "rollback"):
        main([command, table.uri])
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()} == before


def test_compaction_plan_schedules_once_and_run_merges_the_logs(make_table, run):
    table = make_table()
    status, planned, _ = run("compaction", "plan", table.uri)
    assert status == DONE
    assert planned["scheduled"] == planned["pending"][0]["instant"]
    assert sorted(g["partition"] for g in planned["pending"][0]["file_groups"]) == ["rome", "sf"]
    _, again, _ = run("compaction", "plan", table.uri)
    assert again["scheduled"] is None
    assert again["pending"] == planned["pending"]
    status, done, _ = run("compaction", "run", table.uri, "--budget", "5m", "--instant", planned["scheduled"])
    assert status == DONE
    assert [c["instant"] for c in done["commits"]] == [planned["scheduled"]]
    assert done["pending"] == []
    assert table.scan(query="read_optimized").to_arrow().sort_by("uuid") == table.scan().to_arrow().sort_by("uuid")


def test_compaction_run_schedules_when_nothing_is_pending(make_table, run):
    table = make_table()
    _, done, _ = run("compaction", "run", table.uri)
    assert done["scheduled"] == done["commits"][0]["instant"]
    assert all(not file_slice.logs for file_slice in table.files())
    status, nothing, _ = run("compaction", "run", table.uri)
    assert (status, nothing["commits"]) == (DONE, [])


def test_log_compaction_plan_schedules_and_run_merges_the_logs(make_table, run):
    table = make_table()
    status, nothing, _ = run("log-compaction", "plan", table.uri)
    assert (status, nothing) == (DONE, {"scheduled": None, "pending": []})
    _, nothing, _ = run("log-compaction", "run", table.uri)
    assert nothing == {"scheduled": None, "commits": [], "pending": []}
    _, planned, _ = run("log-compaction", "plan", table.uri, "--blocks", "1")
    time = planned["scheduled"]
    assert [plan["instant"] for plan in planned["pending"]] == [time]
    _, dropped, _ = run("rollback", table.uri, time)
    assert dropped["pending"] == [{"instant": time, "action": "logcompaction"}]
    _, doctor, _ = run("doctor", table.uri)
    assert f"hoodie log-compaction run {table.uri}" in str(doctor)
    _, done, _ = run("log-compaction", "run", table.uri, "--instant", time)
    assert [c["instant"] for c in done["commits"]] == [time]
    assert done["pending"] == []
    _, timeline, _ = run("timeline", table.uri)
    assert [i["instant"] for i in timeline["instants"] if i["log_compaction"]] == [time]
    _, commits, _ = run("commits", table.uri)
    assert [(c["operation"], c["updated"]) for c in commits["commits"]][-1] == ("log_compact", 0)
    _, again, _ = run("log-compaction", "run", table.uri, "--blocks", "1")
    assert again["commits"] == []


def test_compaction_of_a_copy_on_write_table_fails_in_one_sentence(make_table, run):
    status, out, err = run("compaction", "run", make_table("COPY_ON_WRITE").uri)
    assert (status, out) == (FAILED, None)
    assert err.startswith("hoodie: table 'trips' is COPY_ON_WRITE")


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_rollback_shows_first_and_acts_with_yes(make_table, run, table_type, tmp_path):
    table = make_table(table_type)
    before = table.scan().to_arrow().sort_by("uuid")
    dead = leave_dead_write(table)
    stored = {p for p in tmp_path.rglob("*") if p.is_file()}
    status, shown, _ = run("rollback", table.uri)
    assert (status, shown["dry_run"]) == (DONE, True)
    (entry,) = shown["pending"]
    assert (entry["instant"], entry["writer"], entry["would_roll_back"]) == (dead, "dead", True)
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == stored
    touched = entry["disarm"] if table_type == "MERGE_ON_READ" else entry["delete"]
    assert len(touched) == 2
    assert all((tmp_path / "trips" / path).is_file() for path in touched)
    status, done, _ = run("rollback", table.uri, dead, "--yes")
    assert (status, done["rolled_back"]) == (DONE, [dead])
    if table_type == "COPY_ON_WRITE":
        assert not any((tmp_path / "trips" / path).exists() for path in touched)
    assert not table.timeline.pending_writes
    assert table.scan().to_arrow().sort_by("uuid") == before
    _, again, _ = run("rollback", table.uri, dead)
    assert again["pending"] == []


def test_a_savepoint_is_made_listed_restored_and_dropped(make_table, run):
    table = make_table()
    before = table.scan().to_arrow().sort_by("uuid")
    _, made, _ = run("savepoint", table.uri, "--comment", "kept")
    _, listed, _ = run("savepoints", table.uri)
    assert [(each["instant"], each["comment"]) for each in listed["savepoints"]] == [(made["savepoint"], "kept")]
    table.upsert(rows(range(30), fare=3.0, ts=3))
    _, shown, _ = run("restore", table.uri, made["savepoint"])
    assert (shown["dry_run"], shown["inserted"], len(shown["undone"])) == (True, 10, 1)
    assert table.scan().to_arrow().num_rows == 30
    _, done, _ = run("restore", table.uri, made["savepoint"], "--yes")
    assert (done["dry_run"], done["undone"]) == (False, shown["undone"])
    assert table.scan().to_arrow().sort_by("uuid") == before
    assert run("savepoint", table.uri, "--drop")[0] == FAILED
    assert run("savepoint", table.uri, made["savepoint"], "--drop")[0] == DONE
    assert run("savepoints", table.uri)[1] == {"savepoints": []}


def test_the_newest_commit_is_rolled_back_after_a_look(make_table, run):
    table = make_table()
    newest = table.timeline.latest_commit.time
    _, shown, _ = run("rollback", table.uri, newest)
    assert (shown["dry_run"], shown["undone"]) == (True, [newest])
    assert table.timeline.latest_commit.time == newest
    _, done, _ = run("rollback", table.uri, newest, "--yes")
    assert done["rolled_back"] == [newest]
    assert len(table.timeline.commits) == 1


@pytest.mark.parametrize("flags", [[], ["--yes"]])
def test_rollback_refuses_what_is_not_pending(make_table, run, flags):
    table = make_table()
    for instant, reason in (
        (table.timeline.commits[0].time, "came after it"),
        ("20200101000000000", "there is no instant 20200101000000000 on the active timeline"),
    ):
        status, out, err = run("rollback", table.uri, instant, *flags)
        assert (status, out) == (FAILED, None)
        assert reason in err


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["show"],
        ["nonsense", "t"],
        ["compaction", "t"],
        ["compaction", "run", "t", "--budget", "soon"],
        ["timeline", "t", "--limit", "-1"],
        ["show", ""],
        ["show", "t", "u"],
    ],
)
def test_a_command_line_without_sense_is_status_2(argv, capsys):
    assert main(argv) == USAGE
    assert "usage: hoodie" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "prog"),
    [
        (["ingest", "a", "b", "--none"], "hoodie ingest"),
        (["ingest", "--target-base-path", "a", "--target-table", "t", "--none"], "hoodie ingest"),
        (["show", "a", "--none"], "hoodie show"),
        (["alter", "add", "t", "c", "string", "--none"], "hoodie alter add"),
        (["--none", "show", "a"], "hoodie"),
    ],
)
def test_an_unknown_flag_shows_the_usage_of_its_command(
    argv: list[str], prog: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"usage: {prog} ")
    assert "--none" in error


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["compaction", "run", "--help"]])
def test_help_and_version_are_status_0(argv, capsys):
    assert main(argv) == DONE
    assert "hoodie" in capsys.readouterr().out


def test_a_path_without_a_table_is_status_1_and_one_text(tmp_path, capsys):
    assert main(["show", str(tmp_path)]) == FAILED
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"hoodie: no table at {tmp_path}")
    assert "Traceback" not in err


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("1h", 3600)])
def test_budget_is_a_number_with_a_unit(make_table, monkeypatch, text, seconds):
    given = []
    monkeypatch.setattr(
        hoodie.HoodieTable, "compact", lambda _, strategy, budget_s, memory_mb: given.append(budget_s) or []
    )
    assert main(["compaction", "run", make_table().uri, "--budget", text]) == DONE
    assert given == [seconds]


def test_defaults_of_all_jobs_count_for_python_and_for_the_command(make_table, tmp_path, monkeypatch):
    (tmp_path / "hoodie-defaults.conf").write_text(
        "hoodie.parquet.compression.codec=gzip\nhoodie.datasource.write.table.type=MERGE_ON_READ"
    )
    table = make_table()
    monkeypatch.setenv("HOODIE_CONF_DIR", str(tmp_path))
    assert main(["compaction", "run", table.uri]) == DONE
    assert {codec_of(table, file_slice) for file_slice in table.files()} == {"GZIP"}
    other = hoodie.create_table(tmp_path / "other", rows([1]).schema, record_key="uuid", table_type="COPY_ON_WRITE")
    assert other.config.table_type is hoodie.TableType.COPY_ON_WRITE, "what is said wins over the defaults"
    other.insert(rows([1]))
    assert {codec_of(other, file_slice) for file_slice in other.files()} == {"GZIP"}


def codec_of(table, file_slice):
    return pq.ParquetFile(f"{table.uri}/{file_slice.base.path}").metadata.row_group(0).column(0).compression


@pytest.mark.long
def test_compaction_runs_in_another_process_while_a_writer_keeps_upserting(make_table):
    table = make_table()
    stop = threading.Event()
    written = []

    def keep_upserting():
        while not stop.is_set():
            ts = 10 + len(written)
            written.append(table.upsert(rows(range(10), fare=float(ts), ts=ts), {"hoodie.archive.automatic": "false"}))

    writer = threading.Thread(target=keep_upserting)
    writer.start()
    try:
        runs = [
            subprocess.run([sys.executable, "-m", "hoodie.cli", "compaction", "run", table.uri, "--json"],
                           capture_output=True, text=True, check=False)
            for _ in range(2)
        ]  # fmt: skip
    finally:
        stop.set()
        writer.join()
    for done in runs:
        assert (done.returncode, done.stderr) == (DONE, "")
    compacted = [c["instant"] for done in runs for c in json.loads(done.stdout)["commits"]]
    assert set(compacted) == table.timeline.compactions
    assert compacted
    assert any(r.instant > compacted[0] for r in written), "the writer went on after the first compaction"
    found = table.scan().to_arrow().sort_by("uuid")
    assert found.column("uuid").to_pylist() == [f"k{k:04d}" for k in range(20)]
    last = 10.0 + len(written) - 1
    assert found.column("fare").to_pylist() == [last] * 10 + [1.0] * 10
    table.compact()
    assert table.scan(query="read_optimized").to_arrow().sort_by("uuid") == found


@pytest.mark.parametrize(
    ("name", "archived", "active"), [("v6_archived", 4, 9), ("v9_archived", 8, 7), ("v9_mor", 0, 4)]
)
def test_the_archived_timeline_is_listed_when_asked_for(run, name, archived, active):
    path = FOLDER / name / "table"
    status, found, _ = run("timeline", path, "--archived")
    assert status == DONE
    assert [each["archived"] for each in found["instants"]].count(True) == archived
    instants = [each["instant"] for each in found["instants"]]
    assert instants == sorted(instants)
    _, found, _ = run("timeline", path)
    assert len(found["instants"]) >= active
    assert not any("archived" in each for each in found["instants"])


def test_commits_of_version_9_say_when_they_were_completed(run, capsys):
    path = FOLDER / "v9_archived" / "table"
    _, found, _ = run("commits", path)
    assert [each["completed"] for each in found["commits"]][:2] == ["20261121135500351", "20261121135503638"]
    _, more, _ = run("commits", path, "--archived")
    assert more["commits"][-len(found["commits"]) :] == found["commits"]
    assert more["commits"][0]["operation"] == "insert"
    assert main(["commits", str(path), "--archived"]) == DONE
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["instant", "completed", "operation"]
    assert first.split()[:2] == ["20261121135431736", "20261121135435692"]


def test_explain_takes_the_moments_that_the_api_takes(make_table, run):
    table = make_table()
    first, second = (commit.time for commit in table.timeline.commits)
    assert run("explain", table.uri, "--as-of", first)[1]["read"] == 2
    pulled = run("explain", table.uri, "--since", first, "--until", second)[1]
    assert pulled["read"] == 2
    assert run("explain", table.uri, "--since", "2 hours ago")[0] == 0
    status, _, err = run("explain", table.uri, "--as-of", "2 hours ago")
    assert (status, "before the first commit" in err) == (1, True)
    status, _, err = run("explain", table.uri, "--as-of", first, "--since", first)
    assert (status, "--as-of does not go with --since" in err) == (1, True)


# -- check


@pytest.fixture
def copied(make_table, tmp_path):
    """A table with logs, compacted once, and a way to copy it."""
    table = make_table()
    table.upsert(rows(range(5), fare=2.0, ts=2))
    table.compact()
    table.upsert(rows(range(3), fare=3.0, ts=3))

    def copy(how=shutil.copy2):
        shutil.copytree(tmp_path / "trips", tmp_path / "copy", copy_function=how)
        return tmp_path / "copy"

    return copy


def test_check_finds_a_true_copy_whole(copied, capsys):
    assert main(["check", str(copied()), "--rows", "--json"]) == DONE
    assert json.loads(capsys.readouterr().out)["rows"] == 20


@pytest.mark.parametrize("kind", ["*.parquet", ".*.log.*"])
def test_check_names_files_that_are_cut(copied, capsys, kind):
    path = max((path for path in copied().glob(f"*/{kind}")), key=lambda path: path.stat().st_mtime)
    path.write_bytes(path.read_bytes()[:-10])
    assert main(["check", str(path.parent.parent)]) == FAILED
    assert path.name in capsys.readouterr().err


def test_check_names_a_file_that_is_gone(copied, capsys):
    path = max((path for path in copied().glob("*/.*.log.*")), key=lambda path: path.stat().st_mtime)
    path.unlink()
    assert main(["check", str(path.parent.parent)]) == FAILED
    assert path.name in capsys.readouterr().err


def test_check_says_that_a_copy_lost_its_modification_times(copied, capsys):
    assert main(["check", str(copied(shutil.copyfile))]) == FAILED
    assert "did not keep modification times" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["shw", "t"], "'shw' is not a command of hoodie; did you mean 'show'?"),
        (["compaction", "rn", "t"], "'rn' is not a command of hoodie compaction; did you mean 'run'?"),
        (["zzz", "t"], "'zzz' is not a command of hoodie; choose from show, timeline,"),
    ],
)
def test_a_command_that_does_not_exist_names_the_nearest(typed, told, capsys):
    assert main(typed) == USAGE
    assert told in capsys.readouterr().err


def test_an_upgrade_shows_first_what_it_does(make_table, run):
    table = make_table()
    status, shown, _ = run("upgrade", table.uri)
    assert (status, shown["before"], shown["after"], shown["dry_run"]) == (DONE, 6, 9, True)
    assert int(hoodie.open_table(table.uri).config.version) == 6
    status, done, _ = run("upgrade", table.uri, "8", "--yes")
    assert (status, done["after"], done["dry_run"]) == (DONE, 8, False)
    assert int(hoodie.open_table(table.uri).config.version) == 8
    assert run("upgrade", table.uri, "7")[0] == FAILED
    status, shown, _ = run("downgrade", table.uri)
    assert (status, shown["before"], shown["after"], shown["dry_run"]) == (DONE, 8, 6, True)
    status, done, _ = run("downgrade", table.uri, "--yes")
    assert (status, done["after"], done["dry_run"]) == (DONE, 6, False)
    assert int(hoodie.open_table(table.uri).config.version) == 6
    assert run("downgrade", table.uri, "9")[0] == FAILED


def test_columns_change_one_command_at_a_time(make_table, run):
    table = make_table()
    status, done, _ = run("alter", "add", table.uri, "tip", "double", "--after", "fare", "--doc", "on top")
    assert (status, done["operation"]) == (DONE, "ALTER_SCHEMA")
    assert done["columns"] == ["uuid: string", "city: string", "fare: double", "tip: double", "ts: int64"]
    assert run("alter", "rename", table.uri, "fare", "price")[0] == DONE
    assert run("alter", "retype", table.uri, "price", "string")[0] == DONE
    assert run("alter", "move", table.uri, "price", "--first")[0] == DONE
    assert run("alter", "nullable", table.uri, "price")[1]["instant"] is None
    assert run("alter", "doc", table.uri, "price", "in euros")[0] == DONE
    assert run("alter", "drop", table.uri, "tip")[1]["columns"][0] == "price: string"
    found = hoodie.open_table(table.uri).scan(columns=["price"], where="uuid = 'k0001'").to_arrow()
    assert found.to_pylist() == [{"price": "2.0"}]
    status, _, said = run("alter", "drop", table.uri, "city")
    assert status == FAILED
    assert "partition paths" in said
