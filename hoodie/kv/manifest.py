"""The metadata of a bucket: which data files it has, from where on the log has to be replayed, and whose turn it is to write.

Each state is a file of its own, numbered, made where there is none of that name: so states follow one another without gaps, and of
two who make the next one, one loses. The newest counts. A writer that was paused while another took the bucket over finds its number
taken: it is fenced. Older states are kept for a while, for readers that have just listed them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hoodie.errors import CorruptFileError
from hoodie.kv.names import meta_file, numbers
from hoodie.storage.base import Storage

NO_WINDOW = -(2**63)
_LOOKS = 8
"""Times that the newest state is looked for while a writer goes on and removes old ones."""


class DataFile(NamedTuple):
    """A sorted, immutable file. Files of one run do not overlap; of two runs the one with the greater number is newer."""

    name: str
    run: int
    first: bytes
    last: bytes
    """Both as they are stored."""
    entries: int
    size_bytes: int
    made_s: float
    """By the storage's clock; of what was merged, the newest."""
    has_deletes: bool


@dataclass(frozen=True)
class Manifest:
    number: int
    epoch: int
    """Of the writer that has the bucket; each takes the next one."""
    wal_from: int
    """The first segment with rows that are in no data file."""
    window: int
    """The last window all of whose rows are in data files."""
    files: tuple[DataFile, ...] = ()
    old_files: tuple[tuple[str, float], ...] = ()
    """Data files that are not needed any more, and since when: readers of older states may still have them open."""
    log: tuple[tuple[int, int], ...] = ()
    """Segments of the log that writers have closed, and how many bytes they had synced: a shorter one lost windows."""

    def encode(self) -> bytes:
        files = [
            {**f._asdict(), "first": base64.b64encode(f.first).decode(), "last": base64.b64encode(f.last).decode()}
            for f in self.files
        ]
        fields = {
            "version": 1,
            "epoch": self.epoch,
            "wal_from": self.wal_from,
            "window": self.window,
            "files": files,
            "gone": self.old_files,
            "log": self.log,
        }
        return json.dumps(fields).encode()

    @classmethod
    def decode(cls, number: int, content: bytes, *, path: str) -> Manifest:
        """Raises: CorruptFileError."""
        try:
            fields = json.loads(content)
            if fields["version"] != 1:
                raise ValueError(f"version {fields['version']!r}, and this release knows 1")
            files = tuple(_file(each) for each in fields["files"])
            old_files = tuple((str(name), float(since)) for name, since in fields["gone"])
            log = tuple((int(segment), int(size)) for segment, size in fields.get("log", ()))
            return cls(
                number, int(fields["epoch"]), int(fields["wal_from"]), int(fields["window"]), files, old_files, log
            )
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise CorruptFileError(f"{path} does not decode as the metadata of a bucket: {exc}") from exc


EMPTY = Manifest(0, 0, 1, NO_WINDOW)
"""Of a bucket that nobody has written to."""


def read_newest(storage: Storage) -> Manifest:
    """The newest state of the bucket at the storage's root.

    Raises:
        CorruptFileError: it is damaged. An older one is not taken in its place: acknowledged windows would be gone.
    """
    for _ in range(_LOOKS):
        manifest_numbers = numbers(storage.names("meta"))
        if not manifest_numbers:
            return EMPTY
        path = meta_file(manifest_numbers[-1])
        try:
            content = storage.read(path)
        except FileNotFoundError:
            continue  # a writer has gone on, and removed it
        return Manifest.decode(manifest_numbers[-1], content, path=f"{storage.uri.rstrip('/')}/{path}")
    raise CorruptFileError(
        f"the metadata of {storage.uri} could not be read: each file that was listed in meta/ is gone; restore the folder from a copy"
    )


def publish(storage: Storage, manifest: Manifest) -> None:
    """Make it the newest state.

    Raises:
        FileExistsError: another writer has made one of that number.
    """
    storage.create_new(meta_file(manifest.number), manifest.encode())


def _file(fields: Mapping[str, Any]) -> DataFile:
    name = str(fields["name"])
    if "/" in name or name.startswith("."):
        raise ValueError(f"{name!r} is not a name of a data file")
    first, last = (base64.b64decode(fields[each], validate=True) for each in ("first", "last"))
    if first > last:
        raise ValueError(f"the keys of {name} end before they begin")
    return DataFile(
        name,
        int(fields["run"]),
        first,
        last,
        int(fields["entries"]),
        int(fields["size_bytes"]),
        float(fields["made_s"]),
        bool(fields["has_deletes"]),
    )
