"""How records of one key merge, one by one in plain Python: Apache Hudi's rules as integration/test_merging_with_hudi.py saw them."""

import math
from typing import Any, NamedTuple

from hoodie.model.enums import Fill, MergeMode
from hoodie.model.plans import MergeRule


class Record(NamedTuple):
    key: str
    time: str
    a: str | None
    b: int | None
    ts: int | None
    kind: str = "row"
    """row, delete (a row that says so) or block (an entry of a delete block)."""

    @property
    def dead(self) -> bool:
        return self.kind != "row"


class Model:
    """A rule, a record at a time. `logs`: the older record stands in a log too, it is no stored row."""

    def __init__(self, rule: MergeRule) -> None:
        self.rule = rule
        self.partial = rule.payload and rule.fill is Fill.NULLS and rule.mode is MergeMode.EVENT_TIME_ORDERING

    def always(self, record: Record) -> bool:
        return record.dead and (self.rule.payload or record.ts is None)

    def gives_way(self, value: Any) -> bool:
        if self.rule.fill is Fill.NULLS:
            return value is None
        return self.rule.fill is Fill.UNAVAILABLE and value == "?"

    def newer_counts(self, new: Record, old: Record, *, logs: bool) -> bool:
        if self.rule.mode is MergeMode.COMMIT_TIME_ORDERING:
            return True
        if logs and new.kind == "block" and self.always(old):
            return False
        if self.always(new) or (logs and self.always(old)) or (self.partial and new.ts is None):
            return True
        return self.rank(new.ts) >= self.rank(old.ts)

    @staticmethod
    def rank(ts: int | None) -> float:
        return -math.inf if ts is None else ts

    def merge(self, new: Record, old: Record, *, logs: bool) -> Record:
        counts = self.newer_counts(new, old, logs=logs)
        winner, loser = (new, old) if counts else (old, new)
        if winner.dead or loser.dead:
            return winner
        return Record(
            winner.key,
            new.time if self.partial else winner.time,
            *(w if not self.gives_way(w) else v for w, v in zip(winner[2:5], loser[2:5])),
        )
