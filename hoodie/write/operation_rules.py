"""What an operation does with the rows of a batch, and with those that are stored: decided once, from options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

from hoodie.model.enums import WriteOperation
from hoodie.options.values import DuplicatePolicy, SortMode
from hoodie.options.write import WriteOptions


class Step(StrEnum):
    """What the jobs of a write are for, in their order; the last one is no job."""

    READ = "read the batch"
    HASH = "hash keys"
    LOOK_UP = "look up keys"
    WRITE = "write files"
    LOAD = "write new files"
    REST = "gather the rest"
    COMMIT = "commit"


def steps_of(locate: Step | None) -> tuple[Step, ...]:
    """What a write takes, in order; `locate`: what is done to find the places of its rows."""
    return (Step.READ, *(() if locate is None else (locate,)), Step.WRITE, Step.COMMIT)


def labelled(operation: WriteOperation, table: str, step: Step, steps: Sequence[Step]) -> str:
    """How a job is called: `upsert flights: look up keys 2/4`."""
    return f"{operation.value.lower()} {table}: {step} {1 + steps.index(step)}/{len(steps)}"


class Replaces(Enum):
    """Which file groups a write replaces by its own, whatever is in them."""

    NOTHING = "nothing"
    TOUCHED = "the partitions of its rows, or those that an option names"
    ALL = "all partitions"


@dataclass(frozen=True)
class OperationRules:
    looks_up: bool
    """Each key is looked for in the stored files."""
    inserts: bool
    """Rows whose key is not stored are written."""
    updates: bool
    """Rows whose key is stored are written to the file group that has it."""
    refuses_stored: bool
    """A row whose key is stored fails the write."""
    concat: bool
    """An insert into a small file leaves the rows there that have the same key."""
    packs: bool
    """New rows may fill small files up."""
    replaces: Replaces
    deletes: bool
    """Every row of the batch is a delete, or only says which partition is meant: key columns are enough."""
    partial: bool
    """Rows of stored keys keep the stored values of some columns."""
    set_columns: tuple[str, ...] | None
    sort: SortMode

    @classmethod
    def of(cls, operation: WriteOperation, options: WriteOptions) -> OperationRules:
        upserts = operation is WriteOperation.UPSERT
        stored_keys = options.stored_keys if options.operation is operation else DuplicatePolicy.NONE
        replaces = _REPLACES.get(operation, Replaces.NOTHING)
        return cls(
            looks_up=upserts or operation is WriteOperation.DELETE or stored_keys is not DuplicatePolicy.NONE,
            inserts=(
                operation not in (WriteOperation.DELETE, WriteOperation.DELETE_PARTITION) and not options.only_stored
            ),
            updates=upserts or operation is WriteOperation.DELETE,
            refuses_stored=stored_keys is DuplicatePolicy.FAIL,
            concat=operation is WriteOperation.INSERT and options.allow_duplicates_in_merge,
            packs=operation is not WriteOperation.BULK_INSERT and replaces is Replaces.NOTHING,
            replaces=replaces,
            deletes=operation in (WriteOperation.DELETE, WriteOperation.DELETE_PARTITION),
            partial=upserts and options.partial,
            set_columns=options.set_columns,
            sort=options.sort_mode if operation in _SORTS else SortMode.NONE,
        )

    def columns_from(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """Which columns of a batch take the place of stored values; None: all columns of the table."""
        if not self.partial:
            return None
        return tuple(names) if self.set_columns is None else self.set_columns

    @property
    def sorts(self) -> bool:
        """Rows stand in their files in the order of record keys."""
        return self.sort in (SortMode.GLOBAL_SORT, SortMode.PARTITION_SORT)


_SORTS = (
    WriteOperation.BULK_INSERT,
    WriteOperation.INSERT_OVERWRITE,
    WriteOperation.INSERT_OVERWRITE_TABLE,
)
"""Operations all of whose rows go to new files."""
_REPLACES = {
    WriteOperation.INSERT_OVERWRITE: Replaces.TOUCHED,
    WriteOperation.INSERT_OVERWRITE_TABLE: Replaces.ALL,
    WriteOperation.DELETE_PARTITION: Replaces.TOUCHED,
}
