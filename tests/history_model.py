"""What a table must say after any history of writes, in plain Python: no Arrow, no files, one dict entry a key.

Hudi's merge-on-read merges in two stages, so the model knows of each key which rows stood in base files, from which
instant on, and what logs said since. Writers see to it that no deleted row comes back by that, and the model that they
do. It is told by the table where a key went (file group; log or base file): that is the writer's choice. What the rows
are, it works out by itself.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.memory_tables import Input, Row

Key = tuple[str, str]
At = Callable[[str], str]
"""Where an instant lies in pulls."""


class Entry(NamedTuple):
    """A row or a delete, stamped with the instant that wrote it."""

    time: str
    val: int | None
    ts: int | None
    deleted: bool


class LogCompaction(NamedTuple):
    """What a log compaction made of a key's entries before its plan (None: there were none)."""

    time: str
    newest: str
    """Of the instants whose blocks it merged, of all keys of the file group."""
    entry: Entry | None


@dataclass
class History:
    """Of one key: base rows by the instant of their file (None: not in that file), and log entries in order."""

    base: list[tuple[str, Entry | None]] = field(default_factory=list)
    logs: list[Entry] = field(default_factory=list)
    merged: list[LogCompaction] = field(default_factory=list)

    def base_at(self, until: str | None, at: At = str) -> tuple[str, Entry | None]:
        return max((b for b in self.base if until is None or at(b[0]) <= until), key=lambda b: b[0], default=("", None))

    def store(self, time: str, row: Entry | None) -> None:
        """In the base file of an instant."""
        self.base = [*(each for each in self.base if each[0] != time), (time, row)]

    def logs_after(self, base_time: str, until: str | None, since: str | None = None, at: At = str) -> list[Entry]:
        """What readers of (since, until] merge. What a log compaction wrote stands for all before it, where any of that is seen."""
        first = max(base_time, since or "")
        found = [e for e in self.logs if at(e.time) > first and (until is None or at(e.time) <= until)]
        seen = [m for m in self.merged if at(m.time) > first and (until is None or at(m.time) <= until)]
        if since is None or not seen:
            return found
        last = max(seen)
        if at(last.newest) <= since or last.entry is None:
            return [e for e in found if e.time > last.time]
        return [last.entry, *(e for e in found if e.time > last.time)]


