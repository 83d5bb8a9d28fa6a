"""A write that is under way, in this very thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.model.enums import WriteOperation
from hoodie.table import HoodieTable
from hoodie.write.attempt import Attempt, TaskResults
from hoodie.write.stage import staged_batch


@contextmanager
def begun(table: HoodieTable, rows: pa.Table) -> Iterator[Callable[[], None]]:
    """An upsert that has its instant and nothing more; gives what writes and completes it."""
    options = table._request(None).write
    context = table._context.with_concurrency(options.concurrency)
    with staged_batch(
        context,
        rows.to_reader(),
        rows.schema,
        operation=WriteOperation.UPSERT,
        options=options,
        engine=LocalEngine(1),
    ) as batch:
        attempt = Attempt(context, batch, options, context.snapshot())
        transaction, plan = attempt.plan(attempt.locate(context.snapshot()))
        ended: list[bool] = []

        def end() -> None:
            if not ended:
                ended.append(True)
                with transaction:
                    written = TaskResults()
                    attempt.publish(transaction, attempt.write(transaction, plan, written), written)

        yield end
