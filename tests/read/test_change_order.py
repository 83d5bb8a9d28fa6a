"""The change feed applied row by row, in its order, to a copy of the table: a key is never there twice, nor missing when it goes."""

import itertools
import random
from collections import Counter

import pytest

from hoodie.model.enums import ChangePart
from tests.change_feed import check_in_order
from tests.effort import SOAK, long_but
from tests.memory_tables import Input, batch, keys, new_table, opened

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
APART = {"hoodie.parquet.small.file.limit": "0"}
"""Every batch of new keys makes a file group of its own."""
PARTS = ["a", "b/c", "d"]
HISTORIES = 400 if SOAK else 12


def check(table, since, until):
    check_in_order(table, since, until, lambda row: row["id"])


def moved(name, old, new, val, ts=9):
    """The rows of an upsert that takes a key from one partition to another."""
    return [Input(name, new, val, ts), Input(name, old, 0, None, True)]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.parametrize("options", [{}, APART], ids=["packed", "apart"])
@pytest.mark.parametrize(("old", "new"), [("p", "q"), ("q", "p")])
def test_a_key_that_one_upsert_moves_is_deleted_before_it_is_inserted(kind, options, old, new):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock, options)
    first = table.upsert(batch([Input("k", old, 1, 1), Input("x", "p", 1, 1), Input("y", "q", 1, 1)]))
    last = table.upsert(batch(moved("k", old, new, 2)))
    feed = table.changes(first.position, images="before_after").to_arrow().to_pylist()
    assert [(each["op"], (each["before"] or each["after"])["part"]) for each in feed] == [("d", old), ("i", new)]
    check(table, first.position, last.position)


@pytest.mark.parametrize("options", [{}, APART], ids=["packed", "apart"])
def test_keys_that_change_places_are_all_deleted_before_one_is_inserted(kind, options):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock, options)
    parts = ["p", "q", "r"]
    first = table.upsert(batch([Input(f"k{n}", parts[n % 3], n, 1) for n in range(9)]))
    around = [row for n in range(6) for row in moved(f"k{n}", parts[n % 3], parts[(n + 1) % 3], 10 * n)]
    stay = [Input(f"k{n}", parts[n % 3], 7, 9) for n in range(6, 9)]
    second = table.upsert(batch(around + stay))
    back = [row for n in range(6) for row in moved(f"k{n}", parts[(n + 1) % 3], parts[n % 3], 20 * n, ts=19)]
    third = table.upsert(batch(back))
    feed = table.changes(first.position, second.position, images="before_after").to_arrow()
    assert Counter(feed["op"].to_pylist()) == {"d": 6, "i": 6, "u": 3}
    check(table, first.position, second.position)
    check(table, second.position, third.position)
    check(table, None, third.position)


def test_a_key_that_comes_back_to_where_a_log_deleted_it_is_deleted_elsewhere_first(kind):
    """A log counts such a row as an update."""
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock)
    first = table.upsert(batch([Input("k", "p", 1, 1), Input("x", "p", 1, 1), Input("y", "q", 1, 1)]))
    second = table.upsert(batch(moved("k", "p", "q", 2)))
    third = table.upsert(batch([*moved("k", "q", "p", 3, ts=19), Input("x", "p", 0, None, True)]))
    check(table, first.position, second.position)
    check(table, second.position, third.position)


def test_slices_are_read_twice_only_where_the_order_asks_for_it(kind):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock)

    def parts(since):
        return Counter(task.part for task in table.changes(since, images="before_after").plan.tasks)

    whole, twice = ChangePart.WHOLE, {ChangePart.DELETES: 1, ChangePart.REST: 1}
    rows = [Input(f"{part}{n}", part, n, 1) for part in "pqr" for n in range(4)]
    since = table.upsert(batch(rows)).position
    assert parts(None) == {whole: 3}
    since, begin = table.upsert(batch([row._replace(ts=2) for row in rows])).position, since
    assert parts(begin) == {whole: 3}
    since, begin = table.delete(keys([Input(f"{part}2", part) for part in "pqr"])).position, since
    assert parts(begin) == {whole: 3}
    mixed = [Input("p0", "p", 0, 3), Input("p1", "p", 0, 3, True), Input("q0", "q", 0, 3), Input("r9", "r", 0, 3)]
    since, begin = table.upsert(batch(mixed)).position, since
    assert parts(begin) == {whole: 3}
    kept = [Input(name, name[0], 0, 3) for name in ("p3", "p8", "q3", "q8")]
    since, begin = table.upsert(batch([*kept, *(Input(f"{part}0", part, 0, 4, True) for part in "pq")])).position, since
    assert parts(begin) == {
        whole: 1 if kind == "COPY_ON_WRITE" else 3,
        **twice,
    }  # beside logs, new keys have new groups
    since, begin = table.insert_overwrite_table(batch(rows)).position, since
    assert set(parts(begin)) == {whole}
    alone = table.changes(begin, where="part = 'q'", images="before_after")
    assert {task.part for task in alone.plan.tasks} == {whole}


