"""Names of all options of Apache Hudi and its modules, older ones too: `hudi_keys.tsv`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType


@cache
def hudi_names() -> tuple[tuple[str, ...], ...]:
    """The newest name of each option, and the older ones behind it."""
    lines = resources.files("hoodie.options").joinpath("hudi_keys.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(tuple(name for cell in line.split("\t") for name in cell.split(",")) for line in lines[1:])


@cache
def newest_names() -> Mapping[str, str]:
    """Every name that Apache Hudi knows -> the newest name of the same option, both in lower case."""
    return MappingProxyType({name.lower(): line[0].lower() for line in hudi_names() for name in line})


def other_names(name: str) -> tuple[str, ...]:
    """The older names of the option that has this name."""
    return _older().get(name, ())


@cache
def _older() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({line[0]: line[1:] for line in hudi_names() if line[1:]})
