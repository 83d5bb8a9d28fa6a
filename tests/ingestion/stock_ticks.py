"""The demo of Apache Hudi's documentation: ticks of stocks, and the job of its Streamer that ingests them."""

from __future__ import annotations

import json
from pathlib import Path

FILES = "org.apache.hudi.utilities.schema.FilebasedSchemaProvider"
TICKS = [
    {"volume": 483951, "symbol": "MSFT", "ts": "2018-08-31 09:30:00", "key": "MSFT_2018-08-31 09", "close": 111.72},
    {"volume": 1533226, "symbol": "AAPL", "ts": "2018-08-31 09:30:00", "key": "AAPL_2018-08-31 09", "close": 227.31},
    {"volume": 253968, "symbol": "MSFT", "ts": "2018-08-31 09:31:00", "key": "MSFT_2018-08-31 09", "close": 111.8},
]
LATER = [{"volume": 6794, "symbol": "MSFT", "ts": "2018-08-31 10:59:00", "key": "MSFT_2018-08-31 10", "close": 112.0}]


def ticks_job(folder: Path, source: str, table_type: str) -> list[str]:
    """With its own files and flags; `source`: the properties of the source."""
    kinds = {"volume": "long", "year": "int"} | dict.fromkeys(("high", "low", "close", "open"), "double")
    names = ("volume", "ts", "symbol", "year", "month", "high", "low", "key", "date", "close", "open", "day")
    fields = [{"name": name, "type": kinds.get(name, "string")} for name in names]
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "schema.avsc").write_text(
        json.dumps({"type": "record", "name": "stock_ticks", "fields": fields})
    )
    (folder / "config" / "base.properties").write_text(
        "hoodie.upsert.shuffle.parallelism=2\nhoodie.insert.shuffle.parallelism=2\nhoodie.embed.timeline.server=true\n"
        "hoodie.filesystem.view.type=EMBEDDED_KV_STORE\nhoodie.compact.inline=false\n"
    )
    schemas = "".join(
        f"hoodie.streamer.schemaprovider.{side}.schema.file={folder}/config/schema.avsc\n"
        for side in ("source", "target")
    )
    (folder / "config" / "source.properties").write_text(
        "include=base.properties\nhoodie.datasource.write.recordkey.field=key\n"
        f"hoodie.datasource.write.partitionpath.field=date\n{schemas}{source}"
    )
    return [
        *("ingest", "--table-type", table_type, "--source-ordering-field", "ts"),
        *(
            "--target-base-path",
            str(folder / f"stock_ticks_{table_type}"),
            "--target-table",
            f"stock_ticks_{table_type}",
        ),
        *("--props", f"{folder}/config/source.properties", "--schemaprovider-class", FILES),
    ]


def ticks(rows: list[dict[str, object]]) -> str:
    day = {"year": 2018, "month": "08", "day": "31", "date": "2018/08/31", "high": 1.0, "low": 1.0, "open": 1.0}
    return "\n".join(json.dumps({**row, **day}) for row in rows)
