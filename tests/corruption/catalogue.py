"""Kinds of damage that people meet: each is done to a table on a disk, and says what is to become of the rows."""

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import hoodie
from hoodie.model.instant import format_instant, parse_instant

OLD_S = 1_000_000_000
"""A modification time at which nobody is at work."""
FUTURE = "20991127014124599"
PROPERTIES = ".hoodie/hoodie.properties"


def make(path: Path) -> None:
    """Two folders of a merge-on-read table: base files, logs with updates and deletes, a compaction, a replaced group, a savepoint,
    a clean, an archive and a named consumer.
    """
    table = hoodie.create_table(path, record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ")
    upsert(table, 0, ("oslo",))
    for version in range(1, 4):
        upsert(table, version, ("rome",))
    table.insert_overwrite([{"id": n, "city": "bern", "ts": 0, "fare": 0.0} for n in range(2)])
    table.insert_overwrite([{"id": n, "city": "bern", "ts": 1, "fare": 1.0} for n in range(2)])
    table.compact()
    upsert(table, 5, ("rome", "bern"))
    table.clean(retain_commits=1)
    table.archive(min_commits=3)
    upsert(table, 6, ("rome", "bern"))
    table.savepoint()
    upsert(table, 7, ("rome",))
    table.delete([{"id": 1, "city": "rome"}])
    table.consumer("reader", start="latest")


def upsert(table: hoodie.HoodieTable, version: int, cities: tuple[str, ...]) -> None:
    table.upsert([{"id": n, "city": c, "ts": version, "fare": float(version)} for c in cities for n in range(4)])


class Damage(NamedTuple):
    do: Callable[[Path], object]
    names: str
    """What the doctor's report has to name, a pattern."""
    values: dict[str, str] = {}  # noqa: RUF012 - nobody changes it
    """What the user knows of properties, for the command that asks for it."""
    undoes: int = 0
    """How many of the newest commits the way out takes back."""
    is_damage: bool = True
    """Whether `validate` finds it, too; else it costs, or will."""
    only_deep: bool = False
    """Whether rows, or the archive, have to be read for it."""
    is_silent: bool = False
    """Whether queries do not know of it: what only the archive says, they do not read."""


# -- files -------------------------------------------------------------------------------------------------------------


def base(table: Path, folder: str = "rome") -> Path:
    return max((table / folder).glob("*.parquet"), key=lambda path: path.name.rpartition("_")[2])


def logs(table: Path, folder: str = "rome") -> list[Path]:
    """Logs by slice and version, oldest first; a write token at the end of a name is random, and of any length."""
    found = (table / folder).glob(".*.log.*")
    return sorted(
        (p for p in found if not p.name.endswith(".crc")),
        key=lambda path: [int(part) for part in re.findall(r"_(\d+)\.log\.(\d+)_", path.name)[0]],
    )


def newest(table: Path, *, action: str = "deltacommit", at: int = -1) -> Path:
    return sorted((table / ".hoodie").glob(f"*.{action}"))[at]


def cut(path: Path, size: int | None = None) -> None:
    os.truncate(path, path.stat().st_size // 2 if size is None else size)


def in_place(path: Path, other: Path) -> None:
    """The content of another file, filled up to the same size."""
    shutil.copyfile(other, path)


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def later(time: str, seconds: int = 10) -> str:
    return format_instant(parse_instant(time) + timedelta(seconds=seconds))


def saved_file(table: Path) -> Path:
    """A file that only the savepoint holds: the table has gone on to another base file."""
    hoodie.open_table(table).compact()
    return logs(table, "rome")[0]


def lose_archived(table: Path) -> None:
    """A base file that nothing but the archive names."""
    opened = hoodie.open_table(table)
    opened.drop_savepoint(opened.savepoints()[-1].instant)
    base(table, "oslo").unlink()


def plan(table: Path, action: str, content: bytes = b"garbage", *, age: bool = True) -> Path:
    path = table / ".hoodie" / f"{later(newest(table).name[:17])}.{action}"
    path.write_bytes(content)
    if age:
        os.utime(path, (OLD_S, OLD_S))
    return path


def future(table: Path, source: Path) -> None:
    """A commit copied under the name of an instant that a wrong clock gave."""
    for path in (table / ".hoodie").glob(f"{source.name[:17]}.*"):
        shutil.copyfile(path, path.with_name(path.name.replace(source.name[:17], FUTURE)))


def stray(table: Path) -> None:
    twin = base(table).with_name(re.sub(r"_[0-9-]+_", "_7-7-7_", base(table).name))
    shutil.copyfile(base(table), twin)
    os.utime(twin, (OLD_S, OLD_S))


def swap_logs(table: Path) -> None:
    in_place(logs(table, "rome")[0], logs(table, "bern")[0])
    shutil.rmtree(table / ".hoodie/.hoodie_py/rows", ignore_errors=True)


def older_base_in_place(table: Path) -> None:
    """A base file of the other folder, padded to the size that the commit states."""
    path, other = base(table, "rome"), base(table, "bern")
    size = path.stat().st_size
    shutil.copyfile(other, path)
    if path.stat().st_size < size:
        data = path.read_bytes()
        path.write_bytes(data[:4] + b"\0" * 0 + data[4:])
        os.truncate(path, size)


def dead_write(table: Path, states: tuple[str, ...], action: str = "deltacommit") -> None:
    time = later(newest(table).name[:17])
    for state in states:
        path = table / ".hoodie" / f"{time}.{action}.{state}"
        path.write_bytes(b"")
        os.utime(path, (OLD_S, OLD_S))


def folder_of_nobody(table: Path, path: str) -> None:
    made = table / path
    made.mkdir(parents=True)
    os.utime(made, (OLD_S, OLD_S))


def torn_properties(table: Path) -> None:
    cut(table / PROPERTIES)


def update_died(table: Path) -> None:
    shutil.copyfile(table / PROPERTIES, table / ".hoodie/hoodie.properties.backup")
    (table / PROPERTIES).write_bytes(b"")


def archive_file(table: Path) -> Path:
    return max((table / ".hoodie/history").glob(".commits*"), key=lambda path: path.stat().st_size)


def lost_instant(table: Path, at: int) -> None:
    time = newest(table, at=at).name[:17]
    for path in (table / ".hoodie").glob(f"{time}.*"):
        path.unlink()
    for path in logs(table):
        os.utime(path, (OLD_S, OLD_S))


def plan_of_lost_files(table: Path) -> None:
    """A compaction plan that names another log file than the one that is there."""
    hoodie.open_table(table).schedule_compaction()
    path = newest(table, action="compaction.requested")
    path.write_bytes(path.read_bytes().replace(b".log.1_", b".log.7_"))
    os.utime(path, (OLD_S, OLD_S))


def clustering_of_lost_files(table: Path) -> None:
    """A clustering plan that names another base file than the one that is there."""
    hoodie.open_table(table).schedule_clustering()
    path, name = newest(table, action="replacecommit.requested"), base(table).name.encode()
    assert name in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(name, b"0" * 8 + name[8:]))
    os.utime(path, (OLD_S, OLD_S))


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A commit with other metadata."""
    metadata = json.loads(path.read_text(encoding="utf-8"))
    change(metadata)
    path.write_text(json.dumps(metadata), encoding="utf-8")


def replaces_what_lives(table: Path) -> None:
    group = base(table).name.partition("_")[0]
    edited(
        newest(table, action="replacecommit"),
        lambda metadata: metadata["partitionToReplaceFileIds"].setdefault("rome", []).append(group),
    )


def clustered_without_a_list(table: Path) -> None:
    """A clustering whose commit has lost what it replaces."""
    opened = hoodie.open_table(table)
    opened.compact()
    opened.cluster(sort_by="fare")
    edited(newest(table, action="replacecommit"), lambda metadata: metadata.update(partitionToReplaceFileIds={}))


def names_no_file(path: Path) -> None:
    edited(path, lambda metadata: metadata.update(partitionToWriteStats={}))


def of_another_table(path: Path) -> None:
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in ("left", "right")]
    schema = json.dumps({"type": "record", "name": "other", "fields": fields})
    edited(path, lambda metadata: metadata["extraMetadata"].update(schema=schema))


def folder_at(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def file_at(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.write_bytes(b"")


def future_savepoint(table: Path) -> None:
    for path in [*(table / ".hoodie").glob("*.savepoint*")]:
        shutil.copyfile(path, path.with_name(FUTURE + path.name[17:]))


def stated(key: str, value: str) -> Callable[[Path], None]:
    """A property with another value than the table's."""

    def do(table: Path) -> None:
        path = table / PROPERTIES
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(rf"(?m)^{re.escape(key)}=.*$", f"{key}={value}", text), encoding="utf-8")

    return do


