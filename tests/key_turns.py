"""Random turns of tables whose indexes are kept up: writes, deletes, services and what undoes them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.model.enums import TableType
from hoodie.table import HoodieTable
from tests.memory_tables import Input, keys

_KINDS = ["upsert"] * 6 + ["delete", "flag", "insert", "compact", "cluster", "overwrite", "rollback", "drop"]
_MOST_ROLLBACKS = 3


@dataclass
class Turns:
    """`rows` gives rows by their numbers, with `part`, `ts` and `deleted`."""

    table: HoodieTable
    chance: random.Random
    parts: Sequence[str]
    rows: Callable[..., pa.Table]
    rollbacks: int = 0

    def take(self, turn: int) -> bool:
        """Whether anything was done."""
        table, chance, rows = self.table, self.chance, self.rows
        ids = chance.sample(range(30), chance.randint(1, 9))
        part, ts = chance.choice(self.parts), turn if chance.random() < 0.8 else chance.randrange(turn + 1)
        match chance.choice(_KINDS):
            case "upsert":
                table.upsert(rows(ids, part=part, ts=ts))
            case "delete":
                table.delete(keys([Input(f"k{n}", part) for n in ids]))
            case "flag":
                table.upsert(rows(ids, part=part, ts=ts, deleted=True))
            case "insert":
                table.insert(rows([1000 + 10 * turn + n for n in range(3)], part=part))
            case "compact" if table.config.table_type is TableType.MERGE_ON_READ:
                table.compact()
            case "cluster":
                table.cluster(["val"])
            case "overwrite" if turn % 3 == 0:
                table.insert_overwrite(rows([2000 + 10 * turn + n for n in range(3)], part=part))
            case "rollback" if table.timeline.commits and self.rollbacks < _MOST_ROLLBACKS:
                self.rollbacks += 1
                table.rollback(table.timeline.commits[-1].time)
            case "drop" if turn % 3 == 0:
                table.delete_partitions([part])
            case _:
                return False
        return True
