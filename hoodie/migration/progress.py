"""How far a table has copied a source: in the metadata of its commits, so that the next run continues a dead migration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from hoodie.errors import HoodieError
from hoodie.migration.source import MigrationSource, Piece, identity_of
from hoodie.model.streams import StreamBatch
from hoodie.view.context import Snapshot
from hoodie.write.streams import every_commit

KEY = "hoodie.python.migration"
"""Ours: a JSON object, `Checkpoint`."""
STREAM = "migration"


@dataclass(frozen=True)
class Checkpoint:
    """What a commit says that has files of a source."""

    source: str
    format: str
    version: str | None
    identity: str
    step: int
    done: int
    """Files, in their order, whose rows are in the table."""
    mode: str = "copy"

    @property
    def entries(self) -> Mapping[str, str]:
        return {KEY: json.dumps(asdict(self), sort_keys=True)}

    @property
    def batch(self) -> StreamBatch:
        return StreamBatch(STREAM, self.step)


def start_of(source: MigrationSource) -> Checkpoint:
    """Before the first step."""
    return Checkpoint(source.uri, source.format, source.version, identity_of(source), -1, 0)


def newest(snapshot: Snapshot) -> Checkpoint | None:
    """Of the newest commit that has one."""
    for extra in every_commit(snapshot):
        if KEY in extra:
            try:
                return Checkpoint(**json.loads(extra[KEY]))
            except (ValueError, TypeError) as exc:
                raise HoodieError(f"a commit does not say up to where its source was migrated: {exc!r}") from exc
    return None


def steps(pieces: tuple[Piece, ...], step_bytes: int) -> Iterator[tuple[Piece, ...]]:
    """Pieces of so many bytes together at most; one at least."""
    step: list[Piece] = []
    size = 0
    for piece in pieces:
        if step and size + piece.size_bytes > step_bytes:
            yield tuple(step)
            step, size = [], 0
        step.append(piece)
        size += piece.size_bytes
    if step:
        yield tuple(step)
