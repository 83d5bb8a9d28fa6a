"""The change feed: what each commit inserted, updated and deleted, with the rows before and after."""

import json
import shutil
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InstantNotFoundError, OptionError
from hoodie.options.parse import parse_read_options
from tests.change_feed import changes_of, check_feed
from tests.golden_tables import FOLDER, copy_golden, golden_names
from tests.memory_tables import KEEP_ALL, Input, batch, keys, new_table, opened
from tests.rows import rows_of

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
COLUMNS = ["id", "val"]


def row(name: str, val: int) -> dict[str, Any]:
    return {"id": name, "val": val}


@pytest.fixture(params=KINDS)
def table(request):
    storage, clock = new_table(table_type=request.param)
    return opened(storage, clock)


def test_inserts_updates_and_deletes_are_told_with_both_rows_and_what_stays_is_not(table):
    first = table.upsert(batch([Input("a", "p", 1, 1), Input("b", "p", 2, 1), Input("c", "p", 3, 1)]))
    second = table.upsert(batch([Input("b", "p", 20, 2), Input("d", "p", 4, 2)]))
    third = table.delete(keys([Input("a", "p"), Input("unknown", "p")]))
    assert changes_of(table, until=first.position, columns=COLUMNS) == [
        ("i", None, row(name, val)) for name, val in (("a", 1), ("b", 2), ("c", 3))
    ]
    assert changes_of(table, first.position, second.position, columns=COLUMNS) == [
        ("i", None, row("d", 4)),
        ("u", row("b", 2), row("b", 20)),
    ]
    assert changes_of(table, second.position, columns=COLUMNS) == [("d", row("a", 1), None)]
    feed = table.changes(images="before_after").to_arrow()
    assert feed.column_names == ["op", "instant", "before", "after"]
    in_order = [first.instant] * 3 + [second.instant] * 2 + [third.instant]
    assert feed["instant"].to_pylist() == in_order
    check_feed(table)


def test_a_late_row_changes_nothing_and_a_tie_is_an_update(table):
    table.upsert(batch([Input("a", "p", 1, 5), Input("b", "p", 2, 5)]))
    done = table.upsert(batch([Input("a", "p", 10, 4), Input("b", "p", 2, 5)]))
    assert changes_of(table, table.history()[0].position, done.position, columns=COLUMNS) == [
        ("u", row("b", 2), row("b", 2))
    ]


def test_a_key_that_comes_back_is_an_insert(table):
    table.upsert(batch([Input("a", "p", 1, 1)]))
    gone = table.upsert(batch([Input("a", "p", 0, 2, True)]))
    back = table.upsert(batch([Input("a", "p", 3, 3)]))
    assert changes_of(table, gone.position, back.position, columns=COLUMNS) == [("i", None, row("a", 3))]
    check_feed(table)


def test_equal_writes_give_equal_feeds_on_both_table_types():
    feeds = []
    for kind in KINDS:
        storage, clock = new_table(table_type=kind)
        table = opened(storage, clock)
        table.upsert(batch([Input(f"k{n}", "pq"[n % 2], n, n) for n in range(8)]))
        table.upsert(batch([Input(f"k{n}", "pq"[n % 2], 10 * n, 5) for n in range(8)]))
        table.delete(keys([Input("k3", "q"), Input("k7", "q")]))
        table.insert_overwrite(batch([Input("k9", "p", 9, 9), Input("k0", "p", 7, 7)]))
        table.delete_partitions(["q"])
        feeds.append(
            [changes_of(table, since, until) for since, until in zip([None, *_ends(table)], _ends(table), strict=False)]
        )
        check_feed(table)
    assert feeds[0] == feeds[1]
    assert [op for op, _, _ in feeds[0][-1]] == ["d"] * 2


def _ends(table):
    return [instant.position for instant in table.timeline.commits]


