"""Tables made in place, with the files that they were made of, and how they are damaged."""

import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import hoodie
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource
from hoodie.hfile.writer import HFileWriter
from hoodie.model.names import BOOTSTRAP_INDEX, BOOTSTRAP_INDEX_BY_FILE
from tests.corruption.catalogue import Damage
from tests.corruption.damages import PROPERTIES, cut, folder_at, replaced, rewritten, with_column, without_keys

SIZE_BYTES = 2000
"""Of each file of the source."""


def make(root: Path, *, table_type: str, version: int) -> None:
    """Two folders of two files each, and a table of them, in which one row was written since."""
    for city in ("bern", "rome"):
        for number in range(2):
            path = root / f"source/{city}/{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            ids = [f"{city}{number}{n}" for n in range(4)]
            fares = [number * 10.0 + n for n in range(4)]
            sized(path, pa.table({"id": ids, "city": [city] * 4, "ts": [0] * 4, "fare": fares}))
    hoodie.migrate(
        root / "source",
        root / "table",
        record_key="id",
        partition_by="city",
        ordering="ts",
        mode="in_place",
        table_type=table_type,
        table_version=version,
    )
    hoodie.open_table(root / "table").upsert([{"id": "bern00", "city": "bern", "ts": 1, "fare": 100.0}])


def sized(path: Path, rows: pa.Table) -> None:
    """A file of these rows that is as long as all are: Parquet does not mind what lies before the footer."""
    out = io.BytesIO()
    pq.write_table(rows, out)
    data = out.getvalue()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:footer] + bytes(SIZE_BYTES - len(data)) + data[footer:])


def source(root: Path, city: str = "rome", number: int = 0) -> Path:
    return root / f"source/{city}/{number}.parquet"


def skeletons(root: Path, city: str = "rome") -> list[Path]:
    """In the order of the files that complete them."""
    paths = (root / "table" / city).glob("*_00000000000001.parquet")
    return sorted(paths, key=lambda path: str(pq.read_table(path)["_hoodie_record_key"][0]))


