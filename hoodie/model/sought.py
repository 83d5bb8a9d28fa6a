"""Record keys that rows are looked up by, and where in base files they may stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class KnownPlaces:
    """Where the columns of a base file stand in it, as far as rows were sought there before; thread-safe."""

    def __init__(self) -> None:
        self.metadata: pq.FileMetaData | None = None
        """Its footer, without the bloom filter."""
        self.elements: Mapping[str, bytes] | None = None
        """Columns in the schema of the footer, as they are stored."""
        self.pages: dict[tuple[int, str], Any] = {}
        """Of row groups and columns."""

    def __reduce__(self) -> tuple[type[KnownPlaces], tuple[()]]:
        return KnownPlaces, ()  # another process finds out by itself what it asks for


class RowBlocks(NamedTuple):
    """Where in a base file some sought keys may stand: blocks of rows, whose numbers are those of rows without the lowest bits."""

    shift: int
    """So many bits."""
    rows: int
    """Of the file."""
    numbers: np.ndarray
    """Of keys among those that are sought."""
    blocks: np.ndarray
    """For each of them one in which it may stand."""
    known: KnownPlaces | None = None


class SoughtRows(NamedTuple):
    """All rows of a base file that have one of the keys."""

    numbers: np.ndarray
    """Ascending."""
    keys: pa.Array


class SoughtKeys(NamedTuple):
    """Record keys that rows are looked up by."""

    keys: pa.Array
    """Texts, sorted, none of them null."""
    same: str | None = None
    """The column whose values are the record keys themselves, if there is one."""
    places: Mapping[str, RowBlocks] | None = None
    """Of base files, by their paths, what planning found out of where in them the keys may stand."""
    rows: Mapping[str, SoughtRows] | None = None
    """Of base files, by their paths: those whose rows were looked up."""
