"""Paths that lead out of the table: in partition values, commit metadata, plans, and symbolic links.

Each test is named by its attack. Beside the table stands a folder that looks like a part of it; nothing there may change.
"""

import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFileError, HoodieError, UnsupportedTableError
from hoodie.format.plan_avro import COMPACTION_PLAN, ROLLBACK_PLAN, encode_plan
from hoodie.model.instant import is_instant_time
from hoodie.model.names import is_partition_path, name_of, parse_base_file, parse_instant_file, parse_log_file
from hoodie.storage.local import LocalStorage
from tests.effort import long_but

ROWS = pa.table({"id": ["a", "b"], "part": ["x", "y"], "val": [1, 2]})
DEAD = "20260101000000000"
PLANNED = "20260101000000001"
# Partition paths as metadata may hold them. A path with a NUL in it is none.
ESCAPES = [
    "..",
    "../outside",
    "x/../../outside",
    "/etc",
    "./x",
    "x/",
    "x//y",
    "x\0y",
    ".hoodie",
    ".hoodie/metadata",
    ".",
]


def make(path: Path, **options: str) -> hoodie.HoodieTable:
    table = hoodie.create_table(
        path, None, record_key="id", partition_by="part", table_type="MERGE_ON_READ", options=options or None
    )
    table.upsert(ROWS)
    return table


@pytest.fixture
def table(tmp_path):
    """A table with two partitions, and beside it a folder with a base file that bears a table's name."""
    made = make(tmp_path / "table")
    outside = tmp_path / "outside"
    outside.mkdir()
    for file in made.files()[0].base, made.files()[1].base:
        (outside / file.name).write_bytes((tmp_path / "table" / file.path).read_bytes())
    (outside / f"f-0_0-1-2_{DEAD}.parquet").write_bytes(b"precious")
    (outside / "precious.txt").write_bytes(b"precious")
    return made


@pytest.fixture(autouse=True)
def nothing_outside_changes(tmp_path):
    yield
    outside = tmp_path / "outside"
    if outside.exists():
        assert (outside / "precious.txt").read_bytes() == b"precious"
        assert (outside / f"f-0_0-1-2_{DEAD}.parquet").read_bytes() == b"precious"
        assert len(list(outside.iterdir())) == 4
    assert {path.name for path in tmp_path.iterdir()} <= {"table", "outside"}


def rows(table: hoodie.HoodieTable) -> list[dict]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def root(table: hoodie.HoodieTable) -> Path:
    return Path(table.uri)


# --- partition values ---------------------------------------------------------------------------------------------

