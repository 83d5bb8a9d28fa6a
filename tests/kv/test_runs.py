"""Which files are merged, and that files of one run never overlap."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.kv.manifest import DataFile
from hoodie.kv.runs import MOST_RUNS, cuts, merge_all, overlaps, plan_merge, run_for
from tests.effort import SOAK
from tests.kv.stores import Place, abandon


def file(name, run, first, last, size=100, *, has_deletes=False):
    return DataFile(name, run, first, last, 1, size, 0.0, has_deletes)


def check_apart(files):
    for one in files:
        assert one.first <= one.last
        for other in files:
            assert one is other or one.run != other.run or not overlaps(one, other.first, other.last)


def test_new_rows_go_above_what_they_overlap():
    files = [file("a", 1, b"b", b"d"), file("b", 2, b"c", b"c"), file("c", 1, b"k", b"m")]
    assert run_for(files, b"e", b"f") == 1
    assert run_for(files, b"d", b"f") == 2
    assert run_for(files, b"c", b"f") == 3
    assert run_for([], b"c", b"f") == 1


def test_older_runs_are_taken_along_when_they_are_not_much_larger():
    sizes = [100_000, 9_000, 1_000, 200, 100]
    files = [file(str(run), run, b"a", b"z", size) for run, size in enumerate(sizes, 1)]
    assert plan_merge(files[:MOST_RUNS]) is None
    merge = plan_merge(files)
    assert [each.run for each in merge.files] == [4, 5]
    assert merge.run == 4
    assert not merge.drops_deletes
    near = [file(str(run), run, b"a", b"z", 100) for run in range(1, 6)]
    assert len(plan_merge(near).files) == 5
    assert plan_merge(near).drops_deletes


def test_a_file_that_overlaps_nothing_only_moves():
    files = [file("a", 1, b"a", b"c"), file("b", 2, b"b", b"d"), file("c", 2, b"x", b"y"), file("d", 3, b"d", b"e")]
    merge = merge_all(files)
    assert [each.name for each in merge.moved] == ["c"]
    assert [each.run for each in merge.moved] == [1]
    assert cuts(merge.files) == [(b"a", b"b"), (b"b", b"d"), (b"d", None)]


@settings(max_examples=400 if SOAK else 25, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 60), st.none() | st.integers(0, 300), min_size=1, max_size=12),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
def test_files_of_a_run_never_overlap_whatever_is_flushed(flushes, compacts):
    writer = Place().store(buckets=1).writer(0)
    rows = {}
    for window, flush in enumerate(flushes, 1):
        for n, size in flush.items():
            key = b"%02d" % n
            if size is None:
                writer.delete(key)
                rows.pop(key, None)
            else:
                writer.put(key, b"v" * size)
                rows[key] = b"v" * size
        writer.end_window(window)
        writer.flush()
        check_apart(writer.files.manifest.files)
    if compacts:
        writer.compact()
        check_apart(writer.files.manifest.files)
        assert len({each.run for each in writer.files.manifest.files}) <= 1
    found = {}
    for part in writer.files.scan():
        found |= zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)
    assert found == rows
    assert {key: writer.lookup(key) for key in rows} == rows
    abandon(writer)
