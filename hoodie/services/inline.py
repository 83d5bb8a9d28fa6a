"""Services that are due after a commit. Never inside the commit; their failure does not undo it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from threading import Lock, Thread

from hoodie.errors import CommitConflictError, HoodieError
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import hoodie_command
from hoodie.model.results import CommitResult
from hoodie.options.write import WriteOptions
from hoodie.services.base import Service
from hoodie.services.callbacks import call_back, push_metrics
from hoodie.services.catalog import SERVICES
from hoodie.services.figures import record_commit
from hoodie.services.scheduling import run_pending, schedule
from hoodie.services.upkeep import UPKEEP, Upkeep
from hoodie.telemetry import measures
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


def after_commit(context: TableContext, options: WriteOptions, committed: CommitResult) -> list[object]:
    """Tell others of the commit, then plan and run each service that is due. Gives what those did that were waited for."""
    if committed.instant is not None:
        _tell(context, options, InstantTime(committed.instant), committed.seconds)
    results: list[object] = []
    for service in SERVICES.values() if options.services_enabled else ():
        try:
            if service.is_due(context, options):
                if service.in_background(options):
                    _begin_in_background(service, context, options)
                else:
                    results += _serve(service, context, options)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the caller must not take the commit for failed
            _say(service, exc)
    for upkeep in UPKEEP:
        if options.services_enabled or not upkeep.is_service:
            _keep_up(upkeep, context, options)
    if options.services_enabled:
        _warn_of_many_logs(context)
    return results


def _tell(context: TableContext, options: WriteOptions, time: InstantTime, seconds: float) -> None:
    followers: list[tuple[str, Callable[[Instant], None]]] = []
    if options.callback.enabled:
        followers.append(("the callback", lambda instant: call_back(context, options.callback, instant)))
    if options.metrics.enabled:
        followers.append(
            ("the report", lambda instant: push_metrics(context, options.metrics, instant, seconds=seconds))
        )
    if measures():
        followers.append(("the report", lambda instant: record_commit(context, instant, seconds=seconds)))
    for what, tell in followers:
        try:
            tell(context.snapshot().timeline.commit_at[time])
        except Exception as exc:  # noqa: BLE001 - as above
            log.warning("the commit stands, but %s after it failed: %s", what, exc)


_warned: set[Hashable] = set()


def _warn_of_many_logs(context: TableContext) -> None:
    """Once for each table in a process."""
    timeline = context.active.last_loaded()
    if context.storage.identity in _warned or timeline is None or timeline.latest_commit is None:
        return
    try:
        metadata = context.active.read_commit(timeline.latest_commit)
    except (HoodieError, OSError):
        return  # the next reader says so
    most = max((len(stat.log_files) for stat in metadata.stats()), default=0)
    if most > context.tuning.warned_logs:
        _warned.add(context.storage.identity)
        log.warning(
            "a file slice of table %s has %s log files and was not compacted: each query merges them, and each commit names them all. "
            "Run %s, or set hoodie.compact.inline=true",
            context.storage.uri,
            f"{most:,}",
            hoodie_command("compaction", "run", context.storage.uri),
        )


def _keep_up(upkeep: Upkeep, context: TableContext, options: WriteOptions) -> None:
    def run() -> None:
        try:
            upkeep.run(context, options)
        except CommitConflictError as exc:
            log.info("%s after a commit is left to another process: %s", upkeep.name, exc)
        except Exception as exc:  # noqa: BLE001 - as above
            log.warning("the commit stands, but %s after it failed and is tried again later: %s", upkeep.name, exc)

    try:
        due = upkeep.is_due(context, options)
    except Exception as exc:  # noqa: BLE001 - as above
        log.warning("the commit stands, but whether %s is due after it is not known: %s", upkeep.name, exc)
        return
    if due and upkeep.in_background(options):
        _in_background((context.storage.identity, upkeep.name), run)
    elif due:
        run()


def _serve(service: Service[object], context: TableContext, options: WriteOptions) -> list[object]:
    schedule(service, context, options, wait_s=0)
    if service.only_schedules(options):
        return []
    return run_pending(service, context, options)


def _say(service: Service[object], error: Exception) -> None:
    action = service.action.value
    if isinstance(error, CommitConflictError):
        log.info("the %s after a commit is left to another process: %s", action, error)
    else:
        log.warning("the commit stands, but the %s after it failed and is tried again later: %s", action, error)


# -- beside the writer -------------------------------------------------------------------------------------------------

_threads: dict[Hashable, Thread] = {}
_guard = Lock()


def _begin_in_background(service: Service[object], context: TableContext, options: WriteOptions) -> None:
    """In a thread of this process, which waits for it before it ends; one for each table and service."""

    def run() -> None:
        try:
            _serve(service, context, options)
        except Exception as exc:  # noqa: BLE001 - nobody else hears of it
            _say(service, exc)

    _in_background((context.storage.identity, service.action.value), run)


def _in_background(key: tuple[Hashable, str], run: Callable[[], None]) -> None:
    with _guard:
        running = _threads.get(key)
        if running is None or not running.is_alive():
            _threads[key] = Thread(target=run, name=f"hoodie-{key[1]}")
            _threads[key].start()


def wait_for_background() -> None:
    """Return when the services that run beside writers of this process are done."""
    with _guard:
        running = list(_threads.values())
        _threads.clear()
    for thread in running:
        thread.join()
