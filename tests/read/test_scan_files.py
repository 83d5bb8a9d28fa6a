"""Base files and row copies without their dead rows are the merged rows, whatever happened to the table."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.filegroup.row_copies import read_row_copy
from hoodie.format.log_block import rollback_block
from hoodie.model.names import ROW_COPIES, LogFileName, format_log_file, join, name_of, parse_log_file
from tests.effort import long_but
from tests.memory_tables import Input, batch, keys, new_table, opened
from tests.scan_files import check, plan_of

IDS = st.sampled_from([f"k{n}" for n in range(6)])
PARTS = st.sampled_from(["a", "b/c"])
TIMES = st.one_of(st.none(), st.integers(-2, 4))
ROWS = st.builds(Input, IDS, PARTS, st.integers(0, 9), TIMES, st.sampled_from([False, False, False, True]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.lists(ROWS, min_size=1, max_size=8)),
        st.tuples(st.just("insert"), st.lists(ROWS, min_size=1, max_size=4)),
        st.tuples(st.just("delete"), st.lists(ROWS, min_size=1, max_size=3)),
        st.tuples(st.just("schedule"), st.just(())),
        st.tuples(st.just("compact"), st.just(())),
    ),
    min_size=1,
    max_size=6,
)
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


def apply(table, step):
    what, rows = step
    if what == "upsert":
        table.upsert(batch(rows))
    elif what == "insert":  # keys may be stored twice by it
        table.insert(batch(rows))
    elif what == "delete" and table.timeline.commits:
        table.delete(keys(rows))
    elif what == "schedule":
        table.schedule_compaction()
    elif what == "compact":
        table.compact()


@pytest.mark.parametrize("more", long_but([{}], [{}, BUCKETS]), ids=["bloom", "bucket"])
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event_time", "commit_time"])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(steps=STEPS)
def test_any_history_has_the_same_rows_in_every_view(ordering, more, steps):
    storage, clock = new_table(table_type="MERGE_ON_READ", ordering=ordering, more=more)
    for step in steps:
        apply(opened(storage, clock), step)
    table = opened(storage, clock)
    if not table.timeline.commits:
        return
    assert check(table).rows is None
    times = [instant.time for instant in table.timeline.commits]
    for number, time in enumerate(times):
        check(table, as_of=time)
        check(table, since=times[number - 1] if number else "0", until=times[-1])


def logged_table(*, rounds=2, more=None):
    storage, clock = new_table(table_type="MERGE_ON_READ", more=more)
    rows = [Input(f"k{n}", "a", n, 5) for n in range(6)]
    opened(storage, clock).upsert(batch(rows))
    for number in range(rounds):
        some = [row._replace(val=100 + number, ts=6 + number) for row in rows[number : number + 3]]
        opened(storage, clock).upsert(batch(some))
    return storage, clock


def test_an_upsert_leaves_the_positions_of_the_stored_rows():
    storage, clock = logged_table(rounds=1)
    (info,) = storage.list(ROW_COPIES)
    copy = read_row_copy(storage, info.path, info.size_bytes)
    assert copy.positions.tolist() == [0, 1, 2]
    assert copy.kinds.tolist() == [0, 0, 0]
    found = check(opened(storage, clock))
    assert [list(file.dead) for file in found.files if file.dead is not None] == [[0, 1, 2]]


def test_a_late_row_does_not_hide_the_stored_one():
    storage, clock = logged_table(rounds=0)
    opened(storage, clock).upsert(batch([Input("k1", "a", -1, 4), Input("k2", "a", -2, 5)]))
    (base, copy) = check(opened(storage, clock)).files
    assert base.dead.tolist() == [2]
    assert copy.dead.tolist() == [0]


def spoil(storage, how):
    path = storage.list(ROW_COPIES)[0].path
    data = storage.read(path)
    if how == "missing":
        storage.delete(path)
    elif how == "cut":
        storage.replace(path, data[: len(data) // 2])
    elif how == "foreign":
        storage.replace(path, b"no Parquet at all")
    elif how == "empty":
        storage.replace(path, b"")
    elif how == "of another log":
        other = storage.list(ROW_COPIES)[1].path
        storage.replace(path, storage.read(other))


@pytest.mark.parametrize("how", ["missing", "cut", "foreign", "empty", "of another log"])
def test_a_copy_that_is_not_that_of_the_log_is_passed_over(how):
    storage, clock = logged_table()
    spoil(storage, how)
    assert check(opened(storage, clock)).rows.num_rows


def test_a_log_in_which_the_block_of_a_commit_is_not_found_is_an_error():
    storage, clock = logged_table(rounds=1)
    spoil(storage, "missing")
    log = next(i for i in storage.list("a") if parse_log_file(i.name))
    instant = opened(storage, clock).timeline.commits[-1].time.encode()
    storage.replace(log.path, storage.read(log.path).replace(instant, b"2099" + instant[4:], 1))
    with pytest.raises(CorruptFileError, match="a block or the commit's metadata are damaged"):
        plan_of(opened(storage, clock))


def test_a_log_that_somebody_appended_to_is_decoded():
    storage, clock = logged_table()
    log = next(i for i in storage.list("a") if parse_log_file(i.name))
    storage.replace(
        log.path, storage.read(log.path) + rollback_block(instant="20990101000000000", target="20000101000000000")
    )
    assert check(opened(storage, clock)).rows.num_rows


@pytest.mark.parametrize("of_ours", [True, False])
def test_a_rollback_in_a_later_log_counts_where_it_takes_back_what_a_copy_has(of_ours):
    storage, clock = logged_table()
    logs = [i.path for i in storage.list("a") if parse_log_file(i.name)]
    name = parse_log_file(name_of(logs[-1]))
    target = opened(storage, clock).timeline.commits[-1].time if of_ours else "20000101000000000"
    later = format_log_file(LogFileName(name.file_id, name.base_instant, name.version + 1, "0-0-0"))
    storage.create_new(join("a", later), rollback_block(instant="20990101000000000", target=target))
    if of_ours:
        # A completed commit whose blocks were taken back is damage, with copies as without them.
        with pytest.raises(CorruptFileError):
            plan_of(opened(storage, clock))
    else:
        _scan, found = plan_of(opened(storage, clock))
        assert found.rows is None
        check(opened(storage, clock))


def test_without_the_option_no_copies_are_written():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    rows = [Input("k1", "a", 1, 1)]
    for _ in range(2):
        opened(storage, clock, {"hoodie.python.mor.row.copies": "false"}).upsert(batch(rows))
    assert not storage.list(ROW_COPIES)
    assert check(opened(storage, clock)).rows.num_rows


def test_positions_of_a_base_file_that_compaction_replaced_are_looked_up_again():
    storage, clock = logged_table()
    table = opened(storage, clock)
    table.schedule_compaction()
    opened(storage, clock).upsert(batch([Input("k5", "a", 7, 9), Input("k0", "a", 8, 9)]))
    assert check(opened(storage, clock)).rows is None
    opened(storage, clock).run_compaction()
    assert check(opened(storage, clock)).rows is None