VALUES = [
    "../../outside",
    "..",
    ".",
    "",
    "/etc/passwd",
    "x/../../../outside",
    "//outside",
    "..\\..\\outside",
    "%2e%2e%2foutside",
    "..%2foutside",
    ".hoodie",
    ".hoodie/metadata",
    "file:///outside",
    "s3://outside/x",
    "~/outside",
    "$HOME",
    "nul\0byte",
    "\u2025/\u2025",
    "x\n../outside",
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("style", long_but(["plain"], ["plain", "both"]))
def test_partition_value_that_climbs_out(tmp_path, value, style):
    options = {
        "hoodie.datasource.write.hive_style_partitioning": str(style == "both").lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(style == "both").lower(),
    }
    made = make(tmp_path / "table", **options)
    before = rows(made)
    try:
        made.upsert(pa.table({"id": ["c"], "part": [value], "val": [3]}))
    except HoodieError:
        assert rows(made) == before
        return
    assert len(rows(made)) == 3
    (folder,) = set(made.partitions()) - {"x", "y", "part=x", "part=y"}
    assert is_partition_path(folder)
    assert not list((tmp_path / "table/.hoodie").rglob("*.parquet"))
    assert list((tmp_path / "table" / folder).resolve().relative_to((tmp_path / "table").resolve()).parts)


# --- commit metadata ----------------------------------------------------------------------------------------------


def rewrite_commit(table: hoodie.HoodieTable, change) -> str:
    """Change the JSON of the table's only commit; its file name."""
    (path,) = (root(table) / ".hoodie").glob("*.deltacommit")
    metadata = json.loads(path.read_bytes())
    change(metadata)
    path.write_bytes(json.dumps(metadata).encode())
    return path.name


def queries(table: hoodie.HoodieTable):
    latest = table.timeline.latest_commit.time
    yield lambda: table.scan().to_arrow()
    yield lambda: table.scan(query="read_optimized").to_arrow()
    yield lambda: table.scan(as_of=latest).to_arrow()
    yield lambda: table.changes().to_arrow()
    yield lambda: table.upsert(ROWS)
    yield lambda: table.delete(ROWS.select(["id", "part"]))
    yield table.compact


@pytest.mark.parametrize("folder", ESCAPES)
def test_commit_whose_partition_leads_out(table, folder):
    def move(metadata):
        stats = metadata["partitionToWriteStats"]
        stats[folder] = stats.pop("x")
        for stat in stats[folder]:
            stat["path"] = f"{folder}/{name_of(stat['path'])}"
            stat["partitionPath"] = folder

    name = rewrite_commit(table, move)
    for query in queries(table):
        with pytest.raises(CorruptFileError, match=name):
            query()


@pytest.mark.parametrize("folder", ["../outside", "/etc", "x/..", "y", ""])
def test_commit_whose_file_lies_elsewhere_than_its_partition(table, folder):
    def move(metadata):
        for stat in metadata["partitionToWriteStats"]["x"]:
            stat["path"] = f"{folder}/{name_of(stat['path'])}".lstrip("/" if not folder else "")

    name = rewrite_commit(table, move)
    for query in queries(table):
        with pytest.raises(CorruptFileError, match=name):
            query()


@pytest.mark.parametrize("log", ["../../outside/precious.txt", "..", "x/y", "a\0b", ""])
def test_commit_whose_list_of_log_files_leads_out(table, log):
    def name_it(metadata):
        metadata["partitionToWriteStats"]["x"][0]["logFiles"] = [log]

    name = rewrite_commit(table, name_it)
    with pytest.raises(CorruptFileError, match=name):
        table.scan().to_arrow()


@pytest.mark.parametrize("folder", ESCAPES)
def test_replaced_file_groups_of_a_partition_that_leads_out(table, folder):
    name = rewrite_commit(table, lambda metadata: metadata.update(partitionToReplaceFileIds={folder: ["f-0"]}))
    with pytest.raises(CorruptFileError, match=name):
        table.upsert(ROWS)


# --- plans --------------------------------------------------------------------------------------------------------


def put(table: hoodie.HoodieTable, name: str, data: bytes = b"") -> None:
    (root(table) / ".hoodie" / name).write_bytes(data)


def tree(folder: Path) -> dict[str, bytes]:
    """The files of a table but for those that only say who lives."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "/.hoodie_py/" not in str(path) and "/.heartbeat/" not in str(path)
    }


def operation(**changes):
    found = {
        "baseInstantTime": DEAD,
        "deltaFilePaths": [f".f-0_{DEAD}.log.1_0-1-2"],
        "dataFilePath": f"f-0_0-1-2_{DEAD}.parquet",
        "fileId": "f-0",
        "partitionPath": "x",
        "metrics": None,
    }
    return {**found, **changes}


COMPACTIONS = {
    **{f"partition {folder!r}": {"partitionPath": folder} for folder in ESCAPES},
    "file id ../../f": {"fileId": "../../outside/f", "dataFilePath": None, "deltaFilePaths": []},
    "file id with a NUL": {"fileId": "f\0", "dataFilePath": None, "deltaFilePaths": []},
    "data file elsewhere": {"dataFilePath": f"../outside/f-0_0-1-2_{DEAD}.parquet"},
    "data file of another group": {"dataFilePath": f"g-0_0-1-2_{DEAD}.parquet"},
    "log file elsewhere": {"deltaFilePaths": [f"/etc/.f-0_{DEAD}.log.1_0-1-2"]},
    "log file of another group": {"deltaFilePaths": [f".g-0_{DEAD}.log.1_0-1-2"]},
    "one log file twice": {"deltaFilePaths": [f".f-0_{DEAD}.log.1_0-1-2"] * 2},
    "an instant that is none": {"baseInstantTime": "../1"},
}


@pytest.mark.parametrize("changes", COMPACTIONS.values(), ids=COMPACTIONS.keys())
def test_compaction_plan_that_leads_out(table, changes):
    name = f"{PLANNED}.compaction.requested"
    put(table, name, encode_plan(COMPACTION_PLAN, {"operations": [operation(**changes)], "version": 2}))
    before = tree(root(table))
    for run in (table.compact, lambda: table.upsert(ROWS), lambda: table.scan().to_arrow()):
        with pytest.raises(CorruptFileError, match=re.escape(name)):
            run()
    assert tree(root(table)) == before


def rollback(table: hoodie.HoodieTable, *requests: dict, instant: str = DEAD) -> bytes:
    full = [
        {
            "partitionPath": "x",
            "fileId": None,
            "latestBaseInstant": None,
            "filesToBeDeleted": [],
            "logBlocksToBeDeleted": {},
            **request,
        }
        for request in requests
    ]
    target = {"commitTime": instant, "action": "deltacommit"}
    return encode_plan(ROLLBACK_PLAN, {"instantToRollback": target, "RollbackRequests": full, "version": 1})


MINE = f"f-0_0-1-2_{DEAD}.parquet"
ROLLBACKS = {
    **{f"partition {folder!r}": [{"partitionPath": folder, "filesToBeDeleted": [MINE]}] for folder in ESCAPES},
    "the table's own properties": [{"partitionPath": "", "filesToBeDeleted": [".hoodie/hoodie.properties"]}],
    "any file of the system": [{"filesToBeDeleted": ["/etc/passwd"]}],
    "a file beside the table": [{"filesToBeDeleted": ["x/../../outside/precious.txt"]}],
    "a timeline file": [{"filesToBeDeleted": [f"{DEAD}.deltacommit"]}],
    "the base file of another instant": [{"filesToBeDeleted": [f"f-0_0-1-2_{PLANNED}.parquet"]}],
    "a log file of another slice": [{"filesToBeDeleted": [f".f-0_{PLANNED}.log.1_0-1-2"]}],
    "a file group that leads out": [
        {"fileId": "../../outside/f", "latestBaseInstant": DEAD, "logBlocksToBeDeleted": {"l": 1}}
    ],
    "a base instant that leads out": [
        {"fileId": "f-0", "latestBaseInstant": "/../../outside/x", "logBlocksToBeDeleted": {"l": 1}}
    ],
}


@pytest.mark.parametrize("requests", ROLLBACKS.values(), ids=ROLLBACKS.keys())
@pytest.mark.parametrize("begun", long_but([True], [True, False]))
def test_rollback_plan_that_deletes_what_is_not_of_its_instant(table, requests, begun):
    """A plan whose rollback has not begun may be a torn one: it is taken away, and what it names stays all the same."""
    plan = f"{PLANNED}.rollback.requested"
    put(table, plan, rollback(table, *requests))
    if begun:
        put(table, f"{PLANNED}.rollback.inflight")
        before = tree(root(table))
        with pytest.raises(CorruptFileError, match=re.escape(plan)):
            table.upsert(ROWS)
        assert tree(root(table)) == before
    else:
        before = tree(root(table))
        table.upsert(ROWS)
        assert before.keys() - tree(root(table)).keys() <= {f".hoodie/{plan}"}


@pytest.mark.parametrize("instant", ["", "..", "../../outside", "metadata", "1", "2026010100000000x", "\0"])
def test_rollback_of_an_instant_that_leads_out(table, instant):
    """Markers and staging folders are deleted by the instant's name."""
    put(table, f"{PLANNED}.rollback.requested", rollback(table, instant=instant))
    put(table, f"{PLANNED}.rollback.inflight")
    (root(table) / ".hoodie/.temp/keep").mkdir(parents=True, exist_ok=True)
    before = tree(root(table))
    with pytest.raises(CorruptFileError, match=PLANNED):
        table.upsert(ROWS)
    assert tree(root(table)) == before
    assert (root(table) / ".hoodie/.temp/keep").is_dir()


# --- symbolic links -----------------------------------------------------------------------------------------------


def test_partition_that_is_a_link_to_another_folder(table, tmp_path):
    folder = root(table) / "x"
    folder.rename(tmp_path / "table" / "was-x")
    folder.symlink_to(tmp_path / "outside")
    for query in (lambda: table.scan().to_arrow(), lambda: table.upsert(ROWS), table.compact):
        with pytest.raises(UnsupportedTableError, match="symbolic link"):
            query()


def test_link_that_makes_a_listing_go_in_circles(table):
    (root(table) / "x" / "loop").symlink_to(root(table))
    with pytest.raises(UnsupportedTableError, match=r"x/loop is a symbolic link"):
        table.scan().to_arrow()


@pytest.mark.parametrize(
    "act",
    [
        lambda storage: storage.delete("link/precious.txt"),
        lambda storage: storage.delete_folder("link/below"),
        lambda storage: storage.create_new("link/new", b""),
        lambda storage: storage.replace("link/precious.txt", b""),
        lambda storage: storage.touch("link/precious.txt"),
        lambda storage: storage.mkdirs("link/new"),
        lambda storage: storage.move_new("link/precious.txt", "mine"),
        lambda storage: storage.rename_folder("link/below", "mine"),
        lambda storage: storage.list("link"),
        lambda storage: storage.list("link/below"),
        lambda storage: storage.list("", recursive=True),
        lambda storage: storage.open_output("link/new").__enter__(),
    ],
)
def test_link_out_of_the_root_is_followed_by_nothing_that_lists_or_changes(tmp_path, act):
    outside = tmp_path / "outside"
    (outside / "below").mkdir(parents=True)
    for name in ("precious.txt", f"f-0_0-1-2_{DEAD}.parquet", "another.txt"):
        (outside / name).write_bytes(b"precious")
    (tmp_path / "table").mkdir()
    (tmp_path / "table/link").symlink_to(outside)
    with pytest.raises(UnsupportedTableError, match="symbolic link"):
        act(LocalStorage(tmp_path / "table"))
    assert (outside / "below").is_dir()


def test_root_that_is_a_link_is_a_table_like_any_other(tmp_path):
    made = make(tmp_path / "table")
    (tmp_path / "outside").symlink_to(tmp_path / "table")
    try:
        linked = hoodie.open_table(tmp_path / "outside")
        linked.upsert(ROWS)
        assert rows(linked) == rows(made)
    finally:
        os.unlink(tmp_path / "outside")


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parse", [parse_base_file, parse_log_file, parse_instant_file])
@pytest.mark.parametrize(
    "name",
    [
        "../f-0_0-1-2_20260101000000000.parquet",
        "x/.f-0_20260101000000000.log.1_0-1-2",
        ".../.f-0_20260101000000000.log.1_0-1-2",
        ".x/f-0_20260101000000000.log.1_0-1-2",
        "20260101000000000/../../x.commit",
        "_" * 100_000,
        "-" * 1_000 + ".log." + "9" * 100_000,
        "." * 100_000,
        "20260101000000000." * 10_000,
    ],
)
def test_file_name_that_leads_elsewhere_or_is_endless_is_none(parse, name):
    assert parse(name) is None


@pytest.mark.parametrize("text", ["", "../1", "1", "20260101000000000/..", "２０２６０１０１００００００"])
def test_instant_that_leads_elsewhere_is_none(text):
    assert not is_instant_time(text)
