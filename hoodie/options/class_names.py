"""Other names of Apache Hudi's classes: a class that moved is known by each name that it had, in options and in properties.

Names are only ever looked up, never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
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
