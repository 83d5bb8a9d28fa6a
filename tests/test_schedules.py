"""Writers that meet in any order, a schedule for each seed: the rows are those of their writes one after the other, by instants."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple

import pytest

from hoodie.errors import CommitConflictError
from hoodie.table import HoodieTable
from tests.effort import SOAK, in_shares
from tests.memory_tables import (
    FakeClock,
    Input,
    batch,
    copy_of,
    keys,
    leftovers,
    new_table,
    opened,
    snapshot_of,
    stray_files,
)
from tests.placed import in_memory
from tests.schedules import Schedule, in_turns

pytestmark = in_memory("writers of a server are not stopped at its calls")

SEEDS = 4000 if SOAK else 672
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
TABLES = {
    "copy-on-write": ("COPY_ON_WRITE", {}),
    "merge-on-read": ("MERGE_ON_READ", {}),
    "buckets": ("MERGE_ON_READ", BUCKETS),
}
FIRST = [Input(f"k{n}", "ab"[n % 2], 0) for n in range(4)]
Rows = dict[tuple[str, str], int | None]


class Deed(NamedTuple):
    name: str
    act: Callable[[HoodieTable], Any]
    applied: Callable[[Rows], Rows]
    """What becomes of the rows."""


def rows_and_deeds(chance: Random, number: int, keys_in_all: int) -> tuple[list[Input], Deed, Deed]:
    """A few rows, and that they are upserted, or deleted."""
    rows = [
        Input(f"k{n}", "ab"[n % 2], number) for n in sorted(chance.sample(range(keys_in_all), chance.randint(1, 3)))
    ]
    found = {row[:2]: row.val for row in rows}
    upsert = Deed("upsert", lambda table: table.upsert(batch(rows)), lambda old: {**old, **found})
    delete = Deed(
        "delete",
        lambda table: table.delete(keys(rows)),
        lambda old: {key: val for key, val in old.items() if key not in found},
    )
    return rows, upsert, delete


def upsert_or_delete(chance: Random, number: int, kind: str) -> Deed:
    _, upsert, delete = rows_and_deeds(chance, number, 9)
    return upsert if chance.random() < 0.6 else delete


def deed(chance: Random, number: int, kind: str) -> Deed:
    rows, upsert, delete = rows_and_deeds(chance, number, 7)
    part = chance.choice("ab")
    own = [row for row in rows if row.part == part]
    deeds = [*[upsert] * 4, delete]
    if own:
        deeds.append(
            Deed(
                "insert_overwrite",
                lambda table: table.insert_overwrite(batch(own)),
                lambda old: {
                    **{key: val for key, val in old.items() if key[1] != part},
                    **{row[:2]: row.val for row in own},
                },
            )
        )
    if kind != "copy-on-write":
        deeds += [Deed("compact", lambda table: table.compact(), lambda old: old)] * 2
    if kind != "buckets":
        deeds.append(Deed("cluster", lambda table: table.cluster(), lambda old: old))
    deeds.append(Deed("clean", lambda table: table.clean(retain_commits=2), lambda old: old))
    return chance.choice(deeds)


def prepared(kind: str) -> Any:
    table_type, more = TABLES[kind]
    storage, clock = new_table(table_type=table_type, ordering=None, more=more)
    opened(storage, clock).upsert(batch(FIRST))
    opened(storage, clock).upsert(batch([row._replace(val=1) for row in FIRST[:2]]))
    return storage


def done_in_turns(what: Deed, storage: Any, clock: FakeClock, schedule: Schedule) -> Any:
    return what.act(in_turns(storage, clock, schedule))


@pytest.mark.parametrize("kind", TABLES)
@in_shares(12)
def test_the_rows_are_those_of_the_writes_one_after_the_other(kind, share):
    start = prepared(kind)
    seeds = share.of(range(SEEDS))
    assert sum(tried(start, kind, seed, deed, writers=(2, 2, 3)) for seed in seeds) > len(seeds)


@pytest.mark.parametrize("kind", TABLES)
@in_shares(5)
def test_nor_do_five_writers_make_other_rows_who_mend_what_they_wrote_again_and_again(kind, share):
    """One that is mended plans on what others did under greater instants, too, which then must not have met it."""
    start = prepared(kind)
    seeds = share.of(range(SEEDS // 4))
    assert sum(tried(start, kind, seed, upsert_or_delete, writers=(5,)) for seed in seeds) > len(seeds)


def tried(
    start: Any, kind: str, seed: int, deed: Callable[[Random, int, str], Deed], *, writers: tuple[int, ...]
) -> int:
    """Let them meet once, and judge what came of it; gives how often one of them made way for another."""
    storage, clock = copy_of(start)
    chance, schedule = Random(seed), Schedule(seed)
    deeds = [deed(chance, 10 + number, kind) for number in range(chance.choice(writers))]
    found = schedule.run([partial(done_in_turns, each, storage, clock, schedule) for each in deeds])
    shown = (kind, seed, [each.name for each in deeds], found)
    done = []
    for each, result in zip(deeds, found, strict=True):
        if isinstance(result, CommitConflictError):
            continue  # it says that nothing was written
        assert not isinstance(result, Exception), shown
        if each.name not in ("compact", "cluster", "clean") and result.instant is not None:
            done.append((result.instant, each))
    expected: Rows = {row[:2]: 1 if row in FIRST[:2] else row.val for row in FIRST}
    for _, each in sorted(done, key=lambda pair: pair[0]):
        expected = each.applied(expected)
    table = opened(storage, clock)
    rows = snapshot_of(table)
    assert {row[:2]: row[2] for row in rows} == expected, shown
    assert len(rows) == len(expected), shown
    assert leftovers(storage) == [], shown
    assert stray_files(storage, table) == [], shown
    return schedule.switched
