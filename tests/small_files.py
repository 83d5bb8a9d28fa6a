"""The tables of tests are small, and small files are treated in a way of their own: it can be turned off."""

from dataclasses import replace

import pytest

from hoodie.model.tuning import TUNING

SIZED = replace(TUNING, cheap_bytes=0, encoded_bytes=0)
"""Every file counts as a large one, which takes new rows by its size and whose merges carry dictionaries over."""


def treat_small_files(patch: pytest.MonkeyPatch, *, as_small: bool) -> None:
    """Tables that are opened from now on: small files as such, or `SIZED`."""
    patch.setattr("hoodie.view.context.TUNING", TUNING if as_small else SIZED)
