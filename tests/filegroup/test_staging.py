"""Files of an instant before they are published."""

import pytest

from hoodie.errors import CommitConflictError
from hoodie.filegroup.staging import open_staged
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