def renamed_group(table: Path) -> None:
    replaced(newest(table), '"rome/', '"rona/')


def lose_timeline(table: Path) -> None:
    for path in (table / ".hoodie").iterdir():
        if path.name[:1].isdigit():
            path.unlink()


def bring_back_archived(table: Path) -> None:
    """The files of the first archived commit lie among the active ones again, as after an old copy was put over the table."""
    time = min(hoodie.open_table(table).archived_instants()).time
    for state in (".requested", ".inflight", ""):
        path = table / f".hoodie/{time}.deltacommit{state}"
        path.write_bytes(newest(table).read_bytes() if not state else b"")
        os.utime(path, (OLD_S, OLD_S))


def copied_folder(table: Path) -> None:
    shutil.copytree(table / "oslo", table / "oslo2")


def old_empty_file(table: Path) -> None:
    """What a full disk leaves, under the name of an instant that nothing knows."""
    (table / "rome/deadbeef-0_0-0-0_20200101000000000.parquet").touch()


def linked_to(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def with_column(name: str, values: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    """The rows with other values in a column."""

    def change(rows: pa.Table) -> pa.Table:
        field = rows.schema.field(name)
        return rows.set_column(
            rows.column_names.index(name), field, pa.array(values(rows[name].to_pylist()), field.type)
        )

    return change


def other_column(name: str, values: Callable[[list[Any]], list[Any]]) -> Callable[[Path], None]:
    return lambda table: rewritten(base(table), with_column(name, values))


def other_rows_in_properties(table: Path) -> None:
    replaced(table / PROPERTIES, "recordkey.fields=id", "recordkey.fields=nope")


KNOWN = {
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.partition.fields": "city",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.table.name": "table",
}


DAMAGES = {
    # data files
    "a base file is missing": Damage(lambda t: base(t).unlink(), r"rome/.*\.parquet is gone"),
    "a base file is cut": Damage(lambda t: cut(base(t)), r"rome/.*\.parquet"),
    "a base file is empty": Damage(lambda t: cut(base(t), 0), r"rome/.*\.parquet"),
    "a folder in the place of a base file": Damage(lambda t: folder_at(base(t)), r"rome/.*\.parquet is gone"),
    "a base file with fewer rows than its log files replace": Damage(
        lambda t: rewritten(base(t), lambda rows: rows.slice(3)), r"rome/.*\.parquet", only_deep=True
    ),
    "a base file whose rows have no keys": Damage(
        lambda t: rewritten(base(t), without_keys), "4 rows without a record key", only_deep=True
    ),
    "the last byte of a base file is missing": Damage(
        lambda t: cut(base(t), base(t).stat().st_size - 1), r"rome/.*\.parquet"
    ),
    "a base file has a damaged page": Damage(
        lambda t: _flip(base(t), _in_a_page(base(t))), r"rome/.*\.parquet", only_deep=True
    ),
    "a base file is zeros": Damage(
        lambda t: base(t).write_bytes(bytes(base(t).stat().st_size)), r"rome/.*\.parquet", only_deep=True
    ),
    "a base file of another folder": Damage(
        lambda t: rewritten(base(t), lambda rows: pq.read_table(base(t, "bern"))), r"rome/.*\.parquet", only_deep=True
    ),
    "a base file that is a link to itself": Damage(
        lambda t: linked_to(base(t), base(t).name), r"rome/.*Too many levels"
    ),
    "a base file with other values in its key column": Damage(
        other_column("id", lambda ids: [100 + each for each in ids]),
        r"id makes other record keys .*rome/",
    ),
    "a base file whose keys are in another order than its rows": Damage(
        other_column("_hoodie_record_key", lambda keys: keys[::-1]), r"id makes other record keys .*rome/"
    ),
    "a base file without values in its key column": Damage(
        other_column("id", lambda ids: [None for _ in ids]), "4 rows whose columns make", only_deep=True
    ),
    "a base file whose rows have no commit times": Damage(
        other_column("_hoodie_commit_time", lambda times: [None for _ in times]),
        "rows without a commit time",
        only_deep=True,
    ),
    "an empty base file of an instant that nothing knows": Damage(old_empty_file, "it is empty"),
    "a base file of an archived commit is missing": Damage(
        lose_archived, r"oslo/.*\.parquet is gone", only_deep=True, is_silent=True
    ),
    "a base file that a retried task left": Damage(stray, r"7-7-7", is_damage=False),
    "a log file is missing": Damage(lambda t: logs(t)[-1].unlink(), r"rome/\..*\.log\."),
    "the first log file is missing": Damage(lambda t: logs(t)[0].unlink(), r"rome/\..*\.log\."),
    "a log file is cut": Damage(lambda t: cut(logs(t)[0]), r"rome/\..*\.log\."),
    "a log file is empty": Damage(lambda t: cut(logs(t)[0], 0), r"rome/\..*\.log\."),
    "a log file has a damaged block": Damage(lambda t: _flip(logs(t)[0], 8), r"rome/\..*\.log\.", only_deep=True),
    "a log file is zeros": Damage(
        lambda t: logs(t)[0].write_bytes(bytes(logs(t)[0].stat().st_size)), r"rome/\..*\.log\.", only_deep=True
    ),
    "a log file of another folder": Damage(swap_logs, r"rome/\..*\.log\.", only_deep=True),
    "all files of a folder are missing": Damage(lambda t: shutil.rmtree(t / "bern"), r"bern"),
    # folders
    "a file in the place of a folder": Damage(lambda t: file_at(t / "rome"), "a file stands at rome"),
    "a folder that was copied": Damage(copied_folder, "so readers count its rows", is_silent=True),
    "a folder without partition metadata": Damage(
        lambda t: (t / "rome/.hoodie_partition_metadata").unlink(), "rome/.hoodie_partition_metadata"
    ),
    "a folder of archived commits without it": Damage(
        lambda t: (t / "oslo/.hoodie_partition_metadata").unlink(), "oslo/.hoodie_partition_metadata"
    ),
    "partition metadata are empty": Damage(
        lambda t: cut(t / "rome/.hoodie_partition_metadata", 0), "rome/.hoodie_partition_metadata"
    ),
    "partition metadata are garbage": Damage(
        lambda t: (t / "rome/.hoodie_partition_metadata").write_bytes(b"\xff\0"), "rome/.hoodie_partition_metadata"
    ),
    "a folder in the place of partition metadata": Damage(
        lambda t: folder_at(t / "rome/.hoodie_partition_metadata"), "a folder stands at rome/.hoodie_part"
    ),
    # commits
    "the timeline is lost": Damage(lose_timeline, "has no instant, and"),
    "an archived commit is back": Damage(bring_back_archived, "which was archived, as later ones were", is_silent=True),
    "a commit that others build on is lost": Damage(lambda t: lost_instant(t, 0), "which is on no timeline"),
    "a commit of a log file that others build on is lost": Damage(
        lambda t: lost_instant(t, -2), "which is on no timeline", only_deep=True, is_silent=True
    ),
    "the newest commit is lost": Damage(
        lambda t: lost_instant(t, -1), "is on no timeline, and nothing says", is_silent=True
    ),
    "the completed file of the newest commit is lost": Damage(
        lambda t: newest(t).unlink(), "its completed file is lost", is_silent=True
    ),
    "the completed file of an older commit is lost": Damage(
        lambda t: newest(t, at=-2).unlink(), "its completed file is lost", is_silent=True
    ),
    "a commit has a name of another table version": Damage(
        lambda t: newest(t).rename(newest(t).with_name(f"{newest(t).name[:17]}_{newest(t).name}")),
        "has a name of another table version",
        is_silent=True,
    ),
    "a replacecommit replaces a file group that lives": Damage(
        replaces_what_lives, "its rows do not count", is_silent=True
    ),
    "a folder in the place of a commit": Damage(lambda t: folder_at(newest(t)), "a folder stands at", is_silent=True),
    "the newest commit is cut": Damage(lambda t: cut(newest(t)), r"\.deltacommit", undoes=1),
    "the newest commit is empty": Damage(lambda t: cut(newest(t), 0), r"\.deltacommit", undoes=1),
    "the newest commit is garbage": Damage(lambda t: newest(t).write_bytes(b"garbage"), r"\.deltacommit", undoes=1),
    "the newest commit has the schema of another table": Damage(
        lambda t: of_another_table(newest(t)), r"\.deltacommit lacks city, id", undoes=1
    ),
    "the newest commit names no file": Damage(
        lambda t: names_no_file(newest(t)), r"\.deltacommit names no file", is_silent=True
    ),
    "an older commit names no file": Damage(
        lambda t: names_no_file(newest(t, at=-3)), r"\.deltacommit names no file", is_silent=True
    ),
    "a compaction names no file": Damage(
        lambda t: names_no_file(newest(t, action="commit")), r"\.commit names no file"
    ),
    "a clustering does not say what it replaced": Damage(
        clustered_without_a_list, r"\.replacecommit does not replace 3 file groups", is_silent=True
    ),
    "a commit says what the one after it says": Damage(
        lambda t: shutil.copyfile(newest(t), newest(t, at=-2)), "says what .* says"
    ),
    "the newest commit says what the one before it says": Damage(
        lambda t: shutil.copyfile(newest(t, at=-2), newest(t)), "says what .* says", undoes=1
    ),
    "a commit that is a link to itself": Damage(lambda t: linked_to(newest(t), newest(t).name), "Too many levels"),
    "a commit that is a link to a file that is gone": Damage(lambda t: linked_to(newest(t), "nowhere"), "No such file"),
    "the two newest commits are cut": Damage(
        lambda t: [cut(newest(t, at=at)) for at in (-1, -2)], r"\.deltacommit", undoes=2
    ),
    "an older commit is cut": Damage(lambda t: cut(newest(t, at=-2)), r"\.deltacommit"),
    "the replacecommit is cut": Damage(lambda t: cut(newest(t, action="replacecommit")), r"\.replacecommit"),
    "a commit names another file": Damage(lambda t: replaced(newest(t), ".log.", ".lox."), r"\.deltacommit", undoes=1),
    "a commit is completed under two names": Damage(
        lambda t: shutil.copyfile(newest(t), newest(t).with_suffix(".commit")), "completed twice"
    ),
    "an instant of 2099": Damage(lambda t: future(t, newest(t)), FUTURE),
    "a pending write of 2099": Damage(lambda t: (t / f".hoodie/{FUTURE}.deltacommit.requested").touch(), FUTURE),
    "an unfinished savepoint of 2099": Damage(lambda t: (t / f".hoodie/{FUTURE}.savepoint.inflight").touch(), FUTURE),
    "a clean of 2099": Damage(lambda t: _future_service(t, "clean"), FUTURE),
    "an instant that is no moment": Damage(
        lambda t: (t / f".hoodie/{newest(t).name[:12]}99999.deltacommit.requested").touch(), "99999"
    ),
    "a pending write from before the archive": Damage(
        lambda t: (t / ".hoodie/20200101000000000.deltacommit.requested").touch(), "20200101000000000", is_silent=True
    ),
    # pending work
    "a write that was requested": Damage(
        lambda t: dead_write(t, ("requested",)), "deltacommit.requested", is_damage=False
    ),
    "a write that was begun": Damage(
        lambda t: dead_write(t, ("requested", "inflight")), "deltacommit.inflight", is_damage=False
    ),
    "a write that is inflight and was never requested": Damage(
        lambda t: dead_write(t, ("inflight",)), "deltacommit.inflight", is_damage=False
    ),
    "an overwrite that was begun": Damage(
        lambda t: dead_write(t, ("requested", "inflight"), "replacecommit"), "replacecommit.inflight", is_damage=False
    ),
    "a compaction plan is garbage": Damage(lambda t: plan(t, "compaction.requested"), "compaction.requested"),
    "a compaction plan is empty": Damage(lambda t: plan(t, "compaction.requested", b""), "compaction.requested"),
    "a compaction plan is garbage and young": Damage(
        lambda t: plan(t, "compaction.requested", age=False), "compaction.requested"
    ),
    "a compaction without its plan": Damage(lambda t: plan(t, "compaction.inflight", b""), "compaction.requested"),
    "a log compaction plan is garbage": Damage(lambda t: plan(t, "logcompaction.requested"), "logcompaction.requested"),
    "a clustering plan is garbage": Damage(
        lambda t: plan(t, "replacecommit.requested"), "replacecommit.requested", is_damage=False
    ),
    "a clustering plan names files of other file groups": Damage(
        clustering_of_lost_files, "clustering.requested does not decode"
    ),
    "a clean plan is garbage": Damage(lambda t: plan(t, "clean.requested"), "clean.requested"),
    "a completed clean is cut": Damage(lambda t: _age(newest(t, action="clean"), cut), r"\d\.clean"),
    "a compaction plan names files that are not there": Damage(
        plan_of_lost_files, r"the plan names .*\.log\.7.*not there"
    ),
    "a restore was begun and its plan is gone": Damage(
        lambda t: dead_write(t, ("inflight",), "restore"), r"the plan of \d+\.restore is gone"
    ),
    "a rollback plan is garbage": Damage(lambda t: plan(t, "rollback.requested"), "rollback.requested"),
    "a restore plan is garbage": Damage(lambda t: plan(t, "restore.requested"), "restore.requested", is_damage=False),
    # what else lies in .hoodie
    "a savepoint is cut": Damage(lambda t: cut(newest(t, action="savepoint")), r"\.savepoint"),
    "a savepoint of 2099": Damage(future_savepoint, FUTURE),
    "a folder in the place of the lock": Damage(
        lambda t: folder_at(t / ".hoodie/.hoodie_py/table.lock"), "a folder stands at"
    ),
    "a file in the place of the row copies": Damage(
        lambda t: file_at(t / ".hoodie/.hoodie_py/rows"), "a file stands at"
    ),
    "a file in the place of the metadata table": Damage(lambda t: file_at(t / ".hoodie/metadata"), "a file stands at"),
    "a file in the place of the history of columns": Damage(
        lambda t: file_at(t / ".hoodie/.schema"), "a file stands at"
    ),
    "a file in the place of another version's timeline": Damage(
        lambda t: file_at(t / ".hoodie/timeline"), "a file stands at"
    ),
    "a file in the place of the markers": Damage(lambda t: file_at(t / ".hoodie/.temp"), "a file stands at"),
    "a file of a savepoint is gone": Damage(lambda t: saved_file(t).unlink(), "of savepoint"),
    "the place of a consumer is garbage": Damage(
        lambda t: (t / ".hoodie/.hoodie_py/consumers/reader.json").write_bytes(b"{"), "reader"
    ),
    "the archive is lost": Damage(lambda t: archive_file(t).unlink(), "history lacks instant", only_deep=True),
    "a file of the archive is empty": Damage(
        lambda t: cut(archive_file(t), 0), "history lacks instant", only_deep=True
    ),
    "a file of the archive is cut": Damage(lambda t: cut(archive_file(t)), "history"),
    "a row copy is damaged": Damage(
        lambda t: cut(next((t / ".hoodie/.hoodie_py/rows").glob("*.parquet"))), "rows/", is_damage=False
    ),
    "a heartbeat of nobody": Damage(
        lambda t: _age(_made(t / ".hoodie/.heartbeat/20200101000000000")), "heartbeat", is_damage=False
    ),
    "markers of nobody": Damage(
        lambda t: folder_of_nobody(t, ".hoodie/.temp/20200101000000000"), "20200101000000000", is_damage=False
    ),
    "a staging folder of nobody": Damage(
        lambda t: folder_of_nobody(t, ".hoodie/.hoodie_py/staging/20200101000000000"),
        "20200101000000000",
        is_damage=False,
    ),
    # properties
    "the properties are empty": Damage(lambda t: cut(t / PROPERTIES, 0), "hoodie.properties is empty", KNOWN),
    "the properties are missing": Damage(lambda t: (t / PROPERTIES).unlink(), "hoodie.properties is missing", KNOWN),
    "a folder in the place of the properties": Damage(
        lambda t: folder_at(t / PROPERTIES), "a folder stands at .hoodie/hoodie.properties", KNOWN
    ),
    "the properties are torn": Damage(torn_properties, "hoodie.properties", KNOWN),
    "the properties are garbage": Damage(
        lambda t: (t / PROPERTIES).write_bytes(b"\xff\xfe\0garbage"), "hoodie.properties", KNOWN
    ),
    "the table type is missing": Damage(
        lambda t: replaced(t / PROPERTIES, "hoodie.table.type=", "#"), "hoodie.table.type", KNOWN
    ),
    "a wrong record key": Damage(
        lambda t: replaced(t / PROPERTIES, "recordkey.fields=id", "recordkey.fields=nope"), "'nope'", KNOWN
    ),
    "a record key that is another column": Damage(
        lambda t: replaced(t / PROPERTIES, "recordkey.fields=id", "recordkey.fields=fare"), "fare", KNOWN
    ),
    "a wrong partition column": Damage(
        lambda t: replaced(t / PROPERTIES, "partition.fields=city", "partition.fields=nope"), "'nope'", KNOWN
    ),
    "a partition column that is another one": Damage(
        lambda t: replaced(t / PROPERTIES, "partition.fields=city", "partition.fields=fare"), "fare", KNOWN
    ),
    "folders that are said to name their columns": Damage(
        lambda t: replaced(t / PROPERTIES, "hive_style_partitioning=false", "hive_style_partitioning=true"),
        "hive_style",
        KNOWN,
    ),
    "a wrong ordering column": Damage(lambda t: replaced(t / PROPERTIES, "=ts\n", "=tss\n"), "'tss'", KNOWN),
    "a wrong table type": Damage(
        lambda t: replaced(t / PROPERTIES, "MERGE_ON_READ", "COPY_ON_WRITE"), "COPY_ON_WRITE", KNOWN
    ),
    "a table name that is empty": Damage(stated("hoodie.table.name", ""), "has no hoodie.table.name", KNOWN),
    "a version that no table has": Damage(stated("hoodie.table.version", "7"), "hoodie.table.version is 7", KNOWN),
    "a timeline layout of another version": Damage(
        stated("hoodie.timeline.layout.version", "2"), "hoodie.timeline.layout.version is 2", KNOWN
    ),
    "base files that are said to be of another format": Damage(
        stated("hoodie.table.base.file.format", "ORC"), "hoodie.table.base.file.format is ORC", KNOWN
    ),
    "a key generator type that there is not": Damage(
        stated("hoodie.table.keygenerator.type", "NOPE"), "which is no key generator", KNOWN
    ),
    "a version that is not a number": Damage(stated("hoodie.table.version", "six"), "is not a number", KNOWN),
    "a table type that is none": Damage(stated("hoodie.table.type", "COPY"), "none of its values", KNOWN),
    "a flag that is none": Damage(stated("hoodie.populate.meta.fields", "maybe"), "true or false", KNOWN),
    "a key generator of tables without partitions": Damage(
        stated("hoodie.table.keygenerator.type", "NON_PARTITION"), "keygenerator.type is that of", KNOWN
    ),
    "another folder of the archive": Damage(
        stated("hoodie.archivelog.folder", "nope"), "nope, which is empty, and", KNOWN
    ),
    "a wrong version": Damage(lambda t: _of_version_8(t / PROPERTIES), "version 8", KNOWN),
}


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def _in_a_page(path: Path) -> int:
    """Behind its head, for which there is no checksum."""
    chunk = pq.read_metadata(path).row_group(0).column(0)
    return int(chunk.data_page_offset + chunk.total_compressed_size - 1)


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Other rows in a file that is as long as the commit states, or longer."""
    pad = {b"pad": b"x" * path.stat().st_size}
    rows = change(pq.read_table(path))
    pq.write_table(rows.replace_schema_metadata({**(rows.schema.metadata or {}), **pad}), path)


def without_keys(rows: pa.Table) -> pa.Table:
    at = rows.column_names.index("_hoodie_record_key")
    return rows.set_column(at, "_hoodie_record_key", pa.nulls(rows.num_rows, pa.string()))


def _age(path: Path, do: Callable[[Path], object] = lambda path: None) -> None:
    do(path)
    os.utime(path, (OLD_S, OLD_S))


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def _future_service(table: Path, action: str) -> None:
    source = newest(table, action=action)
    for path in (table / ".hoodie").glob(f"{source.name[:17]}.{action}*"):
        copied = path.with_name(path.name.replace(source.name[:17], FUTURE))
        shutil.copyfile(path, copied)
        os.utime(copied, (OLD_S, OLD_S))


def _of_version_8(path: Path) -> None:
    replaced(path, "hoodie.table.version=6", "hoodie.table.version=8")
    replaced(path, "hoodie.timeline.layout.version=1", "hoodie.timeline.layout.version=2")
    with path.open("a", encoding="utf-8") as file:
        file.write("hoodie.record.merge.mode=EVENT_TIME_ORDERING\n")


def findings(report: str) -> list[dict[str, str | None]]:
    found: list[dict[str, str | None]] = json.loads(report)["findings"]
    return found
