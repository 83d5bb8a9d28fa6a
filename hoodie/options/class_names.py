"""Names of Apache Hudi's classes and options, older ones too: in options and in properties a class is known by each name that it had.

Names are only ever looked up, never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

_PACKAGES = {
    "com.uber.hoodie.": "org.apache.hudi.",
    "org.apache.hudi.io.compact.strategy.": "org.apache.hudi.table.action.compact.strategy.",
    "org.apache.hudi.core.transaction.lock.": "org.apache.hudi.client.transaction.lock.",
    "org.apache.hudi.utilities.keygen.": "org.apache.hudi.keygen.",
    "org.apache.hudi.payload.": "org.apache.hudi.common.model.",
}
_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        **{
            f"org.apache.hudi.{name}KeyGenerator": f"org.apache.hudi.keygen.{name}KeyGenerator"
            for name in ("Simple", "Complex", "Nonpartitioned", "GlobalDelete")
        },
        **{
            f"org.apache.hudi.{name}": f"org.apache.hudi.common.model.{name}"
            for name in ("OverwriteWithLatestAvroPayload", "EmptyHoodieRecordPayload")
        },
        "org.apache.hudi.hive.HiveMetastoreBasedLockProvider": (
            "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
        ),
    }
)


def one_name(name: str) -> str:
    """The name by which a class is known here; a name that is none of another one's stays."""
    for old, new in _PACKAGES.items():
        if name.startswith(old):
            name = new + name.removeprefix(old)
    return _CLASSES.get(name, name)


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
