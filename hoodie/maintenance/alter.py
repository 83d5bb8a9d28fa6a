"""Changes of a table's columns as methods of `table.alter`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

import hoodie.write
from hoodie.errors import OptionError
from hoodie.maintenance.base import AtWork, OpenTable
from hoodie.model.results import CommitResult

if TYPE_CHECKING:
    import hoodie.write.column_changes
    import hoodie.writer
    from hoodie.write.column_changes import ColumnChange, Place

Type = pa.DataType | str | type


class Alterations(OpenTable):
    @property
    def alter(self) -> TableAlteration:
        """Changes of the table's columns, each a commit without rows.

        Example:
            >>> table.alter.add_column("tip", "double", after="fare")
            >>> table.alter.rename_column("fare", "price")
        """
        return TableAlteration(self)


class TableAlteration:
    """`table.alter`: changes of the columns of one table, as Apache Hudi's ALTER TABLE makes them with
    `hoodie.schema.on.read.enable=true`.

    A change is a commit without rows. No file is rewritten: each column has an id, by which readers find it in older files. So Apache
    Hudi has to read the table with that option from then on. Columns inside of others are named by their paths: `address.zip`, an
    array's values `tags.element`, those of a map `prices.value`. Columns of keys, partition paths and the order of rows may only
    move, and change from int32 to int64.
    A column of that name in another case counts as the same. All methods raise `OptionError` for a column that does not exist,
    `SchemaError` for a change that readers could not follow, and `CommitConflictError` when other writers were faster ten times in a
    row. Their results have no `instant` where the columns are so already.
    """

    def __init__(self, table: OpenTable, options: Mapping[str, str] | None = None) -> None:
        self._table, self._options = table, options

    def __repr__(self) -> str:
        return f"<changes of the columns of {self._table.uri}>"

    def add_column(
        self, name: str, type: Type, *, after: str | None = None, first: bool = False, doc: str | None = None
    ) -> CommitResult:
        """Add a column, after all others unless an argument says where. It is null in all existing rows.

        A column that had this name before and was dropped is another one: its values do not come back.

        Args:
            name: of the column, with its parents, where it is to be inside of a struct.
            type: such as `pa.float64()`, "double", "decimal(10, 2)" or "array<string>", as `create_table` takes them.
            after: the column before it.
            first: it comes before all others.
            doc: what it is, for readers.

        Example:
            >>> table.alter.add_column("address.zip", "string", after="street", doc="five digits")
        """
        changes = hoodie.write.column_changes
        return self._commit(changes.AddColumn(name, type, doc, self._place(after, first)))

    def rename_column(self, name: str, new_name: str) -> CommitResult:
        """Rename a column. Existing rows show it under the new name.

        Args:
            name: of the column, with its parents.
            new_name: the new one, without parents.

        Example:
            >>> table.alter.rename_column("address.zip", "postal_code")
        """
        return self._commit(hoodie.write.column_changes.RenameColumn(name, new_name))

    def drop_column(self, name: str) -> CommitResult:
        """Drop a column. Its values stay in older files, which queries as of an earlier moment read, until these are cleaned.

        Args:
            name: of the column, with its parents.

        Example:
            >>> table.alter.drop_column("tip")
        """
        return self._commit(hoodie.write.column_changes.DropColumn(name))

    def move_column(self, name: str, *, after: str | None = None, first: bool = False) -> CommitResult:
        """Move a column after another one, or before all others of its struct.

        Args:
            name: of the column, with its parents.
            after: the column before it.
            first: it comes before all others.

        Example:
            >>> table.alter.move_column("tip", after="fare")
        """
        place = self._place(after, first)
        if place is None:
            raise OptionError(f"move_column({name!r}) needs after=… or first=True")
        return self._commit(hoodie.write.column_changes.MoveColumn(name, place))

    def change_type(self, name: str, type: Type) -> CommitResult:
        """Give a column a type that holds all of its values.

        int can become long, float, double, decimal or string; long: float, double, decimal or string; float: double or string; double,
        date and decimal: string; a decimal: one with more digits on either side; string: binary. Apache Hudi also allows a string to
        become a date or decimal; a query then fails on the first value that is not one.

        Args:
            name: of the column, with its parents.
            type: as `add_column` takes it.

        Example:
            >>> table.alter.change_type("trips", "bigint")
        """
        return self._commit(hoodie.write.column_changes.ChangeType(name, type))

    def set_nullable(self, name: str) -> CommitResult:
        """Let a column hold nulls. This cannot be undone.

        Args:
            name: of the column, with its parents.

        Example:
            >>> table.alter.set_nullable("fare")
        """
        return self._commit(hoodie.write.column_changes.SetNullable(name))

    def set_doc(self, name: str, doc: str | None) -> CommitResult:
        """Say what a column is, for readers.

        Args:
            name: of the column, with its parents.
            doc: the text; None removes it.

        Example:
            >>> table.alter.set_doc("fare", "in euros")
        """
        return self._commit(hoodie.write.column_changes.SetDoc(name, doc))

    def _commit(self, change: ColumnChange) -> CommitResult:
        context, options = self._at_work()
        return hoodie.writer.TableWriter(context).alter(change, options)

    def _at_work(self) -> AtWork:
        return self._table._at_work(self._options)

    def _place(self, after: str | None, first: bool) -> Place | None:
        if after is not None and first:
            raise OptionError("give after=… or first=True, and not both")
        return hoodie.write.column_changes.Place(after) if first or after is not None else None
