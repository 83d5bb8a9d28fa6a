"""What to say of a file that a task was given and that is not there."""

from __future__ import annotations

from hoodie.errors import HoodieError, MissingFileError, TableNotFoundError
from hoodie.model.names import PROPERTIES, PROPERTIES_BACKUP
from hoodie.storage.base import Storage


def missing_file_error(storage: Storage, path: str) -> HoodieError:
    """The error to raise: the table may have been deleted as a whole since the task was planned."""
    if not (storage.exists(PROPERTIES) or storage.exists(PROPERTIES_BACKUP)):
        return TableNotFoundError(f"table {storage.uri} is gone: it was deleted after this operation had begun")
    return MissingFileError(
        f"{path} of table {storage.uri} is gone: it was removed while it was still needed; run the operation again"
    )
