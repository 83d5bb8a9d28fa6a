"""Tables whose columns Apache Hudi renamed, dropped, added again, moved and retyped (`hoodie.schema.on.read.enable`)."""

import json
import re
import shutil

import pytest

import hoodie
from hoodie.errors import CorruptFileError, UnsupportedTableError
from tests.change_feed import check_feed
from tests.golden_tables import FOLDER
from tests.rows import rows_of

NAMES = ["v6_cow", "v6_mor"]


@pytest.fixture(params=NAMES)
def golden(request, tmp_path):
    folder = FOLDER / "schema_on_read" / request.param
    path = shutil.copytree(folder / "table", tmp_path / request.param)
    return path, json.loads((folder / "expected.json").read_text())


def test_rows_are_those_that_apache_hudi_reads_in_every_view(golden):
    path, expected = golden
    table = hoodie.open_table(path)
    assert rows_of(table.scan(meta_columns=True).to_arrow()) == expected["snapshot"]
    assert rows_of(table.scan(query="read_optimized", meta_columns=True).to_arrow()) == expected["read_optimized"]
    for state in expected["time_travel"]:
        found = rows_of(table.scan(as_of=state["as_of"], meta_columns=True).to_arrow())
        assert found == state["rows"], state["as_of"]
    everything = rows_of(table.changes(meta_columns=True).to_arrow())
    assert everything == expected["snapshot"]


def test_a_column_that_was_dropped_and_one_of_the_same_name_are_two(golden):
    path, _ = golden
    table = hoodie.open_table(path)
    # Later Apache Hudi rewrites base files of copy-on-write tables, and copies parts of structs by their names.
    altered = table.timeline.commits[-3].time
    found = {row["id"]: row for row in table.scan(columns=["id", "a", "s"], as_of=altered).to_arrow().to_pylist()}
    assert found["k2"] == {"id": "k2", "a": 22, "s": {"xx": 22, "y": None}}  # its s.y was dropped, too
    assert found["k5"] == {"id": "k5", "a": None, "s": None}  # a was 5 in its file
    assert table.scan(columns=["bb"], where="a = 44").to_arrow().to_pylist() == [{"bb": "b44"}]
    assert table.scan(columns=["a"], where="bb = 'b5'").to_arrow().to_pylist() == [{"a": None}]


def test_the_change_feed_has_the_columns_of_now(golden):
    path, _ = golden
    table = hoodie.open_table(path)
    first = table.timeline.commits[0]
    feed = table.changes(until=first.position, images="before_after", columns=["id", "a", "bb"]).to_arrow()
    assert {row["after"]["id"]: row["after"]["bb"] for row in feed.to_pylist()}["k1"] == "b1"
    assert {row["after"]["a"] for row in feed.to_pylist()} == {None}
    assert table.changes(images="before_after").count() == 9


def test_writes_and_services_keep_the_rows_and_the_history(golden):
    path, _ = golden
    table = hoodie.open_table(path, options={"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"})
    rows = table.scan().to_arrow()
    expected = {row["id"]: row for row in rows.to_pylist()}
    table.upsert([{**expected["k2"], "bb": "ours", "ts": 99}])
    expected["k2"] |= {"bb": "ours", "ts": 99}
    if path.name == "v6_mor":
        assert table.compact()
    table.cluster(sort_by=["bb"])
    table.upsert([{"id": "k5", "part": "q", "ts": 99, "f": 0.25}], partial=True)
    expected["k5"] |= {"f": 0.25, "ts": 99}
    table.delete(["k4"])
    del expected["k4"]
    assert {row["id"]: row for row in hoodie.open_table(path).scan().to_arrow().to_pylist()} == expected
    assert (
        json.loads(table._context.active.read_commit(table.timeline.commits[-1]).extra["latest_schema"])[
            "max_column_id"
        ]
        == 17
    )
    assert table.changes(images="before_after", since=table.timeline.commits[-4].position).count() == 2
    table.insert_overwrite(rows.slice(0, 1))
    assert table.scan(where=f"part = '{rows['part'][0]}'").count() == 1


def test_without_the_history_files_the_commits_say_enough_until_they_do_not(golden):
    path, expected = golden
    (history,) = (path / ".hoodie" / ".schema").glob("*.schemacommit")
    text = history.read_text()
    history.unlink()
    table = hoodie.open_table(path)
    with pytest.raises(
        UnsupportedTableError, match=r"before the history of the table's columns begins.*restore .hoodie/.schema"
    ):
        table.scan().to_arrow()  # the first commit states no version
    history.write_text(text[: len(text) // 2])
    with pytest.raises(CorruptFileError, match=r"\.schemacommit: the schema of columns with ids is not JSON"):
        table.scan()
    history.write_text(text)
    assert rows_of(table.scan(meta_columns=True).to_arrow()) == expected["snapshot"]


def test_a_history_of_an_instant_that_never_completed_does_not_count(golden):
    path, expected = golden
    (history,) = (path / ".hoodie" / ".schema").glob("*.schemacommit")
    (history.parent / "20991231000000000.schemacommit").write_text("{}")
    assert rows_of(hoodie.open_table(path).scan(meta_columns=True).to_arrow()) == expected["snapshot"]


def test_columns_changed_by_a_writer_that_lost_the_history_are_refused(golden):
    path, _ = golden
    newest = max((path / ".hoodie").glob("*commit"), key=lambda file: file.name)
    metadata = json.loads(newest.read_text())
    del metadata["extraMetadata"]["latest_schema"]
    newest.write_text(json.dumps(metadata))
    table = hoodie.open_table(path)
    assert table.scan().count() == 4  # the same columns: nothing was lost
    metadata["extraMetadata"]["schema"] = re.sub(r'"name": ?"bb"', '"name":"b"', metadata["extraMetadata"]["schema"])
    newest.write_text(json.dumps(metadata))
    with pytest.raises(UnsupportedTableError, match=r"changed columns without hoodie\.schema\.on\.read\.enable"):
        table.scan()
    with pytest.raises(UnsupportedTableError, match="changed columns without"):
        table.delete(["k1"])


def test_the_feed_of_a_table_before_its_columns_changed_leads_from_state_to_state(golden):
    path, _ = golden
    table = hoodie.open_table(path)
    for file in (path / ".hoodie").glob("*.*commit*"):
        if file.name[:17] > table.timeline.commits[0].time:
            file.unlink()
    shutil.rmtree(path / ".hoodie" / ".schema")
    check_feed(hoodie.open_table(path))
