"""Public jobs (`tests/public_jobs.conf`) by us and by Apache Hudi, each into a table of its own: where the two tables differ."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import hoodie
from hoodie.model.enums import TableType
from integration.history_run import UNCHECKED
from integration.hudi_client import HudiPeer, PeerError, read_options
from integration.views import View, ours, views_of
from tests.effort import SOAK
from tests.public_jobs import OPERATION, Job
from tests.rows import Row, rows_of, without

OF_THE_WRITER = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")
"""Meta columns that two writers fill differently."""

AS_IT_COMES = {
    "hoodie.write.auto.upgrade": "true",
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.bloom.index.parallelism": "1",
}
"""What `hudi_peer.WRITE_DEFAULTS` change for other tests is Hudi's own default again."""

SERVERS = {
    "hoodie.datasource.hive_sync.enable": "a Hive metastore",
    "hoodie.datasource.meta.sync.enable": "a catalog",
    "hoodie.metrics.on": "a collector of metrics",
    "hoodie.write.commit.callback.on": "a broker, and a class that is not in the bundle",
}
"""Options that Hudi runs without, and what they need; all others stay."""
LOCK = "hoodie.write.lock.provider"
HERE = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"


def without_servers(job: Job, options: Mapping[str, str]) -> dict[str, str]:
    """The options that need no server: a lock of this process in place of another's, and the default index in place of HBase's."""
    kept = {key: text for key, text in options.items() if key not in SERVERS}
    if job.server is not None and LOCK in kept:
        kept[LOCK] = HERE
    if kept.get("hoodie.index.type") == "HBASE":
        del kept["hoodie.index.type"]
    # As many tasks as a cluster has cores: of three rows one task makes the same.
    return {key: "1" if key.endswith(".parallelism") else text for key, text in kept.items()}


def by_us(job: Job, path: Path) -> None:
    """Both writes by the embedded engine."""
    first, second = job.rows()
    load = "upsert" if job.operation not in ("insert", "bulk_insert") else job.operation
    options, later = job.load_options, job.options
    if job.server is not None:
        options, later = without_servers(job, options), without_servers(job, later)
    table = hoodie.create_table(path, first, record_key=list(job.keys), options=options)
    table.write(first, load, options)
    table.write(second, job.operation, later)


def by_them(hudi: HudiPeer, job: Job, path: Path, version: str) -> None:
    """Both writes by Apache Hudi."""
    # Three have their table's name on a command line.
    defaults = {**AS_IT_COMES, "hoodie.write.table.version": version, "hoodie.table.name": "t"}
    for rows, options, mode in zip(job.rows(), (job.load_options, job.options), ("overwrite", "append"), strict=True):
        hudi.write(path, rows, {**defaults, **without_servers(job, options)}, mode=mode)


def folders(path: Path) -> list[str]:
    """Those that hold data."""
    found = {each.parent.relative_to(path) for each in path.rglob("*.parquet")}
    return sorted(str(each) for each in found if ".hoodie" not in each.parts)


def questions(path: Path) -> dict[str, View]:
    """What is compared between tables of two writers."""
    ends = sorted(commit.position for commit in hoodie.open_table(path).timeline.commits)
    asked = {"snapshot": View(), "read-optimized": View("read_optimized")}
    return asked | ({"pull": View("incremental", ends[0], ends[-1])} if len(ends) > 1 else {})


def said(act: Callable[[], None]) -> str | None:
    """What went wrong."""
    try:
        act()
    except (PeerError, Exception) as error:  # noqa: BLE001 - whatever it is, it is the answer
        return f"{type(error).__name__}: {error}"
    return None


def asked_of_hudi(hudi: HudiPeer, path: Path, views: list[View]) -> list[list[Row] | str]:
    """The rows of each view, or what Hudi says."""
    sets = [read_options(view.query, begin=view.begin, end=view.end, as_of=view.as_of) for view in views]
    return [str(each) if isinstance(each, PeerError) else rows_of(each) for each in hudi.read_many(path, sets)]


def tried(path: Path, view: View) -> list[Row] | str:
    try:
        return ours(path, view)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return f"{type(error).__name__}: {error}"