def test_a_condition_leaves_the_order(kind):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock)
    first = table.upsert(batch([Input("k", "q", 1, 1), Input("m", "p", 1, 1), Input("x", "p", 5, 1)]))
    table.upsert(batch([*moved("k", "q", "p", 2), *moved("m", "p", "q", 2), Input("x", "p", 6, 9)]))
    feed = table.changes(first.position, images="before_after", where="val < 5").to_arrow()
    assert feed["op"].to_pylist() == ["d", "d", "i", "i"]


class Random:
    """A table with keys that are unique among all partitions, and random writes that keep them so."""

    def __init__(self, seed, kind):
        self.chance = random.Random(seed)
        self.kind = kind
        self.storage, self.clock = new_table(table_type=kind)
        self.options = self.chance.choice([{}, APART])
        self.number = 0

    def table(self):
        return opened(self.storage, self.clock, self.options)

    def step(self):
        table, chance = self.table(), self.chance
        self.number += 1
        self.rows = {row["id"]: row["part"] for row in table.scan().to_arrow().to_pylist()}
        acts = [self.upsert] * 6 + [self.delete, self.overwrite, self.overwrite_table, self.delete_partition]
        if self.kind == "MERGE_ON_READ":
            acts += [self.compact, self.schedule, self.run]
        chance.choice(acts)(table)

    def upsert(self, table):
        chance, ts, rows = self.chance, 10 * self.number, []
        for name in chance.sample([f"k{n}" for n in range(12)], chance.randint(1, 10)):
            part = self.rows.get(name)
            elsewhere = chance.choice([each for each in PARTS if each != part])
            way = chance.choice(["update", "move", "delete", "late", "late delete"])
            if part is None or way == "update":
                rows.append(Input(name, part or elsewhere, self.number, ts))
            elif way == "move":
                rows += moved(name, part, elsewhere, self.number, ts)
            else:
                late = way.startswith("late")
                rows.append(Input(name, part, -1, ts - 25 if late else ts, way.endswith("delete")))
        chance.shuffle(rows)
        table.upsert(batch(rows))

    def delete(self, table):
        if self.rows:
            gone = self.chance.sample(sorted(self.rows), min(3, len(self.rows)))
            table.delete(keys([Input(name, self.rows[name]) for name in gone]))

    def overwrite(self, table):
        emptied = self.chance.sample(PARTS, self.chance.randint(1, 2))
        free = [f"k{n}" for n in range(12) if self.rows.get(f"k{n}", emptied[0]) in emptied]
        rows = [Input(name, part, self.number, 10 * self.number) for name, part in zip(free, emptied * 2, strict=False)]
        self.chance.shuffle(rows)
        if rows:
            table.insert_overwrite(batch(rows))

    def overwrite_table(self, table):
        names = self.chance.sample([f"k{n}" for n in range(12)], 5)
        rows = [Input(name, self.chance.choice(PARTS), self.number, 10 * self.number) for name in names]
        table.insert_overwrite_table(batch(rows))

    def delete_partition(self, table):
        if self.rows:
            table.delete_partitions([self.chance.choice(sorted(self.rows.values()))])

    def compact(self, table):
        table.compact()

    def schedule(self, table):
        table.schedule_compaction()

    def run(self, table):
        table.run_compaction()


@pytest.mark.parametrize("seed", long_but([0], range(HISTORIES)))
def test_any_feed_applied_in_order_leads_from_state_to_state(kind, seed):
    history = Random(f"{kind} {seed}", kind)
    for _ in range(14):
        history.step()
    table = history.table()
    ends = [None, *(instant.position for instant in table.timeline.commits)]
    for since, until in itertools.pairwise(ends):
        check(table, since, until)
    for _ in range(6):
        first, last = sorted(history.chance.sample(range(len(ends)), 2))
        check(table, ends[first], ends[last])
