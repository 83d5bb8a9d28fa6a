"""hudi-rs (the package `hudi`) as a reader: it has no JVM and runs in the tests' own process."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder

from tests.rows import Row, rows_of


def read(
    path: str | Path,
    query_type: str = "snapshot",
    *,
    begin: str | None = None,
    end: str | None = None,
    as_of: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[Row]:
    """Rows of a table in the encoding of the golden `expected.json` files.

    `query_type` is `snapshot`, `read_optimized` or `incremental`; the last takes instants in `(begin, end]`.
    """
    builder = HudiTableBuilder.from_base_uri(str(path)).with_hudi_option("hoodie.metadata.enable", "false")
    builder = builder.with_storage_options(dict(storage_options or {}))
    if query_type == "read_optimized":
        builder = builder.with_hudi_option("hoodie.read.use.read_optimized.mode", "true")
    options = HudiReadOptions()
    if query_type == "incremental":
        options = options.with_query_type(HudiQueryType.Incremental)
    if begin is not None:
        options = options.with_start_timestamp(begin)
    if end is not None:
        options = options.with_end_timestamp(end)
    if as_of is not None:
        options = options.with_as_of_timestamp(as_of)
    batches = builder.build().read(options)
    return rows_of(pa.Table.from_batches(batches)) if batches else []
