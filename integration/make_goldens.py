"""Makes the golden tables of Apache Hudi's table services: each by its recipe, with what Apache Hudi reads from it.

python -m integration.make_goldens FOLDER [NAME ...]

Instants and file names are new each time, and tests name some of them. So a table is made when its recipe changes, and is then
moved to tests/golden. Needs what `make integration` needs, and gcc for the table with a past.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa

from integration.conftest import BUNDLE, PYTHON
from integration.hudi_client import ROOT, HudiPeer, PeerError, read_options
from integration.hudi_peer import WRITE_DEFAULTS
from integration.views import BEGINNING
from tests.rows import rows_of

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("name", pa.string()),
        ("qty", pa.int32()),
        ("price", pa.float64()),
        ("ts", pa.int64()),
        pa.field("part", pa.string(), nullable=False),
    ]
)
OWN_DEFAULTS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BLOOM",
    "hoodie.index.bloom.num_entries": "100",
}
CLEAN = {"hoodie.clean.automatic": "true"}
KEEP_ONE = {"hoodie.clean.commits.retained": "1"}
NO_UPGRADE = {"hoodie.metadata.enable": "false", "hoodie.write.auto.upgrade": "false"}
BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
APART = {"hoodie.parquet.small.file.limit": "0"}
COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
LOCKED = "hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider"
DAYS_AGO = 20


def rows(ids: Iterable[int], *, turn: int, part: str | None = None) -> pa.Table:
    """Rows of three partitions; `turn` gives them other values and makes them newer."""
    found = [
        {
            "id": f"k{n:03d}",
            "name": None if n % 7 == 5 else f"name{n}",
            "qty": 100 * turn + (n * 37) % 50,
            "price": n * 1.5,
            "ts": turn,
            "part": part or "abc"[n % 3],
        }
        for n in ids
    ]
    return pa.Table.from_pylist(found, SCHEMA)


class Recipe:
    """One table in the making: each step is done by Apache Hudi and noted."""

    def __init__(self, hudi: HudiPeer, path: Path, table_type: str, more: Mapping[str, str]) -> None:
        self.hudi, self.path = hudi, path
        self.options = OWN_DEFAULTS | {
            "hoodie.table.name": path.parent.name,
            "hoodie.datasource.write.table.type": table_type,
            **more,
        }
        self.steps: list[str] = []

    def write(self, data: pa.Table, op: str = "upsert", **extra: Any) -> None:
        more = {key: value for given in extra.values() for key, value in given.items()}
        mode = "append" if self.steps else "overwrite"
        options = self.options | {"hoodie.datasource.write.operation": op} | more
        self.hudi.write(self.path, data, options, mode=mode)
        self._note(f"write op={op} mode={mode} extra={more}")

    def call(self, procedure: str, **arguments: str) -> None:
        given = "".join(f", {name} => '{value}'" for name, value in arguments.items())
        self.hudi.sql(f"call {procedure}(path => '{self.path}'{given})")
        self._note(f"SQL call {procedure}(path => '<table>'{given})")

    def client(self, act: str, argument: str | None = None, **extra: Any) -> None:
        more = {key: value for given in extra.values() for key, value in given.items()}
        self.hudi.client(self.path, act, argument=argument, options=self.options | more)
        self._note(f"write client {act}({argument or ''}) extra={more}")

    def compact(self) -> None:
        options = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.write.auto.upgrade": "false"}
        self.hudi.run_compaction(self.path, op="scheduleAndExecute", options=options)
        self._note(f"SQL call run_compaction(op => 'scheduleAndExecute', path => '<table>'), options {options}")

    def cluster(self, op: str) -> None:
        given = ",".join(
            f"{key}={value}" for key, value in (NO_UPGRADE | self.options).items() if "datasource" not in key
        )
        self.call("run_clustering", op=op, order="qty", options=given)

    @property
    def commits(self) -> list[str]:
        return completed(self.path)

    def _note(self, step: str) -> None:
        newest = max(timeline_of(self.path), key=lambda name: (folder_of(self.path) / name).stat().st_mtime_ns)
        self.steps.append(f"{step} → `{newest}`")


def cleaned(recipe: Recipe) -> None:
    for turn in range(1, 4):
        recipe.write(rows(range(12 - turn), turn=turn))
    recipe.write(rows(range(6), turn=4), clean=CLEAN | KEEP_ONE)
    recipe.write(rows(range(0, 12, 3), turn=5))
    recipe.write(rows(range(12, 16), turn=6), apart=APART)
    recipe.write(rows(range(0, 12, 2), turn=7))
    recipe.client("schedule_clean", more=BY_VERSIONS)


def clustered(recipe: Recipe) -> None:
    for turn in range(1, 4):
        recipe.write(rows(range(6 * turn, 6 * turn + 6), turn=turn), "insert")
    recipe.write(rows(range(8, 14), turn=4))
    recipe.write(rows([9, 20], turn=5), "delete")
    recipe.cluster("scheduleAndExecute")
    recipe.write(rows([6, 10, 30], turn=6))
    recipe.write(rows([7, 31], turn=7), more=CLEAN | KEEP_ONE)
    recipe.write(rows([6, 12], turn=8))


def pending_clustering(recipe: Recipe) -> None:
    for turn in range(1, 4):
        recipe.write(rows(range(6 * turn, 6 * turn + 6), turn=turn), "insert")
    recipe.write(rows(range(8, 14), turn=4))
    recipe.cluster("schedule")
    recipe.write(rows(range(40, 44), turn=5), "insert")


def restored(recipe: Recipe) -> None:
    recipe.write(rows(range(12), turn=1))
    recipe.write(rows(range(6), turn=2))
    saved = recipe.commits[-1]
    recipe.call("create_savepoint", commit_time=saved, user="me", comments="before it")
    recipe.write(rows(range(3, 9), turn=3))
    recipe.compact()
    recipe.write(rows(range(2, 15), turn=4))
    recipe.write(
        rows([1], turn=5, part="b"), "delete_partition", more={"hoodie.datasource.write.partitions.to.delete": "b"}
    )
    recipe.write(rows(range(20, 23), turn=6))
    recipe.client("restore", saved)
    recipe.write(rows(range(0, 12, 4), turn=7))


def archived(recipe: Recipe) -> None:
    for turn in range(1, 4):
        recipe.write(rows(range(4 * turn, 4 * turn + 6), turn=turn), compact=COMPACT)
    recipe.write(rows([1], turn=4), "delete_partition", more={"hoodie.datasource.write.partitions.to.delete": "c"})
    for turn in range(5, 9):
        recipe.write(rows(range(turn, turn + 6), turn=turn), compact=COMPACT, clean=CLEAN | KEEP_ONE)
    recipe.client("archive", more=KEEP_ONE | {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"})
    recipe.write(rows(range(5), turn=9))


def past(recipe: Recipe) -> None:
    """The first commits, made by an Apache Hudi whose clock was `DAYS_AGO` days ago."""
    for turn, part in enumerate(("old", "untouched", "changed"), 1):
        recipe.write(rows(range(4 * turn, 4 * turn + 4), turn=turn, part=part))


def expired(recipe: Recipe) -> None:
    recipe.write(rows(range(12, 14), turn=4, part="changed"))
    recipe.write(rows(range(20, 24), turn=5, part="new"))
    recipe.client("expire", more={"hoodie.partition.ttl.strategy.days.retain": "5"})
    recipe.write(rows(range(4, 6), turn=6, part="old"))


def indexed(recipe: Recipe) -> None:
    recipe.write(rows(range(12), turn=1))
    recipe.write(rows(range(6), turn=2))
    recipe.write(rows([1], turn=3), "delete")


def with_expression(recipe: Recipe) -> None:
    recipe.write(rows(range(12), turn=1))
    recipe.write(rows(range(6), turn=2))
    recipe.write(rows([1], turn=3), "delete")
    for each in (LOCKED, "hoodie.metadata.enable=true", "hoodie.metadata.index.column.stats.enable=false"):
        recipe.hudi.sql(f"set {each}")
    recipe.hudi.sql(f"create table expressions using hudi location '{recipe.path}'")
    create = "create index by_time on {} using column_stats (qty) options (expr='from_unixtime', format='HH:mm:ss')"
    recipe.hudi.sql(create.format("expressions"))
    recipe._note(f"SQL {create.format('<table>')}, option {LOCKED}")


RECIPES: dict[str, tuple[str, str, dict[str, str], Callable[[Recipe], None]]] = {
    "v6_pending_clean": (
        "CoW: a clean by commits that was done, and one by file versions that was only planned.",
        "COPY_ON_WRITE",
        {},
        cleaned,
    ),
    "v6_mor_clustered": (
        "MoR: clustering of slices with logs, writes after it, a clean that took the replaced files.",
        "MERGE_ON_READ",
        APART,
        clustered,
    ),
    "v6_mor_pending_clustering": (
        "MoR: clustering that was only planned, inserts after it.",
        "MERGE_ON_READ",
        APART,
        pending_clustering,
    ),
    "v6_mor_restored": (
        "MoR: savepoint, then updates, a compaction, a deleted partition and inserts; restore to the savepoint, an update.",
        "MERGE_ON_READ",
        {},
        restored,
    ),
    "v6_mor_archived": (
        "MoR: inline compactions and cleans, a deleted partition, then archiving.",
        "MERGE_ON_READ",
        {},
        archived,
    ),
    "v6_expired": (
        f"CoW: partitions deleted by partition TTL (5 days); the first commits by a process whose clock was {DAYS_AGO} days ago.",
        "COPY_ON_WRITE",
        {},
        expired,
    ),
    "v9_mdt_mor": (
        "MoR, version 9: the metadata table that Apache Hudi makes by default, with bounds of files and of partitions.",
        "MERGE_ON_READ",
        {"hoodie.write.table.version": "9", "hoodie.metadata.enable": "true"},
        indexed,
    ),
    "v9_expr_mor": (
        "MoR, version 9: an expression index with bounds, of from_unixtime.",
        "MERGE_ON_READ",
        {
            "hoodie.write.table.version": "9",
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "false",
        },
        with_expression,
    ),
}
WITHOUT_ANSWERS = ("v9_mdt_mor", "v9_expr_mor")
"""Tables for their files alone: what Apache Hudi reads from others like them is known."""


# -- what Apache Hudi reads from it


def folder_of(path: Path) -> Path:
    own = path / ".hoodie" / "timeline"
    return own if own.exists() else path / ".hoodie"


def timeline_of(path: Path) -> list[str]:
    return sorted(file.name for file in folder_of(path).iterdir() if re.match(r"2\d{16}[._]", file.name))


def completed(path: Path) -> list[str]:
    """The instants of completed commits."""
    ends = re.compile(r"(2\d{16})(_\d{17})?\.(commit|deltacommit|replacecommit)")
    return [found[1] for name in timeline_of(path) if (found := ends.fullmatch(name))]


def answers_of(hudi: HudiPeer, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of `expected.json` and of `pairs.json`."""
    snapshot = hudi.read(path)
    ends = completed(path)
    pairs = list(combinations([BEGINNING, *ends], 2))
    questions = [read_options("incremental", begin=begin, end=end) for begin, end in pairs]
    pulls = dict(zip(pairs, hudi.read_many(path, questions), strict=True))
    moments = hudi.read_many(path, [read_options(as_of=end) for end in ends])
    expected = {
        "name": path.parent.name,
        "hudi": "1.2.0",
        "spark": hudi.spark_version,
        "encoding": "see how.md",
        "schema": snapshot.schema,
        "timeline": timeline_of(path),
        "snapshot": snapshot.rows,
        "read_optimized": hudi.read(path, "read_optimized").rows,
        "incremental": [
            {"begin": begin, "end": end, **_entry(pulls[begin, end])}
            for begin, end in zip([BEGINNING, *ends], ends, strict=False)
        ],
        "time_travel": [{"as_of": end, **_entry(found)} for end, found in zip(ends, moments, strict=True)],
    }
    known: dict[str, int] = {}
    numbered: list[tuple[str, str, list[int] | None]] = []
    for (begin, end), found in pulls.items():
        given = _entry(found).get("rows")
        numbers = None if given is None else [known.setdefault(json.dumps(row), len(known)) for row in given]
        numbered.append((begin, end, numbers))
    return expected, {"pairs": numbered, "rows": [json.loads(row) for row in known]}


