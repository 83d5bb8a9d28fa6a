"""Random histories of a table whose keys are unique in the whole of it: rows move, and are never twice there and never nowhere."""

from hypothesis.stateful import invariant

from hoodie.options.values import IndexType
from tests.history_model import Entry, History, Model
from tests.kept_keys import index_options
from tests.memory_tables import new_table, snapshot_of
from tests.metadata_tables import KEYS, check_index, trusts_index
from tests.random_histories import Histories

RECORD_INDEX = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}


class MovingModel(Model):
    """An upsert of a key that lives in another partition deletes it there, unless the stored row is newer."""

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
            if key in known:
                self.change(time, key, entry, before_rewriting)
            elif not entry.deleted:
                self.keys.setdefault(key, History()).store(time, entry)


class MovingHistories(Histories):
    model_type = MovingModel
    overwrites = False  # of a partition: they look no keys up

    index = IndexType.GLOBAL_BLOOM

    def new_table(self):
        more = {**index_options(self.index), "hoodie.write.table.version": str(int(self.version.version))}
        return new_table(table_type=self.table_type, ordering=self.ordering, more=more)

    @invariant()
    def no_key_is_in_two_partitions(self):
        ids = [row[0] for row in snapshot_of(self._table())]
        assert len(set(ids)) == len(ids)


class IndexedModel(MovingModel):
    """A record index forgets a key whose row is deleted: it starts anew."""

    def is_stored(self, key):
        return key in {row[:2] for row in self.snapshot()}


class IndexedHistories(MovingHistories):
    """By the record index of a metadata table, which says where each row is."""

    model_type = IndexedModel
    always = RECORD_INDEX | KEYS
    write_again_what_was_deleted_before_a_compaction_was_scheduled = None  # it goes to another file group

    def new_table(self):
        return new_table(table_type=self.table_type, ordering=self.ordering, more=RECORD_INDEX)

    @invariant()
    def the_index_says_where_each_row_is(self):
        """Or nothing, where a rollback has died: what that takes back is still in it."""
        if trusts_index(self.storage):
            check_index(self.storage)
