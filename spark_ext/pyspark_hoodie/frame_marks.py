"""Marks on the plans of frames that are of a table's newest rows: they say what is read (`live_frames.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from hoodie.model.enums import QueryType
from hoodie.options.option import key_of
from hoodie.options.read import AS_OF, TIMESTAMP_AS_OF, ReadOptions

_TAG = "hoodie"
"""Name of the mark, in `live_frames.java` as well."""
marked_frames: WeakKeyDictionary[DataFrame, str] = WeakKeyDictionary()
"""Frames as they were given to users, with their marks."""
_tags: list[tuple[Any, Any]] = []


def marked(spark: Any, frame: DataFrame, path: str, options: Mapping[str, str]) -> DataFrame:
    """The frame, whose plan says from now on what it reads. Connect's clients do not see plans."""
    if is_classic(spark) and hasattr(frame, "_jdf") and _is_of_now(options):
        text = json.dumps([path, dict(options)], sort_keys=True)
        frame._jdf.queryExecution().analyzed().setTagValue(_tag(spark._jvm), text)
        marked_frames[frame] = text
    return frame


def has_marks() -> bool:
    """Whether any frame of this process was marked."""
    return bool(_tags)


def is_classic(spark: Any) -> bool:
    """Whether the session has a JVM of its own here."""
    return hasattr(spark, "_jsparkSession")


def _is_of_now(options: Mapping[str, str]) -> bool:
    by_lower_name = {key.lower(): text.strip().lower() for key, text in options.items()}
    pinned = [name for key in (AS_OF, TIMESTAMP_AS_OF) for name in key.names]
    queries = [
        by_lower_name[name.lower()] for name in key_of(ReadOptions, "query").names if name.lower() in by_lower_name
    ]
    return not any(name.lower() in by_lower_name for name in pinned) and QueryType.INCREMENTAL not in queries


def _tag(jvm: Any) -> Any:
    """The mark's name as the JVM has it: made once, for py4j asks about each part of a class's name."""
    for client, tag in _tags:
        if client is jvm._gateway_client:
            return tag
    tag = jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(_TAG)
    _tags.append((jvm._gateway_client, tag))
    return tag
