"""Rows of a MERGE in Arrow: which stored row meets which row of the source, and what clauses make of them.

Columns that a clause leaves as they are, or takes from the source, never go to Spark, which computes the other ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.picks import column_at
from hoodie.model.plans import DELETED

_DELETE = 1
_NULL = -1


class Clause(NamedTuple):
    """What a clause of a MERGE does, as `Merging.clauses` says it."""

    meets: bool
    """It is for rows that meet."""
    does: int
    places: tuple[int, ...]
    """Where the value of each column is: in the stored row, behind that in the source's, behind that in what is computed."""


class Pairs:
    """Rows of a source that has each key once, each with the stored row that it meets, if there is one.

    Args:
        given: the keys of the source's rows.
        keeps_unmatched: rows that meet none are there, too.
    """

    def __init__(self, stored: pa.Table, rows: pa.Table, given: pa.Table, *, keeps_unmatched: bool) -> None:
        keys = given.column_names
        left = given.append_column("row", pa.array(np.arange(given.num_rows)))
        right = stored.select(keys).append_column("stored", pa.array(np.arange(stored.num_rows)))
        pairs = left.join(right, keys, join_type="left outer" if keeps_unmatched else "inner", use_threads=False)
        self._columns: list[pa.ChunkedArray] = [*stored.columns, *rows.columns]
        self._first_of_source = stored.num_columns
        self._rows = pairs["row"].to_numpy()
        self._stored = pc.fill_null(pairs["stored"], _NULL).to_numpy()
        self.meet: np.ndarray = self._stored != _NULL

    def whole(self) -> pa.Table:
        """Columns of the table, of the source, and whether they meet."""
        return _table([*(self._column(place) for place in range(len(self._columns))), pa.array(self.meet)])

    def needed(self, places: Sequence[int]) -> pa.Table:
        """Whether they meet, and the columns at these places."""
        return _table([pa.array(self.meet), *(self._column(place) for place in places)])

    def of_source(self, place: int) -> pa.ChunkedArray:
        """This column of the source's rows."""
        return column_at(self._columns[self._first_of_source + place], self._rows)

    def _column(self, place: int) -> pa.ChunkedArray:
        return column_at(self._columns[place], self._numbers(place))

    def _numbers(self, place: int) -> np.ndarray:
        return self._stored if place < self._first_of_source else self._rows

    def made(
        self, clauses: Sequence[Clause], names: Sequence[str], computed: pa.Table | None, kinds: pa.Schema
    ) -> pa.Table | None:
        """The values that the first fitting clause gives, and whether it deletes; rows that none changes are left out.

        None: values of one column have several types.

        Args:
            names: of the columns that the clauses give. computed: as `Merging.computed` gives it;
                None: the first clause fits. kinds: types of columns that nobody gives a value to.
        """
        first = len(self._columns)
        number = self._first_clause(clauses) if computed is None else computed.column(0).to_numpy()
        does = np.array([clause.does for clause in clauses] + [0])
        kept = np.flatnonzero(does[number])
        columns = {DELETED: pa.array(does[number[kept]] == _DELETE)}
        for at, name in enumerate(names):
            places = np.array([clause.places[at] for clause in clauses])[number[kept]]
            chunks: list[pa.Array] = []
            numbers = np.full(len(kept), _NULL)
            for place in np.unique(places[places != _NULL]):
                mine, offset = places == place, sum(map(len, chunks))
                if place < first:
                    column, found = self._columns[place], self._numbers(place)[kept[mine]]
                elif computed is not None:
                    column, found = computed.column(int(place) - first), kept[mine]
                if chunks and column.type != chunks[0].type:
                    return None
                chunks += column.chunks
                numbers[mine] = found + offset
            columns[name] = (
                column_at(pa.chunked_array(chunks), numbers) if chunks else pa.nulls(len(kept), kinds.field(name).type)
            )
        return pa.table(columns)

    def _first_clause(self, clauses: Sequence[Clause]) -> np.ndarray:
        kinds = [clause.meets for clause in clauses]
        of_met, of_others = (kinds.index(kind) if kind in kinds else _NULL for kind in (True, False))
        return np.where(self.meet, of_met, of_others)


def _table(columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.Table:
    return pa.table({f"c{at}": column for at, column in enumerate(columns)})
