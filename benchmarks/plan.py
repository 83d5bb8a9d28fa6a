"""Which systems are measured, where each lives, and which steps of the work it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatch

from benchmarks.systems.base import COMPACT, FIRST, LOAD, RANDOM, READ, READ_COMPACTED, SMALL_COMMITS, STEPS, UPSERT


class Lane(StrEnum):
    """Systems of one lane are compared with each other: the same engine in the same version."""

    EMBEDDED = "embedded"
    SPARK4 = "spark4"
    SPARK3 = "spark3"


class Kind(StrEnum):
    FLOOR = "floor"
    OURS = "ours"
    PEER = "peer"


@dataclass(frozen=True)
class Planned:
    """A system: `name` is lane/what, `home` module:class below benchmarks.systems."""

    name: str
    title: str
    kind: Kind
    home: str
    steps: Sequence[str] = STEPS
    only_full: Sequence[str] = ()
    """Steps that only `--full` does; all of them: the system runs only then."""

    @property
    def lane(self) -> Lane:
        return Lane(self.name.partition("/")[0])

    @property
    def slug(self) -> str:
        """The name of its folder."""
        return self.name.replace("/", "-")

    def steps_of(self, *, full: bool) -> tuple[str, ...]:
        return tuple(step for step in self.steps if full or step not in self.only_full)


_NO_COMPACTION = tuple(step for step in STEPS if step not in {COMPACT, READ_COMPACTED})
_WRITES = (LOAD, UPSERT, RANDOM)
_FLOOR = tuple(step for step in STEPS if step not in {FIRST, READ, COMPACT, READ_COMPACTED})

SYSTEMS = (
    Planned("embedded/arrow", "plain pyarrow", Kind.FLOOR, "plain_arrow:PlainArrow", (*_FLOOR, READ)),
    Planned("embedded/hoodie-mor", "hoodie, merge-on-read", Kind.OURS, "hoodie_embedded:MergeOnRead"),
    Planned(
        "embedded/hoodie-mor-parquet",
        "hoodie, merge-on-read, Parquet blocks",
        Kind.OURS,
        "hoodie_embedded:MergeOnReadParquet",
        (*_WRITES, READ),
    ),
    Planned("embedded/hoodie-mor-9", "hoodie, merge-on-read, version 9", Kind.OURS, "hoodie_embedded:MergeOnRead9"),
    Planned("embedded/hoodie-cow", "hoodie, copy-on-write", Kind.OURS, "hoodie_embedded:CopyOnWrite", _NO_COMPACTION),
    Planned(
        "embedded/hoodie-cow-9",
        "hoodie, copy-on-write, version 9",
        Kind.OURS,
        "hoodie_embedded:CopyOnWrite9",
        _NO_COMPACTION,
    ),
    Planned(
        "embedded/polars",
        "polars, merged at each read",
        Kind.PEER,
        "polars_merge:PolarsMerge",
        (*_WRITES, READ, COMPACT, READ_COMPACTED),
    ),
    Planned("embedded/delta-rs", "delta-rs MERGE", Kind.PEER, "delta_rs:DeltaRs", (*_WRITES, READ)),
    Planned("spark4/spark", "plain Spark", Kind.FLOOR, "plain_spark:PlainSpark", _FLOOR),
    Planned("spark4/hoodie-mor", "hoodie, merge-on-read", Kind.OURS, "hoodie_spark:MergeOnRead"),
    Planned("spark4/hoodie-mor-9", "hoodie, merge-on-read, version 9", Kind.OURS, "hoodie_spark:MergeOnRead9"),
    Planned(
        "spark4/hoodie-mor-tasks", "hoodie, distributed", Kind.OURS, "hoodie_spark:MergeOnReadDistributed", _WRITES
    ),
    Planned(
        "spark4/hoodie-cow",
        "hoodie, copy-on-write",
        Kind.OURS,
        "hoodie_spark:CopyOnWrite",
        _NO_COMPACTION,
        (SMALL_COMMITS,),
    ),
    Planned(
        "spark4/hoodie-cow-9",
        "hoodie, copy-on-write, version 9",
        Kind.OURS,
        "hoodie_spark:CopyOnWrite9",
        _NO_COMPACTION,
        (SMALL_COMMITS,),
    ),
    Planned("spark4/iceberg", "Iceberg, merge-on-read", Kind.PEER, "iceberg:Iceberg"),
    Planned("spark4/delta", "Delta, deletion vectors", Kind.PEER, "delta:Delta", only_full=(SMALL_COMMITS,)),
    Planned("spark3/spark", "plain Spark", Kind.FLOOR, "plain_spark:PlainSpark", _FLOOR),
    Planned("spark3/hoodie-mor", "hoodie, merge-on-read", Kind.OURS, "hoodie_spark:MergeOnRead"),
    Planned("spark3/hoodie-mor-9", "hoodie, merge-on-read, version 9", Kind.OURS, "hoodie_spark:MergeOnRead9"),
    Planned("spark3/hudi-bucket", "Hudi, bucket index", Kind.PEER, "hudi:HudiBucket"),
    Planned("spark3/hudi-bloom", "Hudi, bloom index", Kind.PEER, "hudi:HudiBloom", only_full=(SMALL_COMMITS,)),
)


def chosen(only: Sequence[str], *, full: bool, peers: bool, spark: bool) -> list[Planned]:
    """The systems that a run measures, in their order; `only` are names or patterns such as `spark4/*`.

    Raises:
        ValueError: a name of `only` is no system's.
    """
    for pattern in only:
        if not any(fnmatch(system.name, pattern) for system in SYSTEMS):
            raise ValueError(f"no system is named {pattern!r}; there are {', '.join(s.name for s in SYSTEMS)}")
    found = []
    for system in SYSTEMS:
        asked = any(fnmatch(system.name, pattern) for pattern in only)
        for_peers = system.kind is Kind.PEER or system.lane is Lane.SPARK3
        if not (asked if only else system.steps_of(full=full)):
            continue
        if (peers or not for_peers) and (spark or system.lane is Lane.EMBEDDED):
            found.append(system)
    return found


def named(name: str) -> Planned:
    return next(system for system in SYSTEMS if system.name == name)
