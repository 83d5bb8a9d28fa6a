"""The tables of tests are small, and small files are treated in a way of their own: it can be turned off."""

from dataclasses import replace

import pytest

from hoodie.model.tuning import TUNING

SIZED = replace(TUNING, cheap_bytes=0, encoded_bytes=0)
"""Every file counts as a large one, which takes new rows by its size and whose merges carry dictionaries over."""


def treat_small_files(patch: pytest.MonkeyPatch, *, as_small: bool) -> None:
    """Tables that are opened from now on: small files as such, or `SIZED`."""
    patch.setattr("hoodie.view.context.TUNING", TUNING if as_small else SIZED)


def set_few_rows(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Base files of so many rows, or fewer, have no dictionaries."""
    for module in ("filegroup.base_writer", "filegroup.small_base_files", "format.parquet_file"):
        patch.setattr(f"hoodie.{module}.FEW_ROWS", rows)
