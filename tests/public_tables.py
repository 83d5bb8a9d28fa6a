"""Tables of other projects' test suites, as zips beside the checkout, each with the rows that its views hold.

They are not part of the repository: `HOODIE_PUBLIC_TABLES` names their folder, or it is `shared/public-tables` beside
the checkout or beside one of its parents. Where there is none, tests that take a table are skipped.
"""

import base64
import json
import math
import os
import zipfile
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import hoodie
from tests.golden_tables import date_timeline
from tests.rows import Row, sorted_rows

# The tables whose rows are stated for every view that they have, and which every reader agrees about.
WHOLE = (
    "hudi-v6-table-mor",
    "hudi-v6-table-payload-default",
    "hudi-v8-table-mor",
    "hudi-v9-table-mor",
    "hudi_comprehensive_types_v6_mor",
    "table_log_compaction",
    "v9_nonpartitioned_rollback",
    "v9_timebasedkeygen_epochmillis",
)


class PublicTable(NamedTuple):
    """A private copy of a public table, and what its `NAME.expected.json` states."""

    name: str
    path: Path
    stated: dict[str, Any]

    def expected(self, view: str) -> list[Row]:
        """The rows of a view in the order of `read_view`: "snapshot", "ro", "asof T", "incr BEGIN END" (None is open)."""
        return sorted_rows(self.stated["expect"][view])

    @property
    def views(self) -> Sequence[str]:
        """The views whose rows are stated."""
        return [
            view for view, rows in self.stated["expect"].items() if view.split()[0] in _VIEWS and isinstance(rows, list)
        ]


def folder() -> Path | None:
    """Where the zips are, or None."""
    if named := os.environ.get("HOODIE_PUBLIC_TABLES"):
        return Path(named)
    places = (parent / "shared" / "public-tables" for parent in Path(__file__).resolve().parents)
    return next((place for place in places if place.is_dir()), None)


def public_table(name: str, into: Path) -> PublicTable:
    """Unpack a public table into a folder of its own below `into`, where a test may change it; skips where it is absent."""
    place = folder()
    if place is None or not (place / f"{name}.zip").exists():
        pytest.skip(f"no public table {name}: HOODIE_PUBLIC_TABLES names no folder that has it")
    stated = json.loads((place / f"{name}.expected.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(place / f"{name}.zip") as packed:
        packed.extractall(into / name)
    path = into / name / stated["root_in_zip"]
    date_timeline(path)
    return PublicTable(name, path, stated)


def read_view(table: hoodie.HoodieTable, view: str, **projection: Any) -> list[Row]:
    """The rows of a view of `PublicTable.expected`, meta columns too unless `projection` says otherwise."""
    kind, *moments = view.split()
    given = {"meta_columns": True, **projection}
    return plain_rows(_VIEWS[kind](table, *moments, **given).to_arrow())


def plain_rows(data: pa.Table) -> list[Row]:
    """Rows in the encoding of the stated ones: times and dates as ISO text (UTC), decimals as text, maps as pairs."""
    return sorted_rows({name: _plain(value) for name, value in row.items()} for row in data.to_pylist())


def _incremental(table: hoodie.HoodieTable, begin: str, end: str, **projection: Any) -> hoodie.Scan:
    since = "000" if begin == "None" else begin
    return table.changes(since=since, until=None if end == "None" else end, **projection)


_VIEWS = {
    "snapshot": lambda table, **projection: table.scan(**projection),
    "ro": lambda table, **projection: table.scan(query="read_optimized", **projection),
    "asof": lambda table, moment, **projection: table.scan(as_of=moment, **projection),
    "incr": _incremental,
}


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case bytes():
            return "base64:" + base64.b64encode(value).decode("ascii")
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
