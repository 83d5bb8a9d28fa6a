"""The tables of tests are small, and small files are treated in a way of their own: it can be turned off."""

import pytest

from hoodie.filegroup.run import ENCODED_BYTES
from hoodie.write.plan import CHEAP_BYTES


def treat_small_files(patch: pytest.MonkeyPatch, *, as_small: bool) -> None:
    """Not `as_small`: as large ones, which take new rows by their size and whose merges carry dictionaries over."""
    patch.setattr("hoodie.write.attempt.CHEAP_BYTES", CHEAP_BYTES if as_small else 0)
    patch.setattr("hoodie.filegroup.run.ENCODED_BYTES", ENCODED_BYTES if as_small else 0)
