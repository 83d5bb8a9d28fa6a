import json
import os
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from benchmarks.followed_storages import lines, on_disk
from benchmarks.followed_storages import measure as measure_followed
from benchmarks.goals import Ratio, Seconds
from benchmarks.metadata_size import CASES
from benchmarks.metadata_size import run as run_metadata
from benchmarks.meter import Cost, Meter
from benchmarks.plan import SYSTEMS, chosen
from benchmarks.records import At, Run, pair, read
from benchmarks.report import report
from benchmarks.requests import Counting, Shape, chained, measure
from benchmarks.rides import digest, load, make_rides
from benchmarks.run import _remove_left_over, main
from hoodie import writer
from hoodie.lock import storage_liveness
from hoodie.storage import object_store

ABOUT = {"rows": 2_000_000, "batch": 50_000, "started": "today", "load": 0.1, "machine": "2 cores", "versions": "none"}
OURS, FLOOR = At("spark4/hoodie-mor", "upsert"), At("spark4/spark", "append")


def run_of(name, costs, checks=None, **about):
    found = {at: [Cost(seconds, seconds, 1)] for at, seconds in costs.items()}
    return Run(name, {**ABOUT, **about}, found, checks or {})


@pytest.mark.long
def test_a_small_run_measures_every_embedded_case_and_all_systems_agree(tmp_path):
    out, kept = tmp_path / "RESULTS.md", tmp_path / "kept"
    sizes = ["--rows", "20000", "--batch", "1000", "--commits", "20", "--reads", "1"]
    systems = ["--no-peers", "--no-spark", "--only", "embedded/arrow", "embedded/hoodie-mor"]
    places = ["--records", str(kept), "--out", str(out), "--folder", str(tmp_path / "work")]
    assert main([*sizes, *systems, *places]) == 0
    assert not any((tmp_path / "work").iterdir())
    (file,) = kept.iterdir()
    run = read(file)
    assert {at.case for at in run.costs if at.system == "embedded/hoodie-mor"} == {
        "bulk load",
        "upsert",
        "incremental, last commit",
        "upsert, random 1 %",
        "upsert, random 10 %",
        *(
            f"{query}, {view}, {state}"
            for query in ("aggregate", "full scan", "point lookup")
            for view in ("snapshot", "read-optimized", "plain scan of its files")
            for state in ("before compaction", "after compaction")
        ),
        "compaction",
        "small commit",
        "rows after the upserts",
        "rows after compaction",
        "rows after the small commits",
    }
    before, after = (
        run.checks[At("embedded/hoodie-mor", f"rows after {what}")] for what in ("the upserts", "compaction")
    )
    assert before == after == run.checks[At("embedded/arrow", "rows after the upserts")]
    assert run.typical(At("embedded/hoodie-mor", "upsert")).written_bytes > 100_000
    page = out.read_text()
    assert "| embedded: hoodie, merge-on-read | 20 |" in page
    assert "| embedded merge-on-read upsert | ≤ 0.4 s wall, 0.5 s CPU | " in page


def test_a_name_that_no_system_has_ends_the_run_before_anything_is_measured(tmp_path, capsys):
    assert main(["--only", "spark4/huddi", "--records", str(tmp_path)]) == 2
    assert "no system is named 'spark4/huddi'" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_without_peers_only_ours_and_the_floors_of_this_environment_are_measured():
    names = {system.name for system in chosen([], full=False, peers=False, spark=True)}
    assert {"embedded/arrow", "embedded/hoodie-mor", "spark4/spark", "spark4/hoodie-cow"} <= names
    assert not any(name.startswith("spark3/") for name in names)
    assert not names & {"spark4/delta", "embedded/polars"}


def test_every_system_is_named_once_and_belongs_to_a_lane():
    assert len({system.name for system in SYSTEMS}) == len(SYSTEMS)
    assert {system.lane for system in SYSTEMS} == {"embedded", "spark4", "spark3"}


@pytest.mark.long
def test_only_the_steps_that_are_asked_for_are_measured_as_often_as_asked(tmp_path):
    sizes = [
        "--rows",
        "4000",
        "--batch",
        "400",
        "--commits",
        "2",
        "--reads",
        "1",
        "--steps",
        "load",
        "upsert",
        "--rounds",
        "2",
    ]
    systems = ["--no-peers", "--no-spark", "--only", "embedded/hoodie-mor"]
    places = ["--records", str(tmp_path / "kept"), "--out", str(tmp_path / "R.md"), "--folder", str(tmp_path / "work")]
    assert main([*sizes, *systems, *places]) == 0
    (file,) = (tmp_path / "kept").iterdir()
    costs = read(file).costs
    assert {at.case for at in costs} == {"bulk load", "upsert", "rows after the upserts"}
    assert len(costs[At("embedded/hoodie-mor", "upsert")]) == 10  # five of each round