class Model:
    def __init__(self, *, event_time: bool, merge_on_read: bool) -> None:
        self.event_time = event_time
        self.merge_on_read = merge_on_read
        self.keys: dict[Key, History] = {}
        self.group: dict[Key, str] = {}
        """Key -> id of the file group that holds it, as the table says; of a deleted row, that which held it last."""
        self.group_after: dict[str, dict[Key, str]] = {}
        """The same after each commit."""
        self.told: frozenset[str] = frozenset()
        """The commits that are not archived: the others do not say any more that they deleted rows."""
        self.planned: dict[str, frozenset[Key]] = {}
        """Pending compaction -> keys that were in its file groups when it was scheduled."""

    # -- rules of merging --------------------------------------------------------------------------------------------

    def newer(self, new: Entry, old: Entry, *, logs: bool) -> Entry:
        """Of two entries of one stage; `new` was written later. In logs a delete leaves an older one that always wins."""
        if logs and self.event_time and new.deleted and self._always_wins(old):
            return old
        if not self.event_time or self._always_wins(new) or self._always_wins(old):
            return new
        return new if (-99 if new.ts is None else new.ts) >= (-99 if old.ts is None else old.ts) else old

    def onto_base(self, new: Entry, old: Entry | None) -> Entry | None:
        live = None if new.deleted else new
        if old is None or not self.event_time or self._always_wins(new):
            return live
        return live if (-99 if new.ts is None else new.ts) >= (-99 if old.ts is None else old.ts) else old

    @staticmethod
    def _always_wins(entry: Entry) -> bool:
        return entry.deleted and entry.ts is None

    def reduce(self, entries: Iterable[Entry], *, logs: bool = False) -> Entry | None:
        winner: Entry | None = None
        for entry in entries:
            winner = entry if winner is None else self.newer(entry, winner, logs=logs)
        return winner

    # -- writes ------------------------------------------------------------------------------------------------------

    def stand_in(self, keys: Iterable[Key], group: str) -> None:
        """The table says that a file group has rows of these keys."""
        self.group.update(dict.fromkeys(keys, group))

    def stood(self, time: str) -> None:
        """All that stands where it does after this commit was said."""
        self.group_after[time] = dict(self.group)

    def is_stored(self, key: Key) -> bool:
        """In a base file, or only in logs: those written after a delete while a compaction was pending."""
        history = self.keys.get(key)
        if history is None:
            return False
        time, row = history.base_at(None)
        return row is not None or bool(history.logs_after(time, None))

    def write(
        self, time: str, rows: Iterable[Input], *, delete: bool, rewritten: frozenset[str], partial: bool = False
    ) -> None:
        """An upsert, or a delete of the rows' keys; `rewritten`: ids of groups whose base file it rewrote.

        `partial`: the rows have no `ts`, so stored ones keep theirs.
        """
        stored_rows = {row[:2]: row for row in self.snapshot()} if partial else {}
        by_key: dict[Key, list[Entry]] = {}
        for row in rows:
            entry = Entry(time, row.val, None if delete else row.ts, delete or bool(row.deleted))
            by_key.setdefault((row.id, row.part), []).append(entry)
        known = {key for key in by_key if self.is_stored(key)}
        before = self._rewrite(time, rewritten)
        for key, entries in by_key.items():
            entry = self.reduce(entries)
            assert entry is not None
            if key in stored_rows:
                entry = entry._replace(ts=stored_rows[key][3])
            if key in known:
                self.change(time, key, entry, before)
            elif not entry.deleted:
                self.keys.setdefault(key, History()).store(time, entry)

    def _rewrite(self, time: str, groups: frozenset[str]) -> dict[Key, History]:
        """These file groups get new base files; gives what was known of their keys before."""
        before = {key: history for key, history in self.keys.items() if self.group.get(key) in groups}
        for key, history in before.items():
            row = self._merged(history, before=time)
            self.keys[key] = replace(history, base=[*history.base, (time, row)])
        return before

    def change(self, time: str, key: Key, entry: Entry, rewritten: Mapping[Key, History]) -> None:
        """The entry meets what is stored under its key: in a log, or in a new base file."""
        history = self.keys.setdefault(key, History())
        plain = self._in_one_stage(rewritten.get(key, history), entry)
        if key in rewritten or not self.merge_on_read:
            history.store(time, plain)
            return
        told = all(each.time in self.told for each in history.logs_after(history.base_at(None)[0], None))
        history.logs.append(entry)
        if told and not any(key in keys for keys in self.planned.values()):
            assert self._merged(history, before=None) == plain, "a deleted row came back"

    def _in_one_stage(self, history: History, entry: Entry) -> Entry | None:
        """The row of a key after an entry: a delete leaves nothing behind but its own ordering value, while it is in logs."""
        base_time, _ = history.base_at(None)
        last = self.reduce(history.logs_after(base_time, None), logs=True)
        now = self._merged(history, before=None)
        if now is None and last is not None and self.newer(entry, last, logs=True) is last:
            return None
        return self.onto_base(entry, now)

    def overwrite(self, time: str, rows: Iterable[Input], emptied: Iterable[str] | None) -> None:
        """The rows, of different keys, take the place of all in the partitions (None: of all in the table)."""
        gone = None if emptied is None else set(emptied)
        written = {
            (row.id, row.part): None if row.deleted else Entry(time, row.val, row.ts, deleted=False) for row in rows
        }
        for key in {*self.keys, *written}:
            if key in written or gone is None or key[1] in gone:
                self.keys.setdefault(key, History()).base.append((time, written.get(key)))

    def schedule(self, time: str, groups: frozenset[str]) -> None:
        self.planned[time] = frozenset(key for key in self.keys if self.group.get(key) in groups)

    def compacted(self, time: str) -> None:
        """The compaction's base files hold what older entries come to; they stand in the order of instants."""
        for key, history in self.keys.items():
            if key in self.planned[time]:
                history.base.append((time, self._merged(history, before=time)))
        del self.planned[time]

    def log_compacted(self, time: str, groups: frozenset[str]) -> None:
        """The logs of these file groups that were there when it was planned were merged."""
        for group in groups:
            histories = [
                h for key, h in self.keys.items() if key in self.planned[time] and self.group.get(key) == group
            ]
            inputs = {id(h): [e for e in h.logs_after(h.base_at(None)[0], None) if e.time < time] for h in histories}
            times = [e.time for entries in inputs.values() for e in entries]
            times += [m.time for h in histories for m in h.merged if h.base_at(None)[0] < m.time < time]
            for history in histories:
                entry = self.reduce(inputs[id(history)], logs=True)
                history.merged.append(LogCompaction(time, max(times), entry))
        del self.planned[time]

    def _merged(self, history: History, *, before: str | None) -> Entry | None:
        base_time, row = history.base_at(before)
        logs = history.logs_after(base_time, None)
        winner = self.reduce((e for e in logs if before is None or e.time < before), logs=True)
        return row if winner is None else self.onto_base(winner, row)

    def restored(self, time: str) -> None:
        """Nothing that came after the instant has happened."""
        for history in self.keys.values():
            history.base = [(at, entry) for at, entry in history.base if at <= time]
            history.logs = [entry for entry in history.logs if entry.time <= time]
            history.merged = [each for each in history.merged if each.time <= time]
        self._stand_as_after({at for at in self.group_after if at <= time})
        self.planned = {at: keys for at, keys in self.planned.items() if at <= time}

    def taken_back(self, time: str) -> None:
        """The newest commit has not happened."""
        for history in self.keys.values():
            history.base = [(at, entry) for at, entry in history.base if at != time]
            history.logs = [entry for entry in history.logs if entry.time != time]
            history.merged = [each for each in history.merged if each.time != time]
        self._stand_as_after({at for at in self.group_after if at < time})

    def _stand_as_after(self, times: set[str]) -> None:
        """Later groups are gone. Of a row that was deleted by then the table does not say where its delete is."""
        self.group_after = {at: group for at, group in self.group_after.items() if at in times}
        if times:
            self.group.update(self.group_after[max(times)])

    # -- answers -----------------------------------------------------------------------------------------------------

    def snapshot(self, until: str | None = None) -> list[Row]:
        return self._rows(until, since=None, at=str)

    def read_optimized(self) -> list[Row]:
        return _plain({key: history.base_at(None)[1] for key, history in self.keys.items()})

    def incremental(self, begin: str | None, end: str, at: At = str) -> list[Row]:
        """Rows of (begin, end]. What stood before `begin` takes no part in the merge, as in Hudi: a late row that lost
        against it is pulled all the same."""
        return [row for row in self._rows(end, since=begin, at=at) if begin is None or at(row[-1]) > begin]

    def _rows(self, until: str | None, *, since: str | None, at: At) -> list[Row]:
        found: dict[Key, Entry | None] = {}
        for key, history in self.keys.items():
            base_time, row = history.base_at(until, at)
            if since is not None and (at(base_time) <= since or (row is not None and at(row.time) <= since)):
                row = None  # also where a newer file holds it: written again for another row, or against one that lost
            winner = self.reduce(history.logs_after(base_time, until, since, at), logs=True)
            found[key] = row if winner is None else self.onto_base(winner, row)
        return _plain(found)


def _plain(rows: Mapping[Key, Entry | None]) -> list[Row]:
    return sorted(((*key[:2], e.val, e.ts, e.time) for key, e in rows.items() if e is not None), key=repr)
