"""The critical section of services: the table's lock, on the very table that was opened.

Its folder may have been deleted and made anew since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from hoodie.errors import CommitConflictError, TableChangedError
from hoodie.model.enums import Action
from hoodie.options.compatibility import check_version, check_writable
from hoodie.options.table import PROPERTY_OF, TableConfig
from hoodie.timeline.pending import being_restored
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext, load_config
from hoodie.view.schema import CREATE_SCHEMA


@contextmanager
def under_lock(context: TableContext) -> Iterator[None]:
    """Hold the table lock.

    Raises:
        LockError: nobody let it go in time. TableChangedError, UnsupportedTableError: as `require_same_table`.
        UnsupportedTableError: the table's version is only read.
    """
    check_version(context.config)
    with context.lock.held(context.lock_timeout_s):
        require_same_table(context.config, load_config(context.storage))
        yield


def refuse_amid_restore(context: TableContext, timeline: Timeline) -> None:
    """Raises CommitConflictError while a restore is at work. Ask under the lock."""
    for restore in timeline.pending(Action.RESTORE):
        by = context.liveness.holder(restore.time)
        raise CommitConflictError(being_restored(restore, table=context.storage.uri, by=by))


_RULING = (CREATE_SCHEMA,)
"""Properties that rule writing and that `TableConfig` keeps as text only."""


def require_same_table(then: TableConfig, now: TableConfig) -> None:
    """Refuse to write by properties that the table does not have any more: keys, partitions, merging and files depend on them.

    What writers change in a table that stays (the bucket layout, the metadata table, table services) is not compared.

    Raises:
        UnsupportedTableError: another writer upgraded the table. TableChangedError: another property that rules writing
            is not the same.
    """
    if then.raw == now.raw:
        return
    check_writable(now)
    before, after = _ruling(then), _ruling(now)
    for ruling, value in before.items():
        if after[ruling] != value:
            name = _differing_property(ruling, then, now)
            was, is_now = (_text_of(config, name) for config in (then, now))
            raise TableChangedError(
                f"table {then.uri} is not the one that was opened: {name} was {was}, and is {is_now} now; nothing was written, "
                "open the table again and write to that"
            )


def _ruling(config: TableConfig) -> Mapping[str, object]:
    """By property, what it says. A merger counts by its name: its function may have been registered since."""
    merger = config.rule.merger
    rule = config.rule if merger is None else replace(config.rule, merger=merger._replace(merge=None))
    values = {name: getattr(config, attribute) for attribute, name in PROPERTY_OF.items()}
    return {**values, PROPERTY_OF["rule"]: rule, **{name: config.raw.get(name, "") for name in _RULING}}


def _differing_property(ruling: str, before: TableConfig, now: TableConfig) -> str:
    """The property for the error: the ruling one where it differs, else the first that does."""
    others = sorted(name for name in {*before.raw, *now.raw} if before.raw.get(name, "") != now.raw.get(name, ""))
    return ruling if ruling in others else others[0]


def _text_of(config: TableConfig, name: str) -> str:
    value = config.raw.get(name, "").strip()
    if not value:
        return "not set"
    return repr(value if len(value) <= 100 else value[:100] + "…")
