"""What is known of the columns of files, as text for `bounded_files.java`: nothing is decoded before a filter asks for it.

Known is what partition paths stand for, and what commits of ours state; footers are not read. A row copy has the rows of several
logs, perhaps of several partitions: what is stated of all of them holds for it.

The text is JSON, and after a NUL each the JSON of a commit, as the commit has it (`hoodie/format/column_stats.py`):

- `columns`: those that something may be known of;
- `folders`: column -> for each folder, its entry; `folders of files`: for each file, the numbers of its folders;
- `commits`: for each commit, the number of its schema; `commits of files`: for each file, the number of its commit or -1;
- `schemas`: column -> what bounds are multiplied with to be Spark's, 0 where the files lack it; columns that the files have in
  a type of which nothing follows for Spark's are not in it;
- `logs`: number of a file -> names under which its commit has it, where these are not its own;
- `key`: the column whose bounds are those of the record key where nothing is stated of itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hoodie.format.column_stats import entry_of, has_bounds, json_of_column_stats
from hoodie.keygen.partition_values import ranges_of_paths
from hoodie.model.names import folder_of, name_of
from hoodie.read.deletion_vectors import ScanFile
from hoodie.read.file_ranges import Kinds, same_as_key, statement_of
from hoodie.view.context import TableContext

_BETWEEN = "\0"
_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}


def text_of_bounds(context: TableContext, schema: pa.Schema, files: Sequence[ScanFile]) -> str | None:
    """What is known of columns of `schema`, which has the types of the files; None where nothing is."""
    kinds = {field.name: field.type for field in schema if has_bounds(field.type)}
    folders: dict[str, int] = {}
    of_files = []
    for file in files:
        paths = file.copy_of or (file.path,)
        places = [folders.setdefault(folder_of(path), len(folders)) for path in paths]
        of_files.append(list(dict.fromkeys(places)))
    by_path = ranges_of_paths(context.config, kinds, list(folders))
    bodies = _bodies_by_instant(context, files)
    if not by_path and not bodies:
        return None
    number = {instant: at for at, instant in enumerate(bodies)}
    schemas: dict[str, int] = {}
    commits = [schemas.setdefault(json.dumps(_units(kinds, stored)), len(schemas)) for _, stored in bodies.values()]
    fields = {
        "columns": list(kinds),
        "folders": {name: [entry_of(value_range) for value_range in each] for name, each in by_path.items()},
        "folders of files": of_files,
        "commits": commits,
        "commits of files": [number.get(file.instant, -1) for file in files],
        "schemas": [json.loads(each) for each in schemas],
        "logs": {at: [name_of(path) for path in file.copy_of] for at, file in enumerate(files) if file.copy_of},
        "key": same_as_key(context.config, kinds),
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return _BETWEEN.join([text, *(body for body, _ in bodies.values())])


def _bodies_by_instant(context: TableContext, files: Sequence[ScanFile]) -> dict[str, tuple[str, Kinds]]:
    """Instant -> what its commit states, and the types of the columns in its files."""
    snapshot = context.snapshot()
    sizes_and_bodies = {}
    for instant, count in Counter(file.instant for file in files).items():
        statement = statement_of(snapshot, instant)
        body = None if statement is None else json_of_column_stats(statement.text)
        if statement is not None and body is not None:
            sizes_and_bodies[instant] = (len(body) / count, body, statement.kinds)
    bodies, characters = {}, 0
    for instant in sorted(sizes_and_bodies, key=lambda instant: sizes_and_bodies[instant][0]):
        _, body, kinds = sizes_and_bodies[instant]
        characters += len(body)
        if characters > context.tuning.bounds_characters:
            break
        bodies[instant] = (body, kinds)
    return bodies


def _units(kinds: Kinds, stored: Kinds) -> dict[str, int]:
    units = {name: _unit(kind, stored.get(name)) for name, kind in kinds.items()}
    return {name: unit for name, unit in units.items() if unit is not None}


def _unit(kind: Any, stored: Any) -> int | None:
    if stored is None:
        return 0
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(stored):
        return _MICROSECONDS.get(stored.unit) if (kind.tz is None) == (stored.tz is None) else None
    return 1 if kind == stored else None
