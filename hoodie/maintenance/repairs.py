"""Validation and repairs as methods; and the repair of `hoodie.properties`, which has no open table yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import hoodie.repair
from hoodie.lock.providers import coordinate
from hoodie.maintenance.base import OpenTable
from hoodie.model.findings import YOUNG_S, Diagnosis, PropertiesRepair, RepairResult, ValidationResult
from hoodie.options.arguments import check_seconds, parse_options, parse_texts
from hoodie.options.defaults_file import load_defaults
from hoodie.options.parse import parse_write_options
from hoodie.storage.refusals import hoodie_errors, plain_errors
from hoodie.storage.uri import open_storage
from hoodie.txn.heartbeat import changes_table, undisturbed

if TYPE_CHECKING:
    import hoodie.repair.checks
    import hoodie.repair.doctor
    import hoodie.repair.properties_repair
    import hoodie.repair.repairs


class Repairs(OpenTable):
    @changes_table
    def repair(
        self, what: str | Sequence[str] | None = None, *, dry_run: bool = True, older_than_s: float = YOUNG_S
    ) -> RepairResult:
        """Find damage outside of the rows, and with `dry_run=False` repair it.

        "partition-metadata" rewrites missing and damaged partition metadata files. "stray-files" moves away data files that belong to
        no completed instant; `undo_repair` puts them back. "plans" removes plans of cleans, rollbacks, restores and compactions that
        are damaged or name missing files; services plan again. "metadata-table" drops a metadata table that is behind, damaged or
        wrong. "bootstrap-index" writes a damaged file of a bootstrap's index from the other one.

        Args:
            what: one of these, or several; None: all of them.
            dry_run: change nothing, and say what would be done.
            older_than_s: younger files are left alone, whatever the timeline says of them.

        Returns:
            What is repaired, and what was left alone with the reason.

        Raises:
            OptionError: there is no such repair.
            CorruptFileError: metadata of an instant do not decode, so files cannot be judged.

        Example:
            >>> table.repair()
            >>> table.repair("stray-files", dry_run=False).set_aside
        """
        check_seconds(older_than_s, "older_than_s")
        context, _ = self._at_work()
        return hoodie.repair.repairs.repair(
            context, hoodie.repair.repairs.kinds_of(what), dry_run=dry_run, older_than_s=older_than_s
        )

    @changes_table
    def undo_repair(self, set_aside: str) -> list[str]:
        """Put back the files that a repair moved away.

        Args:
            set_aside: as the result of the repair has it.

        Returns:
            The paths of the files, relative to the table.

        Raises:
            InstantNotFoundError: there is no such set of files.
            OptionError: readers would count a file as data by now, or another file has its place. Nothing was moved.
        """
        context, _ = self._at_work()
        return hoodie.repair.repairs.undo(context, set_aside)


def repair_properties(
    path: str | PathLike[str],
    known: Mapping[str, str] | None = None,
    *,
    dry_run: bool = True,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> PropertiesRepair:
    """Find out the properties of a table whose `hoodie.properties` is missing or damaged, and with `dry_run=False` write them.

    They come from the file's backup, from its remaining lines, and from the files of the table. Give the rest as `known`. The damaged
    file is kept in `.hoodie/.hoodie_py_set_aside/`.

    Args:
        path: the table's folder, as `open_table` takes it.
        known: properties by their names; they win over what is found, and an empty text says that there is none.
        dry_run: change nothing, and say what is known, from where, and what is not.
        storage_options: how to reach the storage.
        options: Hudi's options of locks.

    Returns:
        The properties, each with its source, and what is not known.

    Raises:
        TableNotFoundError: there is nothing of a table at the path.
        OptionError: something is not known (only without `dry_run`), or the properties contradict each other.

    Example:
        >>> hoodie.repair_properties("/data/trips", {"hoodie.table.ordering.fields": "ts"}, dry_run=False)
    """
    storage = open_storage(path, storage_options)
    known = None if known is None else parse_texts(known, what="known")
    if dry_run:
        with plain_errors(storage.uri):
            return hoodie.repair.properties_repair.plan_properties(storage, known)
    concurrency = parse_write_options(parse_options(options), defaults=load_defaults()).write.concurrency
    with undisturbed(), plain_errors(storage.uri):
        return hoodie.repair.properties_repair.repair_at(
            storage, coordinate(storage, concurrency).lock, known, timeout_s=concurrency.lock_timeout_s
        )


class Validation(OpenTable):
    @hoodie_errors
    def validate(self, *, deep: bool = False) -> ValidationResult:
        """Check whether the newest snapshot of the table is complete: every file that a commit wrote exists with the stated number of
        bytes, and every folder with files is a partition.

        Args:
            deep: also read all rows. Keys are unique in each partition, files decode, rows lie in the folder and the file group that
                they name, and footers and bloom filters agree with them.

        Returns:
            The counts of what was checked, and every problem; it is true if there is none.

        Example:
            >>> assert table.validate(deep=True)
        """
        context, write = self._at_work()
        return hoodie.repair.checks.validate(context, write, deep=deep)

    @hoodie_errors
    def doctor(self, *, deep: bool | None = None) -> Diagnosis:
        """Find out what is wrong with the table, or will be, and how to repair it. This includes the findings of `validate`.

        Args:
            deep: also read all rows, as `validate` does; None: where the newest state has 64 MB at most.

        Returns:
            The findings, worst first. Nothing is changed.

        Example:
            >>> print(table.doctor())
        """
        context, write = self._at_work()
        return hoodie.repair.doctor.diagnose(context, write, deep=deep)
