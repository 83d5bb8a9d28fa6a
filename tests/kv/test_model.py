"""Random histories of a bucket against a dictionary."""

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hoodie.kv.data_files import FORMATS
from tests.effort import SOAK
from tests.kv.stores import KINDS, Place, abandon, binary

KEYS = st.one_of(
    st.integers(0, 30).map(lambda n: b"k%02d" % n), st.sampled_from([b"", b"\x00", b"\xff", b"\xff\xff", b"k" * 300])
)
VALUES = st.one_of(st.none(), st.binary(max_size=60), st.just(b"v" * 500))


class Buckets(RuleBasedStateMachine):
    @initialize(
        kind=st.sampled_from(sorted(KINDS)),
        order=st.sampled_from(["lexicographic", "descending"]),
        file_format=st.sampled_from(sorted(FORMATS)),
    )
    def begin(self, kind, order, file_format):
        self.place = Place(kind)
        self.order = order
        self.rows, self.open, self.stored = {}, {}, {}
        """What is committed, what the open window has, and what is in data files."""
        self.window = 0
        self.writer = self.place.store(buckets=1, order=order, file_format=file_format).writer(0)
        self.reader = self.place.store().reader(0, max_age_s=None)

    @rule(rows=st.lists(st.tuples(KEYS, VALUES), max_size=6))
    def put(self, rows):
        for key, value in rows:
            if value is None:
                self.writer.delete(key)
            else:
                self.writer.put(key, value)
            self.open[key] = value

    @rule(rows=st.lists(st.tuples(KEYS, VALUES), max_size=12))
    def put_many(self, rows):
        self.writer.put_many(binary([key for key, _ in rows]), pa.array([value for _, value in rows], pa.binary()))
        self.open.update(rows)

    @rule(step=st.integers(1, 3))
    def end_window(self, step):
        self.window += step
        assert self.writer.end_window(self.window) is True
        self.rows |= self.open
        self.open = {}

    @rule(back=st.integers(0, 3))
    def end_a_window_again(self, back):
        if self.window:
            assert self.writer.end_window(self.window - back) is False
            self.open = {}

    @rule()
    def drop_window(self):
        self.writer.drop_window()
        self.open = {}

    @rule()
    def flush(self):
        self.writer.flush()
        self.stored = dict(self.rows)

    @rule(rows=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3))
    def flush_in_a_window_and_crash(self, rows):
        """Chance alone seldom does these in a row."""
        self.end_window(1)
        self.put_many(rows)
        self.flush()
        self.put_many(rows[:1])
        self.end_window(1)
        self.crash()

    @rule()
    def compact(self):
        self.writer.compact()
        self.stored = dict(self.rows)

    @rule(bounds=st.tuples(KEYS, KEYS).map(sorted))
    def purge(self, bounds):
        start, stop = bounds if self.order == "lexicographic" else bounds[::-1]
        self.writer.purge(start=start, stop=stop)
        low, high = bounds
        if self.order == "lexicographic":
            self.rows = {key: value for key, value in self.rows.items() if not low <= key < high}
        else:
            self.rows = {key: value for key, value in self.rows.items() if not low < key <= high}
        self.stored = dict(self.rows)

    @rule()
    def close_and_open(self):
        self.writer.close()
        self._opened()

    @rule()
    def crash(self):
        abandon(self.writer)
        self.place = self.place.after_a_crash()
        self._opened()
        self.reader = self.place.store().reader(0, max_age_s=None)

    @rule(buckets=st.integers(1, 3))
    def rebucket_and_back(self, buckets):
        self.writer.close()
        store = self.place.store()
        store.rebucket(buckets)
        store.rebucket(1)
        self._opened()
        self.stored = dict(self.rows)
        self.reader = self.place.store().reader(0, max_age_s=None)

    def _opened(self):
        self.open = {}
        self.writer = self.place.store().writer(0)
        assert (self.writer.last_window or 0) == self.window

    @invariant()
    def reads(self):
        seen = self.rows | self.open
        for key in [*seen, b"absent"]:
            assert self.writer.lookup(key) == seen.get(key)
        keys = [*seen, b"absent", *seen]
        assert self.writer.lookup_many(binary(keys)).to_pylist() == [seen.get(key) for key in keys]
        self.reader.refresh()
        stored = {key: value for key, value in self.stored.items() if value is not None}
        assert self.reader.get_many(binary(keys)).to_pylist() == [stored.get(key) for key in keys]
        found = list(self.reader)
        assert found == sorted(stored.items(), reverse=self.order == "descending")
        assert all(self.reader.get(key) == stored.get(key) for key in keys)

    def teardown(self):
        if hasattr(self, "writer"):
            abandon(self.writer)


TestBuckets = Buckets.TestCase
TestBuckets.settings = settings(max_examples=1_000 if SOAK else 25, stateful_step_count=25, deadline=None)
