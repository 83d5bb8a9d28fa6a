"""Files of the LSM timeline as Apache Hudi writes them: the golden table v9_archived is the witness."""

import io
import json

import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.archive import decode_lsm_file, decode_manifest
from hoodie.format.archive_entries import StateFile
from hoodie.format.archive_lsm import LsmFile, encode_lsm, encode_manifest, lsm_level, lsm_name, lsm_without, merged_lsm
from hoodie.format.layout import V9
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from tests.golden_tables import FOLDER

HISTORY = FOLDER / "v9_archived" / "table" / ".hoodie" / "timeline" / "history"
TIMELINE = HISTORY.parent


def rows_of(data):
    return pq.read_table(io.BytesIO(data)).to_pylist()


def golden_files():
    return sorted(HISTORY.glob("*.parquet"))


def state_files_of(rows):
    """The files of the timeline that rows of the archive were made of."""
    found = []
    for row in rows:
        action, time = Action(row["action"]), InstantTime(row["instantTime"])
        before = Action.COMPACTION if row["plan"] and action is Action.COMMIT else action
        found.append(StateFile(Instant(time, before, State.REQUESTED), row["plan"] or b"", time))
        found.append(StateFile(Instant(time, before, State.INFLIGHT), b"", time))
        completed = Instant(time, action, State.COMPLETED, InstantTime(row["completionTime"]))
        found.append(StateFile(completed, row["metadata"], time))
    return found


@pytest.mark.parametrize("path", golden_files(), ids=lambda path: path.name)
def test_rows_and_schema_are_those_of_apache_hudi(path):
    theirs = path.read_bytes()
    ours = encode_lsm(state_files_of(rows_of(theirs)), folder="timeline")
    assert rows_of(ours) == rows_of(theirs)
    mine, other = pq.ParquetFile(io.BytesIO(ours)), pq.ParquetFile(io.BytesIO(theirs))
    assert [str(mine.schema.column(n)) for n in range(6)] == [str(other.schema.column(n)) for n in range(6)]
    assert mine.metadata.row_group(0).column(0).compression == other.metadata.row_group(0).column(0).compression
    instants = decode_lsm_file(ours, path="x")
    assert lsm_name([i.time for i in instants], lsm_level(path.name)) == path.name
    assert json.loads(mine.metadata.metadata[b"parquet.avro.schema"])["name"] == "HoodieLSMTimelineInstant"


def test_a_manifest_is_that_of_apache_hudi():
    for path in HISTORY.glob("manifest_*"):
        theirs = json.loads(path.read_bytes())
        files = [LsmFile(each["fileName"], each["fileLen"]) for each in theirs["files"]]
        assert json.loads(encode_manifest(files)) == theirs
        assert decode_manifest(encode_manifest(files), path="m") == tuple(file.name for file in files)


def test_the_states_of_the_active_timeline_make_rows_with_the_plans_that_hudi_keeps():
    names = [path.name for path in TIMELINE.iterdir() if path.is_file()]
    files = [
        StateFile(instant, (TIMELINE / name).read_bytes(), instant.time)
        for name in names
        if (instant := V9.parse(name)) is not None
    ]
    rows = rows_of(encode_lsm(files, folder="timeline"))
    assert {row["action"] for row in rows if row["plan"] is None} <= {"commit", "deltacommit", "savepoint"}
    assert all(row["metadata"] for row in rows)
    assert [row["instantTime"] for row in rows] == sorted(row["instantTime"] for row in rows)


def test_files_are_put_together_and_instants_taken_out():
    first, second, *_ = (path.read_bytes() for path in golden_files())
    data, instants = merged_lsm({"a": first, "b": second, "c": first})
    assert (
        [row["instantTime"] for row in rows_of(data)]
        == [i.time for i in instants]
        == sorted({i.time for i in instants})
    )
    gone = frozenset({instants[0].time})
    assert [i.time for i in decode_lsm_file(lsm_without(data, gone, path="x"), path="x")] == [
        i.time for i in instants[1:]
    ]
    assert lsm_without(data, frozenset(i.time for i in instants), path="x") == b""


def test_what_was_completed_without_a_time_is_refused():
    old = StateFile(
        Instant(InstantTime("20260101000000000"), Action.COMMIT, State.COMPLETED), b"{}", "20260101000000001"
    )
    with pytest.raises(CorruptFileError, match="names no time of completion"):
        encode_lsm([old], folder="timeline")
    assert encode_lsm([], folder="timeline") == b""
