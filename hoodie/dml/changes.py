"""Changes of a statement, for one commit: new values of stored rows, deleted rows, and rows that move to another partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import DuplicateKeyError, KeyFieldError, OptionError
from hoodie.keygen.generator import KeyGenerator
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from hoodie.options.write import WriteOptions
from hoodie.view.context import TableContext
from hoodie.write.casting import fit
from hoodie.write.keys import key_columns, table_keys
from hoodie.write.placement import is_global
from hoodie.write.prepare import require_columns

StoredKeys = Callable[[pa.Table], pa.Table]
"""Key columns of rows -> key and partition columns of the stored rows with these record keys."""


def checked_values(values: object) -> dict[str, Any]:
    """Raises OptionError for what are no values of columns."""
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise OptionError(f'values of columns are {{"column": "expression"}}, not {values!r:.60}')
    return dict(values)


def require_whole_columns(names: Iterable[str], schema: pa.Schema, *, what: str, table: str, says: str) -> None:
    """Raises KeyFieldError for what is no column of the table, or is a field inside of one."""
    columns = list(names)
    require_columns(schema.names, columns, what=what, table=table, fix="name a column of the table", says=says)
    for name in columns:
        if name not in schema.names:
            raise KeyFieldError(
                f"{what} {name!r} is a field inside of column {name.split('.')[0]!r} of table {table!r}\n"
                "  fix:     give an expression for the whole struct, such as struct_pack(...)"
            )


class Changes:
    """Collects what a statement makes of stored rows, batch by batch, and gives it as rows of one upsert.

    A row whose partition path changes is a delete there and an insert here, in the same commit. Where keys are unique in the whole
    table it is an insert alone: the write takes it from where it is.

    Args:
        moves: the statement may change partition paths, or add rows where others go.
    """

    def __init__(self, context: TableContext, options: WriteOptions, stored: StoredKeys, *, moves: bool) -> None:
        snapshot = context.snapshot()
        if snapshot.schema is None:
            raise OptionError(
                f"table {context.config.name!r} has no columns yet, so there is nothing to change: write rows to it first"
            )
        self._table = context.config.name
        self._generated = context.config.generates_keys
        self._by_key_alone = is_global(context.config, options)
        self._keys = key_columns(context.config)
        self._stored = stored
        self._moves = moves
        self._keygen: KeyGenerator = table_keys(context, snapshot, options)
        self._deletes: list[pa.Table] = []
        self._moved: list[pa.Table] = []
        self._added: list[pa.Table] = []
        meta = [RECORD_KEY, PARTITION_PATH] if self._generated else []
        self.columns: pa.Schema = pa.schema([*(pa.field(name, pa.string()) for name in meta), *snapshot.schema])
        """Of the rows that are given to it."""
        self.schema: pa.Schema = pa.schema(
            [*(f.with_nullable(True) for f in self.columns), pa.field(DELETED, pa.bool_())]
        )
        """Of what it gives: the columns and the flag of deletes."""

    def deleted(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The deletes of these stored rows."""
        rows = self._fitting(rows)
        if self._moves:
            self._deletes.append(rows.select(self._keys))
        else:
            yield from self._flagged(rows, are_deletes=True)

    def updated(self, old: pa.Table, new: pa.Table) -> Iterator[pa.RecordBatch]:
        """The updates of stored rows: as they are stored, and as they become.

        Raises:
            OptionError: a record key changes.
        """
        new = self._fitting(new)
        if self._moves and new.num_rows:
            before, after = self._places(self._fitting(old)), self._places(new)
            other = pc.not_equal(before.column(RECORD_KEY), after.column(RECORD_KEY))
            if pc.any(other).as_py():
                at = pc.index(other, True).as_py()
                raise OptionError(
                    f"the record key of a row of table {self._table!r} would become {after.column(RECORD_KEY)[at].as_py()!r} and is "
                    f"{before.column(RECORD_KEY)[at].as_py()!r}: a record key does not change; delete the row and insert another one"
                )
            moved = pc.not_equal(before.column(PARTITION_PATH), after.column(PARTITION_PATH))
            if pc.any(moved).as_py():
                self._deletes.append(self._fitting(old).select(self._keys).filter(moved))
                self._moved.append(new.select(self._keys).filter(moved))
        yield from self._flagged(new, are_deletes=False)

    def inserted(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The inserts of new rows. Where their key is stored the ordering columns decide, as in an upsert. Where the table generates
        keys the rows have none yet, and meet no stored row.
        """
        rows = self._fitting(rows)
        if rows.num_rows and not self._generated:
            self._added.append(rows.select(self._keys))
        yield from self._flagged(rows, are_deletes=False)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The deletes of rows whose place no other row has taken; only after all rows are they certain.

        Raises:
            DuplicateKeyError: two rows would have one key in one partition.
        """
        deletes = self._fitting(pa.concat_tables(self._deletes)) if self._deletes else None
        delete_places = None if deletes is None else self._texts(self._places(deletes))
        if self._moved or self._added:
            places = self._places(self._fitting(pa.concat_tables([*self._moved, *self._added])))
            arrived = self._texts(places)
            self._refuse(places, _again(arrived), "two rows")
            if self._moved:
                rows = pa.concat_tables(self._moved)
                there = self._texts(self._places(self._fitting(self._stored(rows))))
                stay = there.filter(pc.invert(pc.is_in(there, value_set=delete_places)))
                moved = self._places(self._fitting(rows))
                self._refuse(moved, pc.is_in(self._texts(moved), value_set=stay), "a row that is stored, and one more,")
            if delete_places is not None and deletes is not None:
                deletes = deletes.filter(pc.invert(pc.is_in(delete_places, value_set=arrived)))
        if deletes is not None:
            yield from self._flagged(deletes, are_deletes=True)

    def _refuse(self, places: pa.Table, bad: pa.Array | pa.ChunkedArray, who: str) -> None:
        if pc.any(bad).as_py():
            at = pc.index(bad, True).as_py()
            where = "" if self._by_key_alone else f" in partition {places.column(PARTITION_PATH)[at].as_py()!r}"
            raise DuplicateKeyError(
                f"{who} would have the key {places.column(RECORD_KEY)[at].as_py()!r}{where} of table {self._table!r}; nothing was "
                "written"
            )

    def _fitting(self, rows: pa.Table) -> pa.Table:
        return fit(rows, self.columns, table=self._table)

    def _places(self, rows: pa.Table) -> pa.Table:
        """Record keys and partition paths."""
        if self._generated:
            return rows.select([RECORD_KEY, PARTITION_PATH])
        return pa.table({RECORD_KEY: self._keygen.keys(rows), PARTITION_PATH: self._keygen.partitions(rows)})

    def _texts(self, places: pa.Table) -> pa.Array:
        """One text for each place that one row may have."""
        keys, paths = places.column(RECORD_KEY).cast(pa.string()), places.column(PARTITION_PATH).cast(pa.string())
        texts = keys if self._by_key_alone else pc.binary_join_element_wise(paths, keys, "\0")
        one: pa.Array = texts.combine_chunks()
        return one

    def _flagged(self, rows: pa.Table, *, are_deletes: bool) -> Iterator[pa.RecordBatch]:
        flags = pa.repeat(pa.scalar(are_deletes), rows.num_rows)
        yield from pa.table([*rows.columns, flags], schema=self.schema).to_batches()


def _again(texts: pa.Array) -> pa.Array:
    """Which texts stood there before."""
    if pc.count_distinct(texts, mode="all").as_py() == len(texts):
        return pa.repeat(pa.scalar(False), len(texts))
    codes = texts.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first = np.zeros(len(codes), dtype=bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return pa.array(~first)
