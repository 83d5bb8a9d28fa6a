"""Rows of many keys are looked up in base files as a write looks them up, and both keep the keys of a file for each other.

A MERGE reads the stored rows of its keys, and then writes rows of the same keys.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError
from hoodie.index.bloom import rows_of_keys
from hoodie.index.hash_index import HashedKeys
from hoodie.model.files import BaseFile
from hoodie.model.plans import ReadPlan
from hoodie.model.sought import SoughtRows
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache
from hoodie.view.context import TableContext


def with_rows_of_keys(context: TableContext, plan: ReadPlan) -> ReadPlan:
    """The plan, with the rows of base files that have the keys of its filter, as far as it pays to look them up."""
    row_filter, reading = plan.context.filter, plan.context
    if (
        row_filter is None
        or row_filter.key_filter is None
        or reading.history is not None
        or reading.unstored is not None
    ):
        return plan
    sought = row_filter.key_filter
    slices = [each for task in plan.tasks for each in task.slices]
    bases = {each.base.path: each.base for each in slices if each.base is not None and each.base.source is None}
    look = partial(_rows_in, context.storage, context.cache, HashedKeys(sought.keys))
    found = LocalEngine().run(look, list(bases.values()), label="rows of keys", at_once=context.storage.can.at_once)
    rows = {path: each for path, each in zip(bases, found, strict=True) if each is not None}
    key_filter = sought._replace(rows=rows)
    return replace(plan, context=replace(reading, filter=replace(row_filter, key_filter=key_filter)))


def _rows_in(storage: Storage, cache: Cache, keys: HashedKeys, base: BaseFile) -> SoughtRows | None:
    try:
        return rows_of_keys(storage, cache, keys, base)
    except (CorruptFileError, pa.ArrowException):
        return None  # whoever reads the file says what is wrong with it
