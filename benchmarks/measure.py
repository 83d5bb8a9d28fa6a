"""Steps of one system in this process, each measurement a JSON line at the end of a file.

`python -m benchmarks.measure FOLDER SYSTEM OUT EFFORT STEP…`, with the interpreter of the system's environment; EFFORT is
the JSON of an `Effort`. A system on Spark first does the same work on a small table in the same session, for the JVM compiles
what it runs often.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, TextIO

from benchmarks.plan import Lane, Planned, named
from benchmarks.systems.base import COMPACT, FIRST, LOAD, PULL, READ, UPSERT, Effort, System

WARM = "warm"
"""Folder with the small table's data, inside that of the data."""
_WARM_STEPS = (LOAD, FIRST, UPSERT, PULL, READ, COMPACT)
_WARM_EFFORT = Effort(loads=1, pulls=1, reads=2)


def main(argv: Sequence[str]) -> int:
    folder, planned, out, effort = Path(argv[0]), named(argv[1]), Path(argv[2]), Effort(**json.loads(argv[3]))
    with out.open("a", encoding="utf-8") as lines, _made(folder, planned) as system:
        lines.write(json.dumps({"system": planned.name, "versions": _versions(planned)}) + "\n")
        for measured in system.run(argv[4:], effort):
            _print(lines, planned.name, measured.case, measured.check, measured.cost.as_dict())
    return 0


def _print(lines: TextIO, system: str, case: str, check: str, cost: dict[str, Any]) -> None:
    lines.write(json.dumps({"system": system, "case": case, "check": check, **cost}) + "\n")
    lines.flush()


def _versions(planned: Planned) -> str:
    on_spark = planned.lane is not Lane.EMBEDDED
    found = []
    for name in ("pyspark", "delta-spark") if on_spark else ("pyarrow", "polars", "deltalake"):
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    jars = _kind(planned).settings(Path()).get("spark.jars", "") if on_spark else ""
    return ", ".join([*found, *(Path(jar).stem for jar in jars.split(",") if "-spark" in jar)])


def _kind(planned: Planned) -> Any:
    module, _, name = planned.home.partition(":")
    return getattr(import_module(f"benchmarks.systems.{module}"), name)


@contextmanager
def _made(folder: Path, planned: Planned) -> Iterator[System]:
    kind = _kind(planned)
    tables = folder / "tables"
    if planned.lane is Lane.EMBEDDED:
        yield kind(folder, tables / planned.slug)
        return
    start = import_module("benchmarks.systems.spark").start
    with closing(_Session(start(planned.name, folder, kind.settings(tables)))) as session:
        warm: System = kind(folder / WARM, tables / f"{planned.slug}-warm", session.spark)
        steps = [step for step in _WARM_STEPS if step in planned.steps]
        for _ in warm.run(steps, _WARM_EFFORT):
            pass
        yield kind(folder, tables / planned.slug, session.spark)


class _Session:
    def __init__(self, spark: Any) -> None:
        self.spark = spark

    def close(self) -> None:
        self.spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
