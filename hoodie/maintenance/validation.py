"""Whether a table is whole, as methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hoodie.repair
from hoodie.maintenance.base import OpenTable
from hoodie.model.findings import Diagnosis, ValidationResult
from hoodie.storage.refusals import said_plainly

if TYPE_CHECKING:
    import hoodie.repair.doctor
    import hoodie.repair.validation


class Validation(OpenTable):
    @said_plainly
    def validate(self, *, deep: bool = False) -> ValidationResult:
        """Whether the newest state of the table is whole: every file that a commit wrote is there with the bytes that it states,
        and every folder with files is a partition.

        Args:
            deep: also read all rows. Keys are unique in each partition, files decode, rows lie in the folder and the file group that
                they name, and footers and bloom filters agree with them.

        Returns:
            What was looked at, and every problem; it is true where there is none.

        Example:
            >>> assert table.validate(deep=True)
        """
        context, write = self._at_work()
        return hoodie.repair.validation.validate(context, write, deep=deep)

    @said_plainly
    def doctor(self, *, deep: bool | None = None) -> Diagnosis:
        """What is wrong with the table, or will be, and what mends it. What `validate` finds is among it.

        Args:
            deep: also read all rows, as `validate` does; None: where the newest state has 64 MB at most.

        Returns:
            The findings, worst first. Nothing is changed.

        Example:
            >>> print(table.doctor())
        """
        context, write = self._at_work()
        return hoodie.repair.doctor.diagnose(context, write, deep=deep)
