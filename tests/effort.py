"""How much of a long test runs where: a part of it in `make test`, the rest (marked `long`) in `make integration`."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

SOAK = bool(os.environ.get("HOODIE_SOAK"))
"""`make soak`: much more of everything."""


def long_but(kept: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """The values of a parameter; those that are not among `kept` are marked `long`."""
    kept = tuple(kept)
    values = list(values)
    assert all(value in values for value in kept), "what is to be kept is no value"
    return [value if value in kept else pytest.param(value, marks=pytest.mark.long) for value in values]