def of_equal_size(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    return lambda root: sized(source(root), change(pq.read_table(source(root))))


def swapped(one: Path, other: Path) -> None:
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def skeletons_swapped(one: Path, other: Path) -> None:
    rows = pq.read_table(one)
    rewritten(one, lambda _: pq.read_table(other))
    rewritten(other, lambda _: rows)


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def index(root: Path) -> Path:
    return root / "table" / BOOTSTRAP_INDEX


def index_by_file(root: Path) -> Path:
    return root / "table" / BOOTSTRAP_INDEX_BY_FILE


def edited_index(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The index by partition, with the files of each partition changed."""
    cells = HFileReader(BufferSource(index(root).read_bytes(), BOOTSTRAP_INDEX))
    out = io.BytesIO()
    writer = HFileWriter(out)
    for batch in cells.scan():
        values = []
        for value in batch.column("value").to_pylist():
            reader = fastavro.reader(io.BytesIO(value))
            (record,) = reader
            change(record["fileIdToBootstrapFile"])
            made = io.BytesIO()
            fastavro.writer(made, reader.writer_schema, [record])
            values.append(made.getvalue())
        writer.write(batch.column("key"), pa.array(values, pa.large_binary()))
    writer.finish()
    index(root).write_bytes(out.getvalue())


def other_folder(files: dict[str, Any]) -> None:
    for each in files.values():
        each["path"]["uri"] = each["path"]["uri"].replace("/source/", "/elsewhere/")


def swapped_entries(files: dict[str, Any]) -> None:
    one, other = sorted(files)
    files[one], files[other] = files[other], files[one]


def property_lost(root: Path, key: str) -> None:
    path = root / "table" / PROPERTIES
    text = path.read_text(encoding="utf-8")
    assert f"\n{key}=" in text
    path.write_text(re.sub(rf"(?m)^{re.escape(key)}=.*\n", "", text), encoding="utf-8")


SOURCE = r"source/rome/0\.parquet, which has the columns of rome/.*\.parquet,? "
SKELETON = r"rome/.*_00000000000001\.parquet"
BY_PARTITION, BY_FILE = r"\.partitions/.*\.hfile", r"\.fileids/.*\.hfile"
KNOWN = {
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.partition.fields": "city",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.name": "table",
    "hoodie.table.type": "COPY_ON_WRITE",
}

DAMAGES = {
    # the source
    "a source file is missing": Damage(lambda r: source(r).unlink(), f"{SOURCE}is gone"),
    "a source file is cut": Damage(lambda r: cut(source(r)), f"{SOURCE}was changed: it had 2000 bytes, and has 1000"),
    "a source file is empty": Damage(lambda r: cut(source(r), 0), f"{SOURCE}was changed"),
    "a source file is zeros": Damage(lambda r: zeros(source(r)), f"{SOURCE}is not a whole Parquet", only_deep=True),
    "a folder in the place of a source file": Damage(lambda r: folder_at(source(r)), f"{SOURCE}is gone"),
    "the source is missing": Damage(lambda r: shutil.rmtree(r / "source"), f"{SOURCE}is gone"),
    "the source was moved": Damage(lambda r: (r / "source").rename(r / "moved"), f"{SOURCE}is gone"),
    "a source file with fewer rows": Damage(
        of_equal_size(lambda rows: rows.slice(1)), f"{SOURCE}was changed: 4 rows are known", only_deep=True
    ),
    "a source file with other keys": Damage(
        of_equal_size(with_column("id", lambda ids: [f"{each}x" for each in ids])),
        f"{SOURCE}was changed: it makes other record keys for 4 rows",
        only_deep=True,
        is_silent=True,
    ),
    "a source file whose rows are in another order": Damage(
        of_equal_size(lambda rows: rows.take([0, 1, 3, 2])),
        f"{SOURCE}was changed: it makes other record keys for 2 rows",
        only_deep=True,
    ),
    "two source files are swapped": Damage(
        lambda r: swapped(source(r), source(r, number=1)), f"{SOURCE}was changed: it makes other", only_deep=True
    ),
    "source files of two folders are swapped": Damage(
        lambda r: swapped(source(r), source(r, "bern", 1)), f"{SOURCE}was changed: it makes other", only_deep=True
    ),
    "a source file without keys": Damage(
        of_equal_size(with_column("id", lambda ids: [None for _ in ids])),
        f"{SOURCE}was changed: it makes other",
        only_deep=True,
        is_silent=True,
    ),
    "a source file without the key column": Damage(
        of_equal_size(lambda rows: rows.drop_columns(["id"])),
        f"{SOURCE}was changed: it has no column 'id'",
        only_deep=True,
        is_silent=True,
    ),
    "a source file with another type": Damage(
        of_equal_size(lambda rows: rows.set_column(3, "fare", pa.array([*"abcd"]))),
        r"column 'fare' of .*source/rome/0\.parquet.* is string",
        only_deep=True,
    ),
    # skeletons
    "a skeleton is missing": Damage(lambda r: skeletons(r)[0].unlink(), f"{SKELETON} is gone"),
    "a skeleton is cut": Damage(lambda r: cut(skeletons(r)[0]), f"{SKELETON} is truncated"),
    "a skeleton is zeros": Damage(lambda r: zeros(skeletons(r)[0]), SKELETON, only_deep=True),
    "two skeletons are swapped": Damage(
        lambda r: skeletons_swapped(*skeletons(r)), f"{SKELETON}: rows say that they are of", only_deep=True
    ),
    "a skeleton with fewer rows": Damage(
        lambda r: rewritten(skeletons(r)[0], lambda rows: rows.slice(1)), f"{SKELETON} holds 3 rows", only_deep=True
    ),
    "a skeleton without keys": Damage(
        lambda r: rewritten(skeletons(r)[0], without_keys), "4 rows without a record key", only_deep=True
    ),
    "a skeleton whose keys are in another order": Damage(
        lambda r: rewritten(skeletons(r)[0], with_column("_hoodie_record_key", lambda keys: keys[::-1])),
        f"{SOURCE}was changed: it makes other",
        only_deep=True,
    ),
    # the index
    "the index is missing": Damage(lambda r: index(r).unlink(), f"{BY_PARTITION}: it is gone"),
    "the index is cut": Damage(lambda r: cut(index(r)), f"{BY_PARTITION}: it does not decode"),
    "the index is empty": Damage(lambda r: cut(index(r), 0), f"{BY_PARTITION}: it does not decode"),
    "the index is zeros": Damage(lambda r: zeros(index(r)), f"{BY_PARTITION}: it does not decode"),
    "a folder in the place of the index": Damage(lambda r: folder_at(index(r)), f"a folder stands at .*{BY_PARTITION}"),
    "the index lacks a file": Damage(
        lambda r: edited_index(r, lambda files: files.pop(min(files))), f"{BY_PARTITION}: it does not say which file"
    ),
    "the index names another folder": Damage(
        lambda r: edited_index(r, other_folder), f"{BY_PARTITION}: the two files of the index differ"
    ),
    "the index has two files swapped": Damage(
        lambda r: edited_index(r, swapped_entries),
        f"{BY_PARTITION}: the two files of the index differ",
        is_silent=True,
    ),
    "the index by files is missing": Damage(lambda r: index_by_file(r).unlink(), f"{BY_FILE}: it is gone"),
    "the index by files is cut": Damage(lambda r: cut(index_by_file(r)), f"{BY_FILE}: it does not decode"),
    "both files of the index are missing": Damage(
        lambda r: shutil.rmtree(r / "table/.hoodie/.aux"), f"{BY_PARTITION}: it is gone"
    ),
    # properties
    "no property says that there was a bootstrap": Damage(
        lambda r: property_lost(r, "hoodie.bootstrap.base.path"), "there is no hoodie.bootstrap.base.path", KNOWN
    ),
    "a wrong record key": Damage(
        lambda r: replaced(r / "table" / PROPERTIES, "recordkey.fields=id", "recordkey.fields=fare"),
        "fare makes other",
        KNOWN,
    ),
    "the properties are missing": Damage(
        lambda r: (r / "table" / PROPERTIES).unlink(), "hoodie.properties is missing", KNOWN
    ),
}