def _entry(found: pa.Table | PeerError) -> dict[str, Any]:
    return {"error": str(found).splitlines()[0]} if isinstance(found, PeerError) else {"rows": rows_of(found)}


def how(recipe: Recipe, text: str) -> str:
    options = "\n".join(sorted(f"{key}={value}" for key, value in (WRITE_DEFAULTS | recipe.options).items()))
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(recipe.steps, 1))
    timeline = "\n".join(f"- `{name}`" for name in timeline_of(recipe.path))
    return f"""\
# {recipe.path.parent.name}

{text}

Written by Apache Hudi 1.2.0 (hudi-spark3.5-bundle_2.12) on pyspark 3.5.9, local[2], session time zone UTC, by
`python -m integration.make_goldens`. `.crc` files of the local file system were removed (readers do not need them).

## Options on every write
```
{options}
```

## Steps (and the newest timeline file after each)
{steps}

## Timeline at the end
{timeline}

## expected.json
As in the other golden tables: rows as Spark returns them through the bundle, sorted by partition path and record key.
"""


# -- a process whose clock was set back

_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(id, at);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec -= BACK_S;
  return failed;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""


@contextmanager
def peer(scratch: Path, *, days_ago: int = 0) -> Any:
    """An Apache Hudi, perhaps of another day."""
    scratch.mkdir(parents=True, exist_ok=True)
    if days_ago:
        (scratch / "clock.c").write_text(_CLOCK)
        built = ["gcc", "-shared", "-fPIC", f"-DBACK_S={days_ago * 86400}", "-o", "clock.so", "clock.c", "-ldl"]
        subprocess.run(built, cwd=scratch, check=True)
        os.environ["LD_PRELOAD"] = str(scratch / "clock.so")
    try:
        with (scratch / "peer.log").open("w", encoding="utf-8") as log:
            hudi = HudiPeer(python=ROOT / PYTHON, bundle_jar=ROOT / BUNDLE, scratch=scratch, log=log)
            os.environ.pop("LD_PRELOAD", None)
            try:
                yield hudi
            finally:
                hudi.close()
    finally:
        os.environ.pop("LD_PRELOAD", None)