def test_a_goal_in_seconds_says_how_fast_the_machine_is():
    goal = Seconds("compaction", OURS, 2, 3.5, FLOOR, 7.5)
    reached = goal.judge([run_of("a", {OURS: 3.0, FLOOR: 6.0})])
    assert reached.figure == "3.00 s wall, 3.00 s CPU; CPU 0.50 × append, and 0.47 × where the goal was set"
    assert reached.met is False
    assert goal.judge([run_of("a", {OURS: 1.5, FLOOR: 6.0})]).met is True
    assert goal.judge([run_of("a", {OURS: 1.5})]).figure == "1.50 s wall, 1.50 s CPU"
    assert goal.judge([run_of("a", {OURS: 1.5, FLOOR: 6.0}, rows=1000)]).met is None


def test_a_ratio_comes_from_one_run_and_from_the_newest_that_has_both():
    runs = [run_of("a", {OURS: 1.0, FLOOR: 2.0}), run_of("b", {OURS: 9.0}), run_of("c", {FLOOR: 0.1})]
    mine, floor = pair(runs, OURS, FLOOR)
    assert (mine.cpu_s, floor.cpu_s) == (1.0, 2.0)
    assert pair(runs[1:], OURS, FLOOR) is None


@pytest.mark.parametrize(("seconds", "met"), [(1.5, True), (1.6, False)])
def test_a_goal_is_met_at_its_limit_and_not_above(seconds, met):
    goal = Ratio("upsert", OURS, FLOOR, 1.5)
    assert goal.judge([run_of("a", {OURS: seconds, FLOOR: 1.0})]).met is met


def test_the_page_says_what_is_not_met_and_what_was_not_measured():
    page = report([run_of("a", {OURS: 2.0, FLOOR: 1.0})])
    assert (
        "| merge-on-read upsert, in process | ≤ 1.5 × spark: append | CPU 2.00, wall 2.00 (2.00 ÷ 1.00, 2.00 ÷ 1.00 s) | **not met** |"
        in page
    )
    assert "| compaction, logs on every file | ≤ 2 s wall, 3.5 s CPU | not measured |  |" in page


def test_the_page_shows_upserts_of_other_sizes_beside_those_of_the_page():
    runs = [run_of("a", {OURS: 1.2, FLOOR: 1.0}), run_of("b", {OURS: 3.0, FLOOR: 1.0}, rows=8_000_000)]
    page = report(runs)
    assert "| merge-on-read upsert, in process | ≤ 1.5 × spark: append | CPU 1.20" in page
    assert "| merge-on-read upsert, in process, 8,000,000 rows | ≤ 1.5 × spark: append | CPU 3.00" in page


def test_systems_that_disagree_about_the_rows_end_the_run(tmp_path, capsys):
    lines = [ABOUT]
    for system, check in (("spark4/delta", "2 rows"), ("spark4/iceberg", "3 rows"), ("spark4/spark", "")):
        lines.append(
            {"system": system, "case": "rows after the upserts", "check": check, **Cost(0.0, 0.0, 0).as_dict()}
        )
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["--report-only", "--records", str(tmp_path), "--out", str(tmp_path / "RESULTS.md")]) == 1
    assert "rows after the upserts: spark4/delta say 2 rows; spark4/iceberg say 3 rows" in capsys.readouterr().err
    assert not (tmp_path / "RESULTS.md").exists()


def test_the_digest_knows_every_row_and_no_order(tmp_path):
    make_rides(tmp_path, rows=1000, batch_rows=50, small_count=0)
    rows = load(tmp_path, "base")
    assert digest(rows) == digest(rows.take(pa.array(range(999, -1, -1))))
    others = [rows.slice(1), pa.concat_tables([rows, rows.slice(0, 1)])]
    swapped = rows.set_column(2, "updated_at", rows.column("updated_at").take(pa.array([1, 0, *range(2, 1000)])))
    assert len({digest(rows), *(digest(other) for other in (*others, swapped))}) == 4


@pytest.mark.long
def test_metadata_do_not_grow_where_compaction_runs_and_do_where_it_does_not():
    kept, grown = (list(run_metadata(case, 60, f"smoke-{number}")) for number, case in enumerate(CASES))
    assert kept[-1].commit_bytes < 1.5 * kept[0].commit_bytes
    assert grown[-1].commit_bytes > 2 * kept[-1].commit_bytes
    assert grown[-1].archive_bytes > 0


