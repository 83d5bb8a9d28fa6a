"""Writes of so many files that their markers are lines of one file, as both writers have them by default.

A write that dies is rolled back by the other writer, and Apache Hudi goes by these lines.
"""

import os
import shutil
from collections import Counter

import pytest

from hoodie.model.names import HEARTBEATS, MARKERS, PARTITION_METADATA
from hoodie.options.write import MOST_MARKER_FILES
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from hoodie.table import open_at
from integration.hudi_client import PeerError
from integration.tables import completes_write, trips
from integration.turns import CLEAN_NOW, FAIL_AFTER_WRITING, METADATA_ON, Turns

MANY = MOST_MARKER_FILES + 10
EAGER: dict[str, str] = {}
LAZY = CLEAN_NOW | {"hoodie.clean.failed.writes.policy": "LAZY"}
BY_ITS_SERVER = {"hoodie.embed.timeline.server": "true", "hoodie.write.markers.type": "TIMELINE_SERVER_BASED"}


def across(numbers, *, fare, ts):
    """A trip in a city of its own for each number."""
    return [row | {"city": f"c{n:03d}"} for n, row in zip(numbers, trips(numbers, fare=fare, ts=ts), strict=True)]


def dies(turns, rows, *, all_named):
    """Our upsert dies before its commit, when all files have their names or half of them; gives its instant."""
    trial = turns.path.with_name("trial")
    shutil.copytree(turns.path, trial)
    traced = FaultStorage(LocalStorage(trial))
    open_at(traced).upsert(turns.arrow(rows))
    shutil.rmtree(trial)
    marked = next(call.n for call in traced.trace if call.path.endswith("/MARKERS0"))
    completed = next(call.n for call in traced.trace if completes_write(call.path))
    fault = Fault(completed if all_named else (marked + completed) // 2)
    with pytest.raises(InjectedFault):
        open_at(FaultStorage(LocalStorage(turns.path), [fault])).upsert(turns.arrow(rows))
    (pending,) = turns.table.table.timeline.pending_writes
    return pending.time


def markers(turns, instant):
    """The lines of the files that mark what a pending write is about to name."""
    folder = turns.path / MARKERS / instant
    assert (folder / "MARKERS.type").read_text() == "TIMELINE_SERVER_BASED"
    return [line for file in folder.glob("MARKERS[0-9]*") for line in file.read_text().splitlines()]


def data_files(turns):
    return {path for path in turns.path.glob("c*/*") if path.name != PARTITION_METADATA and path.suffix != ".crc"}


def base_files(turns, instant):
    return list(turns.path.glob(f"*/*_{instant}.parquet"))


def age_heartbeats(turns):
    """As if their writers had been dead for a while."""
    for path in (turns.path / HEARTBEATS).glob("*"):
        os.utime(path, (1, 1))


@pytest.mark.parametrize(
    ("more", "cleaning", "all_named"),
    [({}, EAGER, False), (METADATA_ON, EAGER, True), (METADATA_ON, LAZY, True)],
    ids=["without-metadata-table", "with-metadata-table", "lazily"],
)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_rolls_back_our_write_of_many_files(hudi, tmp_path, table_type, more, cleaning, all_named):
    turns = Turns(hudi, tmp_path / "trips", table_type, more=more)
    turns.create().upsert(across(range(MANY), fare=1, ts=10))
    before = data_files(turns)
    failed = dies(turns, across(range(5, MANY + 5), fare=666, ts=99), all_named=all_named)  # five files are new groups
    lines = markers(turns, failed)
    changes = "MERGE" if table_type == "COPY_ON_WRITE" else "APPEND"
    assert Counter(line.rpartition(".")[2] for line in lines) == {"CREATE": 5, changes: MANY - 5}
    named = {str(path.relative_to(turns.path)) for path in data_files(turns) - before}
    marked = {line.rpartition(".marker.")[0] for line in lines}
    assert named == marked if all_named else len(named) > 40 and named < marked
    age_heartbeats(turns)
    rows = across(range(3), fare=2, ts=20)
    hudi.write(turns.path, turns.arrow(rows), turns.options | cleaning)
    turns.table.merge(rows)
    turns.check("hudi has rolled our write back")
    assert not list(turns.path.glob(f".hoodie/**/{failed}.*"))
    assert not (turns.path / MARKERS / failed).exists()
    assert not base_files(turns, failed)  # logs stay on tables of this version, with a block that ends them


@pytest.mark.parametrize("more", [{}, METADATA_ON], ids=["without-metadata-table", "with-metadata-table"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_we_roll_back_a_write_of_hudi_with_markers_of_its_server(hudi, tmp_path, table_type, more):
    turns = Turns(hudi, tmp_path / "trips", table_type, more=more)
    turns.create()
    turns.we_upsert(across(range(12), fare=1, ts=10))
    turns.hudi_upserts(across(range(2), fare=2, ts=20))
    rows = turns.arrow(across(range(5, 15), fare=666, ts=99))
    for policy in (EAGER, LAZY):
        with pytest.raises(PeerError, match=r"(?i)validat"):
            hudi.write(turns.path, rows, turns.options | BY_ITS_SERVER | FAIL_AFTER_WRITING | policy)
        failed = max(i.time for i in turns.table.table.timeline.pending_writes)
        assert len(markers(turns, failed)) >= 10
        age_heartbeats(turns)
        turns.we_upsert(across(range(4, 6), fare=3, ts=30))
        assert not list(turns.path.glob(f".hoodie/**/{failed}.*"))
        assert not (turns.path / MARKERS / failed).exists()
        assert not base_files(turns, failed)
    turns.hudi_upserts(across(range(5, 15), fare=4, ts=40))
