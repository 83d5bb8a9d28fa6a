"""How a table on a disk is made, and how it is damaged."""

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

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


def without(*keys: str) -> Callable[[Path], None]:
    """Properties that are lost."""

    def do(table: Path) -> None:
        path = table / PROPERTIES
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        left = [line for line in lines if line.partition("=")[0] not in keys]
        assert len(left) < len(lines)
        path.write_text("".join(left), encoding="utf-8")

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


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def in_a_page(path: Path) -> int:
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


def age(path: Path, do: Callable[[Path], object] = lambda path: None) -> None:
    do(path)
    os.utime(path, (OLD_S, OLD_S))


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def future_service(table: Path, action: str) -> None:
    source = newest(table, action=action)
    for path in (table / ".hoodie").glob(f"{source.name[:17]}.{action}*"):
        copied = path.with_name(path.name.replace(source.name[:17], FUTURE))
        shutil.copyfile(path, copied)
        os.utime(copied, (OLD_S, OLD_S))


def of_version_8(path: Path) -> None:
    replaced(path, "hoodie.table.version=6", "hoodie.table.version=8")
    replaced(path, "hoodie.timeline.layout.version=1", "hoodie.timeline.layout.version=2")
    with path.open("a", encoding="utf-8") as file:
        file.write("hoodie.record.merge.mode=EVENT_TIME_ORDERING\n")


def findings(report: str) -> list[dict[str, str | None]]:
    found: list[dict[str, str | None]] = json.loads(report)["findings"]
    return found
