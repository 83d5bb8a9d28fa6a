"""An index outside of the table, built anew from what is stored: every row's key gets an entry."""

from __future__ import annotations

from functools import partial

from hoodie.errors import CommitConflictError, OptionError
from hoodie.index.external import RebuildTask, run_rebuild
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.model.meta_fields import with_meta_fields
from hoodie.model.plans import ReadContext
from hoodie.options.mergers import runnable
from hoodie.options.table import INDEX, INDEX_NAME
from hoodie.options.values import IndexType
from hoodie.options.write import WriteOptions
from hoodie.services.catalog import SERVICES
from hoodie.timeline.pending import being_written
from hoodie.txn.critical import under_lock
from hoodie.txn.index_changes import forget_deletes
from hoodie.undo.recovery import recover_before_write
from hoodie.view.context import TableContext
from hoodie.write.by_external import ByOutsideIndex
from hoodie.write.layout import add_properties
from hoodie.write.placement import PLACEMENTS


def rebuild_index(context: TableContext, options: WriteOptions) -> int:
    """Put an entry of every row, and have the table remember the index; gives the number of rows.

    It holds the table lock: a write that went on meanwhile would put newer entries first, and lose them. Entries of keys that are not
    stored any more stay; they lead to file groups that do not hold the key, and do no harm.

    Raises:
        OptionError: neither the table nor the options name such an index.
        CommitConflictError: a write is at work.
    """
    config = context.config
    kind = options.index.choice or config.index
    placement = None if kind is None else PLACEMENTS[kind]
    if kind is None or placement is None or not issubclass(placement, ByOutsideIndex):
        raise OptionError(
            f"table {config.name!r} has no index that is kept outside of it, so there is nothing to build: set "
            "hoodie.index.type=HBASE or hoodie.index.class"
        )
    index = placement.index_of(config, options.index)
    recover_before_write(context, SERVICES)
    with under_lock(context):
        snapshot = context.snapshot()
        at_work = next(iter(snapshot.timeline.pending_writes), None)
        if at_work is not None:
            writer = being_written(at_work, table=context.storage.uri, by=context.liveness.holder(at_work.time))
            raise CommitConflictError(f"{writer}; the index was not built, try again when it has ended")
        count = 0
        if snapshot.schema is not None:
            schema = with_meta_fields(snapshot.schema)
            reading = ReadContext(
                table=context.storage.uri,
                schema=schema,
                rule=runnable(context.rule),
                visible=snapshot.timeline.visible(),
                unstored=unstored_of(config, schema),
            )
            tasks = [RebuildTask(each) for each in snapshot.view.latest_slices(snapshot.view.every_partition())]
            run = partial(run_rebuild, context.storage, index, reading)
            count = sum(context.engine.run(run, tasks, label=f"rebuild the index of {config.name}"))
        own_name = options.index.own_class if kind is IndexType.CUSTOM else options.index.hbase.table
        name = own_name or config.index_name
        if (config.raw.get(INDEX), config.index_name) != (kind, name):
            add_properties(context.storage, {INDEX: kind, INDEX_NAME: name})
        forget_deletes(context.storage)
    return count
