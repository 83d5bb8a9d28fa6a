"""Random histories of a table whose keys are unique in the whole of it: rows move, and are never twice there and never nowhere."""

from collections.abc import Mapping

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from hoodie.format.layout import V6, V9
from hoodie.options.values import IndexType
from tests.history_model import Entry, History, Key, Model
from tests.kept_keys import index_options
from tests.memory_tables import new_table, snapshot_of
from tests.metadata_tables import KEYS, check_index, trusts_index
from tests.random_histories import ROWS, Histories

RECORD_INDEX = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}


class LeavingModel(Model):
    """A key may leave its file group, whose base file keeps the row in the read-optimized view. That one is known by a longer key."""

    def _leave_behind(self, time, key):
        history = self.keys.get(key)
        if history and history.base_at(None)[1] is not None:
            self._rename(key, (*key, time))

    def stand_in(self, keys, group):
        behind = {
            key[:2] for key, h in self.keys.items() if len(key) > 2 and self.group[key] == group and h.base_at(None)[1]
        }
        super().stand_in(set(keys) - behind, group)

    def restored(self, time):
        super().restored(time)
        self._take_up_again()

    def taken_back(self, time):
        super().taken_back(time)
        self._take_up_again()

    def _take_up_again(self):
        """What was left behind for an instant that has not happened."""
        for key in sorted(key for key in self.keys if len(key) > 2)[::-1]:
            now = self.keys.get(key[:2])
            if now is None or not (now.base or now.logs):
                self._rename(key, key[:2])

    def _rename(self, old, new):
        self.keys[new], self.group[new] = self.keys.pop(old), self.group[old]
        self.planned = {
            time: frozenset(new if key == old else key for key in keys) for time, keys in self.planned.items()
        }


class MovingModel(LeavingModel):
    """An upsert of a key that lives in another partition deletes it there, unless the stored row is newer.

    A deleted row that comes again may go to another file group. Then the old row, which a log deletes, stays in the read-optimized
    view until its file group gets a new base file. It is known by a longer key.
    """

    def write(self, time, rows, *, delete, rewritten, partial=False):
        live = {row[0]: row for row in self.snapshot()}
        newest: dict[str, tuple[Entry, str]] = {}
        for row in rows:
            entry = Entry(time, row.val, None if delete else row.ts, delete or bool(row.deleted))
            before = newest.get(row.id)
            if before is None or self.newer(entry, before[0], logs=False) is entry:
                newest[row.id] = entry, row.part
        known = {(name, part) for name, (_, part) in newest.items() if self.is_stored((name, part))}
        before_rewriting = self._rewrite(time, rewritten)
        for name, (entry, part) in newest.items():
            key = (name, part)
            if partial and name in live:
                entry = entry._replace(ts=live[name][3])
            if name in live and live[name][1] != part:
                _, there, val, ts, written = live[name]
                stored = Entry(written, val, ts, deleted=False)
                if entry.deleted:
                    self.change(time, (name, there), entry, before_rewriting)
                    continue
                if self.onto_base(entry, stored) is stored:
                    continue
                self.change(time, (name, there), Entry(time, None, None, deleted=True), before_rewriting)
                history = before_rewriting.get(key) or self.keys.get(key) or History()
                if key in known and self._in_one_stage(history, entry) is not entry:
                    known.discard(key)  # a delete in the logs there is newer: the row starts anew in another file group
                    self._leave_behind(time, key)
            if key in known:
                self.change(time, key, entry, before_rewriting)
            elif not entry.deleted:
                self.keys.setdefault(key, History()).store(time, entry)


class MovingHistories(Histories):
    model_type = MovingModel
    overwrites = False  # of a partition: they look no keys up

    index = IndexType.GLOBAL_BLOOM

    @rule(which=st.integers(0, 10**6), early=st.integers(0, 2), later=st.integers(0, 2), row=ROWS, back=st.booleans())
    def move_what_a_late_delete_did_not_take_away(self, which, early, later, row, back=False):
        """Chance alone seldom does this; it once made a second row of a key."""
        rows = self.model.snapshot()
        if rows:
            key, part, _, ts, *_ = rows[which % len(rows)]
            late = row._replace(id=key, part=part, ts=None if ts is None else ts - early, deleted=True)
            self.upsert([late])
            there = "a" if part == "b/c" else "b/c"
            moved = row._replace(id=key, part=there, ts=None if ts is None else ts + later, deleted=False)
            self.upsert([moved])
            if back:
                self.upsert([moved._replace(part=part)])

    def new_table(self):
        more = {**index_options(self.index), "hoodie.write.table.version": str(int(self.version.version))}
        return new_table(table_type=self.table_type, ordering=self.ordering, more=more)

    @invariant()
    def no_key_is_in_two_partitions(self):
        ids = [row[0] for row in snapshot_of(self._table())]
        assert len(set(ids)) == len(ids)


class ForgettingModel(LeavingModel):
    """A record index forgets a key whose row is deleted, so that it may go to another file group whenever it comes again."""

    trusts_index = False
    """The next write goes by the record index, not by the files."""
    places: Mapping[Key, str] = {}
    """Key -> the file group that has its row after the next write."""

    def is_stored(self, key):
        return key in {row[:2] for row in self.snapshot()} if self.trusts_index else super().is_stored(key)

    def write(self, time, rows, *, delete, rewritten, partial=False):
        live = {row[:2] for row in self.snapshot()}
        for key in {row[:2] for row in rows} - live:
            group = self.group.get(key)
            if self.places.get(key, group) != group:
                self._leave_behind(time, key)
        super().write(time, rows, delete=delete, rewritten=rewritten, partial=partial)


class IndexedModel(ForgettingModel, MovingModel):
    pass


class ByIndexHistories(Histories):
    """By the record index of a metadata table by partitions, which says where each row is."""

    model_type = ForgettingModel
    always = index_options(IndexType.RECORD_LEVEL_INDEX)
    version = V9
    write_again_what_was_deleted_before_a_compaction_was_scheduled = None  # it goes to another file group

    def _write(self, rows, act, **how):
        self.model.trusts_index = trusts_index(self.storage)
        super()._write(rows, act, **how)

    def _learn(self, rows, **how):
        found = self._table().scan(meta_columns=True).to_arrow().to_pylist()
        self.model.places = {(row["id"], row["part"]): row["_hoodie_file_name"].split("_")[0] for row in found}
        return super()._learn(rows, **how)

    @invariant()
    def the_index_says_where_each_row_is(self):
        """Or nothing, where a rollback has died: what that takes back is still in it."""
        if trusts_index(self.storage):
            check_index(self.storage)


class IndexedHistories(ByIndexHistories, MovingHistories):
    """By one of the whole table."""

    model_type = IndexedModel
    always = RECORD_INDEX | KEYS
    version = V6

    def new_table(self):
        return new_table(table_type=self.table_type, ordering=self.ordering, more=RECORD_INDEX)