def told(left: list[Row] | str, right: list[Row] | str) -> str:
    """The first rows that differ."""
    if isinstance(left, str) or isinstance(right, str):
        return f"{left if isinstance(left, str) else 'rows'} | {right if isinstance(right, str) else 'rows'}"
    missing = [row for row in left if row not in right][:2]
    extra = [row for row in right if row not in left][:2]
    return f"{len(left)} and {len(right)} rows; only left: {missing}; only right: {extra}"


def compared(hudi: HudiPeer, job: Job, folder: Path, version: str = "9", *, every: bool = SOAK) -> list[str]:
    """A line for each difference: between the two writers, and between the two readers of either's table."""
    mine, theirs = folder / "ours", folder / "hudi"
    errors = {"ours": said(lambda: by_us(job, mine)), "hudi": said(lambda: by_them(hudi, job, theirs, version))}
    if any(errors.values()):
        return [f"error of {who}: {text}" for who, text in errors.items() if text]
    # A made key has the time of its commit.
    apart = OF_THE_WRITER if job.keys else (*OF_THE_WRITER, "_hoodie_record_key")
    found = []
    if folders(mine) != folders(theirs):
        found.append(f"folders: {folders(mine)} | {folders(theirs)}")
    asked = questions(mine), questions(theirs)
    for name in sorted({*asked[0], *asked[1]}):
        if name not in asked[0] or name not in asked[1]:
            found.append(f"{name}: commits of one only")
            continue
        both = tried(mine, asked[0][name]), tried(theirs, asked[1][name])
        left, right = (each if isinstance(each, str) else without(each, *apart) for each in both)
        if left != right:
            found.append(f"writers, {name}: {told(left, right)}")
    for path in (mine, theirs):
        views = list(views_of(path) if every else questions(path).values())
        for view, answer in zip(views, asked_of_hudi(hudi, path, views), strict=True):
            mine_read = tried(path, view)
            # Hudi gives rows of what is left, or an error of its own.
            if mine_read != answer and not (isinstance(mine_read, str) and "were cleaned" in mine_read):
                found.append(f"readers of {path.name}, {tuple(view)}: {told(mine_read, answer)}")
    return found


def compared_later(hudi: HudiPeer, job: Job, folder: Path, version: str = "9") -> list[str]:
    """A line for each difference between the two readers, of both writers' tables, after more writes of both, and our services."""
    mine, theirs = folder / "ours", folder / "hudi"
    errors = {"ours": said(lambda: by_us(job, mine)), "hudi": said(lambda: by_them(hudi, job, theirs, version))}
    found = [f"error of {who}: {text}" for who, text in errors.items() if text]
    for path in (mine, theirs):
        if path.exists():
            found += [f"{path.name}, {line}" for line in _differences_later(hudi, job, path, version)]
    return found


def _differences_later(hudi: HudiPeer, job: Job, path: Path, version: str) -> Iterator[str]:
    load = "upsert" if job.keys and job.operation not in ("insert", "bulk_insert") else "insert"
    options = without_servers(job, job.load_options)
    # Some say that the rows are of an insert, and what becomes of those that are there.
    options = {key: text for key, text in options.items() if key != OPERATION and ".insert." not in key}
    asked = {
        **AS_IT_COMES,
        **UNCHECKED,
        "hoodie.write.table.version": version,
        "hoodie.table.name": "t",
        **options,
        OPERATION: load,
    }
    third, fourth = job.later_rows()
    merges = hoodie.open_table(path).config.table_type is TableType.MERGE_ON_READ

    def our_writes() -> None:
        table = hoodie.open_table(path)
        table.write(third, load, options)
        if job.keys:
            table.write(third.slice(0, 1), "delete", options)

    def services() -> None:
        table = hoodie.open_table(path, options=options)
        if merges:
            table.compact()
        table.clean()

    steps: dict[str, Callable[[], object]] = {
        "our writes": our_writes,
        "our services": services,
        "its write": lambda: hudi.write(path, fourth, asked),
        "our services again": services,
    }
    for step, act in steps.items():
        if text := said(act):
            yield f"{step}: {text}"
            return
        views = [View(), View("read_optimized")] if merges else [View()]
        for view, answer in zip(views, asked_of_hudi(hudi, path, views), strict=True):
            if (mine_read := tried(path, view)) != answer:
                yield f"{step}, {view.query}: {told(mine_read, answer)}"
    yield from map(str, hoodie.open_table(path).doctor().findings if load == "upsert" else ())
