"""Rows of an embedded write, within a limit: in memory, and what is more in files of this machine that are mapped.

Such a file has no name. So it needs no cleaning up, and nothing is left of it when its process dies. It lies beside the table where
that is on a disk of this machine, otherwise in the machine's own place for temporary files: what is to be read again by the same
process need not travel to an object store and back.
"""

from __future__ import annotations

import errno
import tempfile
from dataclasses import replace

import pyarrow as pa

from hoodie.filegroup.unused_memory import mapped_file
from hoodie.model.plans import Chunk
from hoodie.storage.base import Storage
from hoodie.storage.paths import SCRATCH_FOLDER
from hoodie.storage.refusals import full


class RowMemory:
    """How much of a batch an embedded write keeps in memory. Half of the limit is for chunks; the other half is for the tasks."""

    def __init__(self, limit_bytes: int, storage: Storage) -> None:
        self.chunk_bytes = max(1, limit_bytes // 8)
        self._remaining_bytes = limit_bytes // 2
        self._storage = storage

    def keep(self, chunk: Chunk) -> Chunk:
        """The chunk where there is room for it, otherwise one whose rows are in a file.

        Raises:
            StorageFullError: there is no room for the file either.
        """
        if chunk.table is None or not chunk.rows:
            return chunk
        if chunk.size_bytes <= self._remaining_bytes:
            self._remaining_bytes -= chunk.size_bytes
            return chunk
        folder = self._folder()
        try:
            return replace(chunk, table=_mapped(chunk.table, folder), mapped=True)
        except OSError as exc:
            if exc.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            where = folder or tempfile.gettempdir()
            fix = "make room there" if folder else "set TMPDIR to a folder with room"
            raise full(
                f"{exc.strerror}: rows of the batch for table {self._storage.uri} that do not fit into memory wait in "
                f"{where}; {fix}, write smaller batches, or raise hoodie.python.memory.limit.mb",
                where,
            ) from exc

    def _folder(self) -> str | None:
        if self._storage.can.local_path(SCRATCH_FOLDER) is None:
            return None
        self._storage.mkdirs(SCRATCH_FOLDER, durable=False)
        return self._storage.can.local_path(SCRATCH_FOLDER)


def _mapped(table: pa.Table, folder: str | None) -> pa.Table:
    with tempfile.TemporaryFile(dir=folder) as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        file.flush()
        pages = mapped_file(file)
    return pa.ipc.open_file(pa.py_buffer(pages)).read_all()
