"""Upgrades and downgrades that die: what both have to hold at each of their storage calls."""

from collections.abc import Callable
from typing import Any

import pytest

from hoodie.format.properties import format_properties, parse_properties_file
from hoodie.model.names import PROPERTIES
from hoodie.storage.base import Storage
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.table import HoodieTable
from tests.memory_tables import Input, batch, copy_of, keys, new_table, opened, plain


def check_deaths(
    whole: Any,
    change: Callable[[HoodieTable], object],
    versions: tuple[int, int],
    check: Callable[[Any, HoodieTable], None],
    *,
    moment: str,
    every: int = 1,
    least: int = 20,
) -> None:
    """Each `every`-th call fails once: the table has one of the two versions and all rows, and the next change ends it.

    `check`: what holds of the storage and the table afterwards, beside that. `least`: calls that a change takes at least.
    """
    storage, clock = copy_of(whole)
    expected = plain(opened(storage, clock).scan(meta_columns=True))
    commits = [i.time for i in opened(storage, clock).timeline.commits]
    for at in range(1, 500, every):
        storage, clock = copy_of(whole)
        try:
            change(opened(FaultStorage(storage, [Fault(at, moment)]), clock))
            died = False
        except InjectedFault:
            died = True
        table = opened(storage, clock)
        assert int(table.config.version) in versions
        assert plain(table.scan(meta_columns=True)) == expected
        change(opened(storage, clock))
        table = opened(storage, clock)
        assert int(table.config.version) == versions[1]
        assert plain(table.scan(meta_columns=True)) == expected
        assert [i.time for i in table.timeline.commits][: len(commits)] == commits
        check(storage, table)
        if not died:
            assert at > least, at
            return
    pytest.fail("it never ended")


def lived_in(kind: str, **more: Any) -> tuple[Any, Any]:
    """A table with each kind of instant on its timelines."""
    storage, clock = new_table(table_type=kind, **more)
    table = opened(storage, clock)
    for n in range(8):
        table.upsert(batch([Input("k", "a", n, n), Input(f"n{n}", "b/c", n, n)]))
        if n == 3 and kind == "MERGE_ON_READ":
            table.compact()
    table.savepoint()
    table.delete(keys([Input("n0", "b/c", 0, None)]))
    table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=4)
    table.cluster(sort_by=["val"])
    table.insert_overwrite(batch([Input("x", "z", 1, 1)]))
    table.clean(retain_commits=3)
    with pytest.raises(InjectedFault):
        opened(FaultStorage(storage, [Fault(12, "before")]), clock).upsert(batch([Input("dead", "a", 1, 1)]))
    table.rollback()
    return storage, clock


def properties_of(storage: Storage) -> dict[str, str]:
    return parse_properties_file(storage.read(PROPERTIES), path=PROPERTIES)


def make_old(storage: Storage, version: str) -> None:
    """What properties of such a table say, and what stands beside it, as releases of Apache Hudi before 0.14 had it."""
    dropped = {"hoodie.table.ordering.fields", "hoodie.table.keygenerator.type", "hoodie.table.timeline.timezone"}
    if version == "3":
        dropped.add("hoodie.table.checksum")
    more = {
        "hoodie.table.version": version,
        **({} if version == "3" else {"hoodie.table.metadata.partitions": "files"}),
    }
    kept = {name: value for name, value in properties_of(storage).items() if name not in dropped}
    storage.replace(PROPERTIES, format_properties({**kept, **more}, comment=[]).encode())
    storage.replace(".hoodie/metadata/.hoodie/hoodie.properties", b"hoodie.table.version=" + version.encode())