def test_compaction_changes_nothing():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(batch([Input("a", "p", 1, 1), Input("b", "p", 1, 1)]))
    table.upsert(batch([Input("a", "p", 2, 2)]))
    scheduled = table.schedule_compaction()
    table.upsert(batch([Input("a", "p", 3, 3), Input("b", "p", 2, 2)]))
    table.run_compaction()
    table.upsert(batch([Input("a", "p", 4, 4)]))
    before = max(end for end in _ends(table) if end < scheduled)
    assert changes_of(table, before, scheduled) == []
    check_feed(table)


def test_rows_of_a_key_that_is_stored_twice_are_told_one_by_one(table):
    table.insert(batch([Input("a", "p", 1, 1), Input("a", "p", 2, 2), Input("b", "p", 0, 0)]))
    check_feed(table)
    assert len(changes_of(table)) == len(table.scan().to_arrow())
    table.insert(batch([Input("a", "p", 3, 3)]))
    table.upsert(batch([Input("a", "p", 4, 4)]))
    table.delete(keys([Input("a", "p")]))
    check_feed(table)


def test_a_condition_takes_changes_that_fit_on_either_side(table):
    first = table.upsert(batch([Input("a", "p", 1, 1), Input("b", "p", 5, 1), Input("c", "p", 9, 1)]))
    table.upsert(batch([Input("a", "p", 5, 2), Input("b", "p", 1, 2), Input("c", "p", 8, 2)]))
    found = changes_of(table, first.position, columns=["id"], where="val = 5")
    assert found == [("u", {"id": "a"}, {"id": "a"}), ("u", {"id": "b"}, {"id": "b"})]
    assert table.changes(first.position, images="before_after", where="val > 100").count() == 0


def test_rows_show_the_columns_of_now(table):
    table.upsert(batch([Input("a", "p", 1, 1)]))
    wide = batch([Input("a", "p", 2, 2)]).append_column("extra", pa.array(["new"]))
    done = table.upsert(wide)
    since = table.history()[0].position
    assert changes_of(table, since, done.position, columns=["val", "extra"]) == [
        ("u", {"val": 1, "extra": None}, {"val": 2, "extra": "new"})
    ]


def test_meta_columns_are_in_the_rows_where_asked_for(table):
    done = table.upsert(batch([Input("a", "p", 1, 1)]))
    (after,) = [after for _, _, after in changes_of(table, meta_columns=True)]
    assert (after["_hoodie_commit_time"], after["_hoodie_record_key"]) == (done.instant, "a")


def test_an_empty_table_and_an_empty_range_have_no_changes(table):
    assert changes_of(table) == []
    done = table.upsert(batch([Input("a", "p", 1, 1)]))
    assert changes_of(table, done.position, done.position) == []
    with pytest.raises(OptionError, match="the range of the change feed is empty"):
        table.changes(done.position, "20000101000000000", images="before_after")
    with pytest.raises(OptionError, match="images='after' is none of latest_state, cdc, before_after"):
        table.changes(images="after")


def test_the_option_of_apache_hudi_gives_its_columns(table):
    table.upsert(batch([Input("a", "p", 1, 1)]))
    done = table.upsert(batch([Input("a", "p", 2, 2)]))
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
        "hoodie.datasource.query.incremental.format": "cdc",
    }
    found = table.read(parse_read_options(options)).to_arrow()
    assert found.schema == pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
    _, update = found.to_pylist()
    assert (update["op"], update["ts_ms"]) == ("u", done.instant)
    assert json.loads(update["before"]) == {"id": "a", "part": "p", "val": 1, "ts": 1, "_hoodie_is_deleted": False}
    assert json.loads(update["after"])["val"] == 2
    assert table.changes(images="cdc").count() == 2


def test_a_range_whose_files_were_cleaned_names_the_earliest_that_is_left(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="part", ordering="ts")
    results = [table.upsert(batch([Input("a", "p", n, n)])) for n in range(4)]
    oldest, second = sorted((tmp_path / "t" / "p").glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])[:2]
    oldest.unlink()
    with pytest.raises(
        InstantNotFoundError, match=f"the earliest instant to read changes since is {results[1].position}"
    ):
        table.changes(images="before_after")
    found = changes_of(table, results[1].position, columns=COLUMNS)
    assert found == [("u", row("a", n), row("a", n + 1)) for n in (1, 2)]
    second.unlink()
    with pytest.raises(InstantNotFoundError, match=f"is {results[2].position}, the latest {results[3].position}"):
        table.changes(results[1].position, images="before_after")


