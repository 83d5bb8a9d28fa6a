"""Files of an instant before they are published."""

import os

import pyarrow as pa
import pytest

from hoodie.errors import CommitConflictError
from hoodie.filegroup.staging import open_staged, sink_over
from hoodie.storage.local import LocalStorage
from tests.memory_tables import FakeClock, new_storage


def test_a_file_is_written_below_the_staging_folder_with_its_parents():
    storage = new_storage(FakeClock())
    storage.mkdirs("stage/1")
    with open_staged(storage, "stage/1/a/b/f", folder="stage/1") as file:
        file.write(b"x")
    assert storage.read("stage/1/a/b/f") == b"x"


def test_a_writer_whose_folder_is_gone_was_rolled_back_and_brings_nothing_back():
    storage = new_storage(FakeClock())
    storage.mkdirs("stage")
    refused = pytest.raises(CommitConflictError, match=r"stage/1/a/f of table .* another process rolled the write back")
    with refused, open_staged(storage, "stage/1/a/f", folder="stage/1"):
        pytest.fail("it was opened")
    assert storage.list("stage", recursive=True) == []


def test_what_fails_inside_is_not_taken_for_a_conflict():
    storage = new_storage(FakeClock())
    storage.mkdirs("stage/1")
    with pytest.raises(ZeroDivisionError), open_staged(storage, "stage/1/f", folder="stage/1"):
        raise ZeroDivisionError


@pytest.mark.parametrize("local", [True, False])
def test_an_arrow_output_writes_the_staged_file(local, tmp_path):
    storage = LocalStorage(tmp_path) if local else new_storage(FakeClock())
    storage.mkdirs("stage/1")
    with open_staged(storage, "stage/1/f", folder="stage/1") as file:
        sink = sink_over(file)
        sink.write(b"some ")
        sink.write(b"bytes")
        assert sink.tell() == 10
        sink.close()
    assert storage.read("stage/1/f") == b"some bytes"
    assert isinstance(sink, pa.OSFile) == (local and os.path.exists("/dev/fd"))


def test_an_arrow_output_of_a_writer_that_was_rolled_back_brings_nothing_back(tmp_path):
    storage = LocalStorage(tmp_path)
    storage.mkdirs("stage/1")
    refused = pytest.raises(CommitConflictError, match="another process rolled the write back")
    with refused, open_staged(storage, "stage/1/f", folder="stage/1") as file:
        storage.rename_folder("stage/1", "stage/1.rolled-back")
        sink = sink_over(file)
        sink.write(b"late")
        sink.close()
    assert storage.list("stage/1") == []
    assert not storage.exists("stage/1/f")
