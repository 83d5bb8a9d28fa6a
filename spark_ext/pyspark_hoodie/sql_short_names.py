"""Short names of table properties in Apache Hudi's SQL, such as `primaryKey`."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.options.option import key_of
from hoodie.options.table_options import MERGE_MODE, MERGE_STRATEGY, PAYLOAD_CLASS, TableOptions

SHORT_NAMES = {
    "type": key_of(TableOptions, "table_type").name,
    "primarykey": key_of(TableOptions, "record_key_fields").name,
    "precombinefield": key_of(TableOptions, "ordering_fields").name,
    "orderingfields": key_of(TableOptions, "ordering_fields").name,
    "recordmergemode": MERGE_MODE.name,
    "payloadclass": PAYLOAD_CLASS.name,
    "recordmergestrategyid": MERGE_STRATEGY.name,
}
"""In lower case -> options."""
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def with_full_names(options: Mapping[str, str]) -> dict[str, str]:
    """The same options, under the names that writes know."""
    return {
        SHORT_NAMES.get(key.lower(), key): _TYPES.get(text.lower(), text) if key.lower() == "type" else text
        for key, text in options.items()
    }