def test_the_meter_counts_a_child_that_has_ended():
    with Meter() as meter:
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
    assert meter.cost.cpu_s == pytest.approx(0.2, abs=0.15)
    assert meter.cost.wall_s >= 0.2
    assert meter.cost.peak_bytes > 10_000_000


def test_memory_that_processes_share_counts_once():
    shared = bytearray(os.urandom(1) * 100_000_000)
    with Meter() as alone:  # with the servers that tests of this process have started
        time.sleep(0.2)
    with Meter() as meter:
        child = os.fork()
        if not child:
            time.sleep(1.0)
            os._exit(0)
        os.waitpid(child, 0)
    assert len(shared) < meter.cost.peak_bytes < alone.cost.peak_bytes + len(shared) // 2


def test_the_meter_counts_files_that_are_new_or_other_than_they_were(tmp_path):
    for name in ("kept", "changed", "removed"):
        (tmp_path / name).write_bytes(b"1234")
    with Meter(tmp_path) as meter:
        (tmp_path / "changed").write_bytes(b"123456")
        (tmp_path / "removed").unlink()
        (tmp_path / "passing").write_bytes(b"1")
        (tmp_path / "passing").unlink()
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "new").write_bytes(b"12")
    assert (meter.cost.written_bytes, meter.cost.written_files) == (8, 2)


def test_a_run_removes_the_tables_of_runs_that_were_killed_and_nothing_else(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = [f"hoodie-bench-{ended.pid}-x", f"hoodie-bench-{os.getpid()}-x", "hoodie-bench-mine", "other"]
    for name in names:
        (tmp_path / name / "table").mkdir(parents=True)
    _remove_left_over(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("options", "most", "longest"),
    [({}, 30, (13, 12)), ({"hoodie.metadata.enable": "true"}, 40, (19, 18))],
    ids=["plain", "metadata"],
)
def test_an_upsert_of_one_row_makes_few_requests_and_few_in_a_row(monkeypatch, table_type, options, most, longest):
    counting = Counting()
    monkeypatch.setattr(object_store, "_obstore", lambda: counting)
    # On a busy machine a write takes longer, and then looks again at what it has seen.
    monkeypatch.setattr(writer, "_RECENT_S", 3600.0)
    monkeypatch.setattr(storage_liveness, "_YOUNG_S", 3600.0)
    with chained(counting):
        found = dict(measure(Shape(table_type, 4, 3, touched=1, options=options), counting))
    assert found["upsert"].total() <= most
    assert counting.chains["upsert"] <= longest[table_type == "MERGE_ON_READ"]


@pytest.mark.long
def test_requests_of_an_upsert_do_not_grow_with_the_commits_nor_with_the_partitions(monkeypatch):
    counting = Counting()
    monkeypatch.setattr(object_store, "_obstore", lambda: counting)
    few, many, wide = (dict(measure(Shape("MERGE_ON_READ", *how), counting)) for how in ((4, 3), (4, 9), (16, 3)))
    assert few["upsert"].total() <= 36
    for other, act in (
        (many, "upsert"),
        (wide, "upsert"),
        (wide, "of which its commit"),
        (wide, "upsert of a new process"),
        (wide, "pull of two commits"),
    ):
        # Two threads may ask for one file at the same time.
        assert abs(other[act].total() - few[act].total()) <= 2, (act, few[act], other[act])
    assert wide["scan"]["LIST"] >= few["scan"]["LIST"] + 12, "what lists every partition is seen to"


@pytest.mark.long
def test_a_followed_table_is_not_listed_and_a_process_that_knows_nothing_lists_each_partition_once(tmp_path):
    partitions, touched = 12, 2
    with on_disk(tmp_path) as place:
        found = measure_followed(place, partitions, rounds=2, touched=touched)
        assert not place.counted(), "every call belongs to a step"
    figures = dict(lines(found))
    assert {case.name: len(case.rounds) for case in found} == dict.fromkeys((case.name for case in found), 2)
    listing, followed = figures["query, one process, listing"], figures["query, one process, followed"]
    assert followed.lists <= listing.lists - partitions + 2
    one, new = "round, one process", "round, a process for each round"
    saved = figures[f"{one}, listing"].lists - figures[f"{one}, followed"].lists
    assert saved > partitions // 2
    assert figures[f"{new}, followed from a checkpoint"].lists < figures[f"{new}, listing"].lists
    assert figures[f"{new}, followed"].lists > figures[f"{one}, followed"].lists