def test_a_range_whose_commits_were_archived_names_the_earliest_that_is_left(tmp_path):
    table = hoodie.open_table(copy_golden("v6_archived", tmp_path).path)
    with pytest.raises(InstantNotFoundError, match="commits of the range were archived; the earliest instant") as told:
        table.changes(images="before_after")
    since = str(told.value).partition("read changes since is ")[2][:17]
    with pytest.raises(InstantNotFoundError) as told:
        table.changes(since, images="before_after")
    since = str(told.value).partition("read changes since is ")[2][:17]
    rows = {op: after for op, _, after in changes_of(table, since)}
    assert rows


@pytest.mark.parametrize("name", [name for name in golden_names() if name != "v6_archived"])
def test_changes_of_golden_tables_lead_from_state_to_state(name, tmp_path):
    table = hoodie.open_table(copy_golden(name, tmp_path).path)
    try:
        feed = table.changes(images="before_after")
    except InstantNotFoundError:
        pytest.skip("its files were cleaned")
    assert feed.count()
    check_feed(table)


@pytest.mark.parametrize("name", ["v6_cow", "v9_mor"])
def test_tables_with_change_logs_read_as_apache_hudi_reads_them(name, tmp_path):
    path = shutil.copytree(FOLDER / "cdc" / name / "table", tmp_path / name)
    expected = json.loads((FOLDER / "cdc" / name / "expected.json").read_text())
    table = hoodie.open_table(path)
    assert rows_of(table.scan(meta_columns=True).to_arrow()) == expected["snapshot"]
    assert [pull["end"] for pull in expected["cdc"]] == _ends(table)
    for pull in expected["cdc"]:
        begin = None if pull["begin"] == "000" else pull["begin"]
        found = table.changes(begin, pull["end"], images="cdc").to_arrow().to_pylist()
        assert as_events(found) == as_events(pull["rows"]), pull["end"]
    check_feed(table)


def as_events(rows):
    """Without what Apache Hudi's texts have by the way they were found: meta columns, and nulls or their absence."""
    found = []
    for row in rows:
        images = [json.loads(row[side] or "null") for side in ("before", "after")]
        bare = [
            image and {n: v for n, v in image.items() if v is not None and not n.startswith("_hoodie_")}
            for image in images
        ]
        found.append((row["op"], row["ts_ms"], *bare))
    return sorted(found, key=repr)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_feed_of_an_overwrite_applied_in_order_gives_its_rows(tmp_path, table_type):
    """Keys stay, go, come, and move between partitions; file ids are random, so it is done several times."""
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="p", table_type=table_type, options=KEEP_ALL
    )
    table.upsert(pa.table({"id": ["a", "b", "c"], "p": ["1", "1", "2"], "v": [0, 0, 0]}))
    for turn in range(1, 6):
        moved = [str((turn + n) % 2) for n in range(2)]
        table.insert_overwrite_table(pa.table({"id": ["a", "c"], "p": moved, "v": [turn] * 2}))
        table.insert_overwrite(pa.table({"id": ["d"], "p": ["9"], "v": [turn]}))
        table.delete_partitions(["9"])
        table.upsert(pa.table({"id": ["a"], "p": moved[:1], "v": [-turn]}))
    rows, since = {}, None
    for instant in table.timeline.commits:
        for change in table.changes(since, instant.position, images="before_after").to_arrow().to_pylist():
            if change["op"] == "d":
                del rows[change["before"]["id"]]
            else:
                rows[change["after"]["id"]] = change["after"]
        since = instant.position
        then = table.scan(as_of=instant.time).to_arrow().to_pylist()
        assert rows == {row["id"]: row for row in then}, instant