def set_times(path: Path) -> None:
    """Apache Hudi takes the modification time of a completed file for the moment of its completion."""
    for name in timeline_of(path):
        at = datetime.strptime(name[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp() + 1
        os.utime(path / ".hoodie" / name, (at, at))


def make(folder: Path, names: Iterable[str], scratch: Path) -> None:
    recipes: dict[str, Recipe] = {}

    def recipe_of(name: str, hudi: HudiPeer) -> Recipe:
        _, table_type, more, _ = RECIPES[name]
        recipe = recipes.setdefault(name, Recipe(hudi, folder / name / "table", table_type, more))
        recipe.hudi = hudi
        return recipe

    if "v6_expired" in names:
        with peer(scratch / "past", days_ago=DAYS_AGO) as hudi:
            past(recipe_of("v6_expired", hudi))
        set_times(recipes["v6_expired"].path)
    with peer(scratch / "now") as hudi:
        for key, value in NO_UPGRADE.items():
            hudi.sql(f"set {key}={value}")
        for name in names:
            text, _, _, act = RECIPES[name]
            recipe = recipe_of(name, hudi)
            act(recipe)
            target = folder / name
            if name not in WITHOUT_ANSWERS:
                expected, pairs = answers_of(hudi, recipe.path)
                (target / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, separators=(",", ":")))
                (target / "pairs.json").write_text(json.dumps(pairs, ensure_ascii=False, separators=(",", ":")))
            (target / "how.md").write_text(how(recipe, text))
            for crc in recipe.path.rglob(".*.crc"):
                crc.unlink()
            shutil.rmtree(recipe.path / ".hoodie" / ".temp", ignore_errors=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        make(Path(sys.argv[1]).resolve(), sys.argv[2:] or list(RECIPES), Path(scratch))
