"""In any history of writes, services, restores and crashes a named consumer sees every change, and where it does not die, once.

HOODIE_SOAK=1 runs many more and longer histories.
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from hoodie.errors import InstantNotFoundError
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from tests.change_feed import apply, by_key
from tests.effort import SOAK
from tests.memory_tables import opened, plain
from tests.random_histories import MOMENTS, ROWS, Histories, play

DEATHS = st.sampled_from([None, None, None, "loading", "committing"])


class Died(Exception):
    """The job that reads came no further."""


def key_of(row):
    return row["id"], row["part"]


class Consumed(Histories):
    """Beside a random history, one consumer of the feed that keeps a copy of the table, and one that pulls newest states."""

    ordering = None
    """With one, a compaction may change a row (docs/CONCURRENCY.md, "During a compaction"), which no feed tells."""

    @initialize(pack=st.booleans(), parquet=st.booleans(), cheap=st.booleans(), follows=st.booleans())
    def begin(self, pack, parquet, cheap, follows):
        super().begin(pack, parquet, cheap, follows=follows)
        self.copies = {None: {}}
        """Position of the feed's consumer -> what its copy is there: what dies after it has loaded begins again from there."""
        with self._table().consumer("feed") as consumer:
            assert consumer.changes(images="before_after").to_arrow().num_rows == 0
        with self._table().consumer("pull") as consumer:
            assert consumer.changes().count() == 0

    @rule(death=DEATHS, moment=MOMENTS)
    def follow(self, death=None, moment="after"):
        table, storage = self._table(), self.storage
        if death == "committing":
            storage = FaultStorage(storage, [Fault(1, moment)])
        consumer = opened(storage, self.clock, self.options).consumer("feed")
        before = consumer.position
        if before is not None and before not in {*self.known, *self.archived}:
            self._is_told(consumer)
            return
        end = rows = None
        try:
            with consumer:
                feed = consumer.changes(images="before_after").to_arrow().to_pylist()
                end = consumer._until or None
                rows = dict(self.copies[before])
                apply(feed, rows, key_of)
                assert rows == self._rows_at(table, end)
                if death == "loading":
                    raise Died
        except (Died, InjectedFault):
            pass
        self.copies[end] = rows
        moved = death is None or (death == "committing" and moment == "after")
        assert table.consumer("feed").position == (end if moved else before)

    def _is_told(self, consumer):
        """The table was taken back to before the place; the reader begins anew."""
        with pytest.raises(InstantNotFoundError, match="consumer 'feed' stands at"):
            consumer.changes(images="before_after")
        healthy = self._table().consumer("feed")
        healthy.seek("latest")
        self.copies[healthy.position] = self._rows_at(self._table(), healthy.position)

    @rule(dies=st.booleans())
    def pull(self, dies=False):
        consumer = self._table().consumer("pull")
        before = consumer.position
        if before is not None and before not in {*self.known, *self.archived}:
            with pytest.raises(InstantNotFoundError, match="seek"):
                consumer.changes()
            consumer.seek("latest")
            return
        end = None
        try:
            with consumer:
                found = plain(consumer.changes(meta_columns=True))
                end = consumer._until or None
                assert found == (self.model.incremental(before, end) if end else [])
                if dies:
                    raise Died
        except Died:
            end = before
        assert self._table().consumer("pull").position == end

    def _rows_at(self, table, position):
        return {} if position is None else by_key(table.scan(as_of=position).to_arrow().to_pylist(), key_of)

    def _both(self):
        self.follow()
        self.pull()

    @rule(back=st.integers(0, 4), write=ROWS)
    def restore(self, back, write):
        super().restore(back, write)
        self._both()

    @rule(dies=st.booleans(), at=st.integers(1, 16), moment=MOMENTS)
    def roll_back_the_newest(self, dies, at, moment):
        super().roll_back_the_newest(dies, at, moment)
        self._both()

    def teardown(self):
        if hasattr(self, "known"):
            if not self.recovered:
                self._table().rollback()
                self.recovered = True
            self._both()
            assert self.copies[self._table().consumer("feed").position] == by_key(
                self._table().scan().to_arrow().to_pylist(), key_of
            )
        super().teardown()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_consumer_sees_every_change_of_any_history(kind):
    machine = type("Machine", (Consumed,), {"table_type": kind})
    examples, steps = (500, 60) if SOAK else (6, 16)
    play(machine, examples, steps)
