"""A write that fails says why, once: no writer that was given up complains when it is collected."""

import errno
import gc
import sys

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.parquet_file import parquet_writer
from hoodie.storage.faults import Fault, FaultStorage
from hoodie.storage.local import LocalStorage
from hoodie.table import open_at
from tests.effort import long_but, soak_but


@pytest.fixture
def complaints(monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    yield heard
    gc.collect()
    assert heard == []


def rows(value):
    return pa.table({"id": ["a", "b"], "v": [value, value]})


@pytest.mark.parametrize("kind", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
@pytest.mark.parametrize("moment", long_but(["torn"], ["before", "torn"]))
@pytest.mark.parametrize("first", long_but([1], soak_but([1, 3], [1, 2, 3])))
def test_a_disk_that_is_full_at_any_call(tmp_path, kind, moment, first, complaints):
    hoodie.create_table(tmp_path, record_key="id", table_type=kind).upsert(rows(0))
    for at in range(first, 20, 3):
        table = open_at(FaultStorage(LocalStorage(tmp_path), [Fault(at, moment, errno.ENOSPC)]))
        try:
            table.upsert(rows(at))
        except (OSError, hoodie.HoodieError):
            gc.collect()
    assert hoodie.open_table(tmp_path).scan().count() == 2


@pytest.mark.parametrize("kind", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_arrow_refuses_what_is_to_be_written(tmp_path, kind, monkeypatch, complaints):
    def refuses(self, *_, **__):
        raise pa.ArrowInvalid("Column declared non-nullable contains nulls")

    table = hoodie.create_table(tmp_path, record_key="id", table_type=kind, options={"hoodie.compact.inline": "false"})
    table.upsert(rows(0))
    with monkeypatch.context() as patch:
        patch.setattr(parquet_writer, "write_table", refuses)
        with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
            table.bulk_insert(rows(1))
    with monkeypatch.context() as patch:
        patch.setattr(parquet_writer, "close", refuses)
        with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
            table.bulk_insert(rows(1))
    gc.collect()
    table.upsert(rows(2))
    assert set(table.scan().to_arrow().column("v").to_pylist()) == {2}
