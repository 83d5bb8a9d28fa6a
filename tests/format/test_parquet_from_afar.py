"""Parquet files that come in pieces over a network."""

import errno
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.storage.ranges import TAIL_BYTES, RangedFile, RangedInput


def test_a_store_that_does_not_answer_damages_no_file():
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": [str(n) for n in range(1_000_000)]}), stream)
    data = stream.getvalue()
    assert len(data) > TAIL_BYTES

    def fetch(spans):
        raise OSError(errno.EIO, "the store failed", "s3://lake/file.parquet")

    source = RangedInput(RangedFile(fetch, len(data), data[-TAIL_BYTES:]), mode="r")
    file = open_parquet(source, path="file.parquet")
    with pytest.raises(OSError, match="the store failed") as failed:
        list(read_batches(file, ["text"], batch_rows=1000, path="file.parquet"))
    assert failed.value.errno == errno.EIO
