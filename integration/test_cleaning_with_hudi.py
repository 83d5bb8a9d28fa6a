"""Cleans of ours and of Apache Hudi on one table: each goes on from what the other one's metadata say, and finishes its plans."""

import pytest

import hoodie
from hoodie.format.plan_avro import decode_plan
from hoodie.model.enums import Action
from hoodie.options.parse import parse_write_options
from hoodie.services.cleaning import CLEANING
from hoodie.services.scheduling import schedule
from integration.tables import trips
from integration.turns import Turns


def data_files(path):
    return sorted(f.name for f in path.rglob("*.parquet") if ".hoodie" not in f.parts)


def cleans(path, state=".clean"):
    folders = (path / ".hoodie", path / ".hoodie/timeline")
    return sorted(f.name for folder in folders for f in folder.glob(f"*{state}"))


@pytest.mark.parametrize(
    ("table_type", "version"), [("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "6"), ("MERGE_ON_READ", "9")]
)
def test_cleans_by_either_go_on_from_the_others(hudi, tmp_path, table_type, version):
    turns = Turns(hudi, tmp_path / "trips", table_type, more={"hoodie.write.table.version": version})
    turns.create()
    for turn in range(4):
        turns.we_upsert(trips(range(12), fare=turn, ts=10 + turn))
    if table_type == "MERGE_ON_READ":
        turns.we_compact()
        turns.we_upsert(trips(range(12), fare=3, ts=14))
    table = hoodie.open_table(turns.path)
    first = table.clean(retain_commits=1)
    assert first.files > 0
    turns.check("after our clean")
    for turn in range(4, 8):
        turns.we_upsert(trips(range(12), fare=turn, ts=20 + turn))
    if table_type == "MERGE_ON_READ":
        turns.we_compact()
        turns.we_upsert(trips(range(12), fare=8, ts=29))
    before = set(data_files(turns.path))
    turns.hudi_upserts_and_cleans_up(trips(range(3), fare=9, ts=30))
    assert len(cleans(turns.path)) == 2
    assert before - set(data_files(turns.path))
    turns.check("after Hudi's clean")
    for turn in range(3):
        turns.we_upsert(trips(range(12), fare=turn, ts=40 + turn))
    again = hoodie.open_table(turns.path).clean(retain_commits=1)
    if table_type == "COPY_ON_WRITE":
        assert again.files > 0
    turns.check("after our second clean")


def test_a_plan_of_ours_is_carried_out_by_hudi_and_the_other_way_round(hudi, tmp_path):
    turns = Turns(hudi, tmp_path / "trips", "COPY_ON_WRITE")
    turns.create()
    for turn in range(4):
        turns.we_upsert(trips(range(12), fare=turn, ts=10 + turn))
    table = hoodie.open_table(turns.path)
    options = parse_write_options({"hoodie.clean.commits.retained": "1"}).write
    planned = schedule(CLEANING, table._context, options)
    plan = table._context.active.read_clean_plan(planned)
    turns.hudi_upserts_and_cleans_up(trips(range(3), fare=9, ts=30))
    there = set(data_files(turns.path))
    assert planned + ".clean" in cleans(turns.path)
    assert plan.count > 0
    assert not there & {name for names in plan.files.values() for name in names}
    data = (turns.path / ".hoodie" / f"{planned}.clean").read_bytes()
    done = decode_plan("HoodieCleanMetadata", data, path=planned)
    assert done["totalFilesDeleted"] == plan.count
    turns.check("Hudi carried our plan out")
    # The same file of Hudi's, as a process of its own would have left it before it deleted anything.
    for turn in range(3):
        turns.we_upsert(trips(range(12), fare=turn, ts=40 + turn))
    kept = {f: f.read_bytes() for f in turns.path.rglob("*.parquet") if ".hoodie" not in f.parts}
    turns.hudi_upserts_and_cleans_up(trips(range(3), fare=9, ts=60))
    newest = cleans(turns.path)[-1]
    gone = [f for f in kept if not f.exists()]
    assert gone
    for file in gone:
        file.write_bytes(kept[file])
    (turns.path / ".hoodie" / newest).unlink()
    finished = hoodie.open_table(turns.path).clean(retain_commits=50)
    assert finished.instant + ".clean" == newest
    assert not [f for f in gone if f.exists()]
    timeline = hoodie.open_table(turns.path).timeline
    assert not timeline.pending(Action.CLEAN)
    turns.check("we carried Hudi's plan out")
