"""What every operation on one table needs: its storage, configuration, engine, lock, clock, and a pinned snapshot."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

import hoodie.view
from hoodie.engine.base import Engine
from hoodie.errors import CorruptFileError, MissingFileError, TableChangedError, TableNotFoundError
from hoodie.format.layout import TIMELINES
from hoodie.format.properties import parse_properties_file
from hoodie.lock.base import Coordination, Liveness, Lock
from hoodie.lock.providers import coordinate
from hoodie.model.collector import COLLECTOR_SPARED
from hoodie.model.columns import ColumnHistory
from hoodie.model.enums import Action
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.late import once
from hoodie.model.names import (
    BOOTSTRAP_BEGUN,
    PROPERTIES,
    PROPERTIES_BACKUP,
    SET_ASIDE,
    doctor_of,
    hoodie_command,
    is_partition_path,
    parse_base_file,
    parse_log_file,
)
from hoodie.model.nested import with_fields
from hoodie.model.plans import MergeRule
from hoodie.model.tuning import TUNING, Tuning
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.options.table import TableConfig, parse_table_config
from hoodie.options.values import Durability
from hoodie.options.view import VIEW, ViewOptions
from hoodie.publish.base import Publisher
from hoodie.publish.publishers import publisher_of
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, Kind, process_cache
from hoodie.storage.neighbours import other_format
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.archive import ArchivedTimeline
from hoodie.timeline.clock import Clock, zone_of
from hoodie.timeline.timeline import Timeline
from hoodie.view.listing import Catalogue, Listing, StorageListing
from hoodie.view.schema import table_schema
from hoodie.view.stores import synced_files
from hoodie.view.synced import SyncedListing
from hoodie.view.view import FileSystemView, ViewState

if TYPE_CHECKING:
    import hoodie.view.bootstrap
    import hoodie.view.columns
    import hoodie.view.remote
    import hoodie.view.remote_client
    from hoodie.view.bootstrap import BootstrapIndex
    from hoodie.view.remote import RemoteFiles

T = TypeVar("T")

_ASKED_AGAIN = 5
"""Times that a question is put anew beside a table that changes all the time."""
_FOUND: Kind[ViewState] = Kind("what a view found")
_GROUP_BYTES = 1280
"""What a listing takes for each file group; so no view of more than fifty thousand groups is kept."""


class Snapshot:
    """A timeline and the view of the files under it; what it has answered once stays so."""

    def __init__(
        self,
        listing: Callable[[Timeline], Listing],
        active: ActiveTimeline,
        properties: Mapping[str, str],
        archived: ArchivedTimeline,
        *,
        last_view: FileSystemView | None = None,
        timeline: Timeline | None = None,
        skeletons: Callable[[], BootstrapIndex] | None = None,
    ) -> None:
        """`listing`: makes the listing under a timeline; `skeletons`: the index of a bootstrapped table."""
        self.active = active
        self.properties = properties
        self.timeline: Timeline = active.load() if timeline is None else timeline
        self.archived = archived
        same = last_view is not None and last_view.timeline == self.timeline
        self.view = (
            last_view
            if last_view is not None and same
            else FileSystemView(listing(self.timeline), active, self.timeline, archived, skeletons=skeletons)
        )

    @once
    def schema(self) -> pa.Schema | None:
        """Columns of the table without meta columns; None when neither a commit nor the table's creation stated them."""
        return table_schema(self.active, self.timeline, self.properties)

    @once
    def history(self) -> ColumnHistory | None:
        """Where columns were renamed, dropped or moved; None where names alone tell them apart."""
        return hoodie.view.columns.column_history(self.active, self.timeline)

    def with_columns(self, added: pa.Schema) -> Snapshot:
        """The same rows with columns of these that are not there behind the others, and fields inside of those that are: null in
        all of them.
        """
        stored = self.schema if self.schema is not None else pa.schema([])
        by_name = {field.name: field for field in added}
        whole = [each.with_type(with_fields(each.type, by_name.pop(each.name, each).type)) for each in stored]
        result = copy.copy(self)
        result.schema = pa.schema([*whole, *by_name.values()])
        result.history = hoodie.view.columns.history_after(self.history, result.schema, hoodie.view.columns.NO_VERSION)
        return result

    def schema_of_plan(self, instant: InstantTime) -> pa.Schema | None:
        """The columns of files that a service's plan of this instant writes, where columns have a history: those of its moment.

        For by its instant readers find the version of a file's columns when its commit is archived.
        """
        if self.history is None:
            return self.schema
        return table_schema(self.active, self.timeline, self.properties, until=instant)

    @once
    def pending_writes(self) -> tuple[Instant, ...]:
        """Pending instants that will bring rows: a clustering only moves them, and they keep their commit times."""
        return tuple(i for i in self.timeline.pending_writes if not self.active.is_pending_clustering(i))


@dataclass(frozen=True)
class TableContext:
    """One open table. Thread-safe: operations take their own snapshots."""

    storage: Storage
    cache: Cache
    config: TableConfig
    engine: Engine
    listing: Listing
    active: ActiveTimeline
    clock: Clock
    concurrency: ConcurrencyOptions
    coordination: Coordination
    tuning: Tuning = TUNING
    view_options: ViewOptions = VIEW
    synced: SyncedListing | None = None
    """What views ask in place of `listing`, where the files are followed. `listing` asks the storage each time."""
    remote: RemoteFiles | None = None
    """A timeline server, which views ask before these."""
    catalogue: Catalogue | None = None
    """What a query asks before a listing."""
    lists_folders: bool = False
    """No query through it gets a catalogue."""

    def __getstate__(self) -> dict[str, Any]:
        """What this process follows stays here: another one has its own."""
        return {**self.__dict__, "synced": self.synced is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, synced=None)
        if state["synced"]:
            self.__dict__["synced"] = self._viewed(self.view_options).synced

    @classmethod
    def open(
        cls,
        storage: Storage,
        engine: Engine,
        concurrency: ConcurrencyOptions = CONCURRENCY,
        *,
        sleep: Callable[[float], None] = time.sleep,
        cache: Cache | None = None,
        tuning: Tuning | None = None,
        view: ViewOptions = VIEW,
    ) -> TableContext:
        """Open the table at a storage's root; `sleep` is how a commit waits for the storage's clock, and `cache` what keeps things
        for the next operations (default: the one of this process).

        Raises:
            TableNotFoundError: there is none. OptionError: `view` asks for a package that is not installed.
        """
        config = load_config(storage)
        cache = process_cache() if cache is None else cache
        return cls(
            storage=storage,
            cache=cache,
            config=config,
            engine=engine,
            listing=StorageListing(storage),
            active=ActiveTimeline(
                storage,
                cache,
                layout=config.layout,
                folder=config.timeline_folder,
                history=config.history_folder,
            ),
            clock=Clock(storage.now_s, zone_of(config.timezone), sleep),
            concurrency=concurrency,
            coordination=coordinate(storage, concurrency),
            tuning=TUNING if tuning is None else tuning,
        )._viewed(view)

    def with_concurrency(self, options: ConcurrencyOptions) -> TableContext:
        """The same table among the writers that these options speak of, and as durable as they say."""
        if options == self.concurrency:
            return self
        storage = self.storage if options.durability is Durability.POWER_CUT else self.storage.unsynced()
        return replace(self, storage=storage, concurrency=options, coordination=coordinate(storage, options))

    def with_view(self, options: ViewOptions) -> TableContext:
        """The same table with files that are found as these options say; where they say nothing, as it is.

        Raises:
            OptionError: a package that the store, or asking a timeline server, needs is not installed.
        """
        return self if options in (self.view_options, VIEW) else self._viewed(options)

    def _viewed(self, options: ViewOptions) -> TableContext:
        remote = None
        if options.remote is not None:
            client = hoodie.view.remote_client.RemoteClient(options.remote)
            remote = hoodie.view.remote.RemoteFiles(client, self.storage.uri, options.remote)
        if not (self.storage.can.is_remote if options.follows is None else options.follows):
            return replace(self, view_options=options, synced=None, remote=remote)
        files = synced_files(self.storage, self.cache, self.config.layout, options)
        archive = partial(self.storage.list, self.config.history_folder)
        set_aside = partial(self.storage.list, SET_ASIDE, recursive=True)
        synced = SyncedListing(
            files, self.listing, self.active, archive, set_aside, at_once=options.follows is not None
        )
        return replace(self, view_options=options, synced=synced, remote=remote)

    def on_storage(self) -> TableContext:
        """The same table with views that ask the storage: for who judges what stands there, or relies on it."""
        mine = self.view_options
        clock = replace(VIEW.expression_index, zone=mine.expression_index.zone)
        options = ViewOptions(metadata=mine.metadata, expression_index=clock)
        return replace(self, view_options=options, synced=None, remote=None, catalogue=None, lists_folders=True)

    def listing_under(self, timeline: Timeline) -> Listing:
        """What a view under this timeline asks for files."""

        def followed() -> Listing:
            return self.listing if self.synced is None else self.synced.under(timeline)

        def local() -> Listing:
            return followed() if self.catalogue is None else self.catalogue.under(timeline, followed)

        return local() if self.remote is None else self.remote.under(timeline, local)

    def forget_files(self) -> bool:
        """List anew, when files are asked for next: some were moved without a word on the timeline. Whether that is needed."""
        self.kept_view()
        if self.remote is not None:
            self.remote.forget()
        if self.synced is not None:
            self.synced.forget()
        if self.catalogue is not None:
            self.catalogue.distrust()
        return any(each is not None for each in (self.synced, self.remote, self.catalogue))

    @property
    def lock(self) -> Lock:
        return self.coordination.lock

    @property
    def publisher(self) -> Publisher:
        return publisher_of(self.storage, leased=self.lock.is_leased)

    @property
    def liveness(self) -> Liveness:
        return self.coordination.liveness

    @property
    def lock_timeout_s(self) -> float:
        return self.concurrency.lock_timeout_s

    def snapshot(self, last_view: FileSystemView | None = None, timeline: Timeline | None = None) -> Snapshot:
        """The table as it is now, or was under this timeline. Where `last_view` has the same timeline, its listing is not made
        again.

        Raises:
            TableNotFoundError: the table was deleted since it was opened. TableChangedError: it got another version since.
            CorruptFileError: its timeline is lost: there are data files, and no instant.
        """
        result = Snapshot(
            self.listing_under,
            self.active,
            self.config.raw,
            self.archived(),
            last_view=last_view,
            timeline=timeline,
            skeletons=self.skeletons,
        )
        if not result.timeline.instants:
            if not self.storage.exists(PROPERTIES):
                load_config(self.storage)
            foreign = foreign_timeline(self.storage, self.config)
            if foreign is not None:
                _require_same_version(self.config, load_config(self.storage))
                raise CorruptFileError(f"{self.storage.uri}/{foreign}; {doctor_of(f'{self.storage.uri}/.hoodie/')}")
            if timeline is None and (path := self.file_without_timeline()) is not None:
                if self.active.load().instants:
                    return self.snapshot(last_view)  # a writer has begun meanwhile
                raise CorruptFileError(
                    f"the timeline of table {self.storage.uri} is lost: {self.config.timeline_folder} has no instant, and "
                    f"{path} is a data file; restore the folder from a copy of the table"
                )
        return result

    def snapshot_as_found(self) -> Snapshot:
        """The table as it is now, also one that has lost its timeline: for who looks for damage."""
        return self.snapshot(timeline=self.active.load())

    def file_without_timeline(self) -> str | None:
        """A data file, for a table without any instant: a writer puts its instant on the timeline before its files."""
        for folder, infos in self.listing.all_files().files.items():
            for info in infos if is_partition_path(folder) else ():
                if not info.is_folder and (parse_base_file(info.name) or parse_log_file(info.name)):
                    return info.path
        return None

    def ask(self, question: Callable[[Snapshot], T]) -> T:
        """The answer for the newest snapshot. Where files of it are gone because the table moved on meanwhile (a clean, a rollback),
        for the one after it.

        Raises:
            MissingFileError: files are gone, and the table stands still.
        """
        stands_still = False
        for _ in range(_ASKED_AGAIN):
            snapshot = self.snapshot()
            try:
                with COLLECTOR_SPARED:
                    return question(snapshot)
            except MissingFileError:
                if self.active.load() == snapshot.timeline:
                    if stands_still or not self.forget_files():
                        raise
                    stands_still = True
        return question(self.snapshot())

    def kept_view(self) -> FileSystemView | None:
        """What the last write of this process into this table listed and published, for the caller alone; whether it still holds
        is settled by the timeline.
        """
        content = self.cache.take(_FOUND, self.storage.identity)
        if content is None:
            return None
        listing = self.listing_under(content.timeline)
        return FileSystemView.of(content, listing, self.active, self.archived(), skeletons=self.skeletons)

    def keep_view(self, view: FileSystemView) -> None:
        """Leave it to the next write, which may open the table anew."""
        content = view.content
        self.cache.put(_FOUND, self.storage.identity, content, _GROUP_BYTES * sum(map(len, content.groups.values())))

    def completing(self, instant: Instant, timeline: Timeline | None = None) -> Instant:
        """A completed instant with the time of its completion, where its file names that: now, and above all on the timeline.

        Call it under the table lock, and let the file follow: so the times of completion are different, and grow. `timeline`: as it
        was seen under the same lock.
        """
        if not self.config.layout.by_completion:
            return instant
        if timeline is None or timeline.pending(Action.RESTORE, Action.ROLLBACK):
            timeline = self.active.load_all()  # with what these take off
        completion = self.clock.allot(timeline.latest_time)
        self.clock.wait_until_passed(completion)
        return instant._replace(completion=completion)

    def archived(self) -> ArchivedTimeline:
        """The archived timeline as it is now, read as far as it is asked."""
        return ArchivedTimeline(self.storage, self.config.history_folder, layout=self.config.layout, cache=self.cache)

    @property
    def skeletons(self) -> Callable[[], BootstrapIndex]:
        """Opens what says which files have the columns of those of a bootstrap; also where no property says that there was one."""
        return cache(lambda: hoodie.view.bootstrap.BootstrapIndex(self.storage, self.config))

    @property
    def rule(self) -> MergeRule:
        return self.config.rule


def foreign_timeline(storage: Storage, config: TableConfig) -> str | None:
    """That the table has a timeline of another version than its properties say, whose commits nobody would see."""
    for layout in TIMELINES:
        is_other = layout.number != config.layout.number and layout.folder != config.timeline_folder
        if is_other and any(layout.parse(name) for name in storage.names(layout.folder)):
            return (
                f"{PROPERTIES} says version {int(config.version)}, and {layout.folder} has the timeline of another one"
            )
    return None


FOLDER_OF_PROPERTIES = f"a folder stands at {PROPERTIES}, where a file has to be"


def lost_properties(storage: Storage) -> str | None:
    """That the properties of a table are empty, gone, or a folder; None where they are not, or where nothing is of a table. A
    migration in place that has not ended has not made one.
    """
    try:
        data = storage.read(PROPERTIES)
    except FileNotFoundError:
        is_backed_up = storage.exists(PROPERTIES_BACKUP)
        if not is_backed_up and not any(
            layout.parse(name) for layout in TIMELINES for name in storage.names(layout.folder)
        ):
            return None
        if storage.exists(BOOTSTRAP_BEGUN):
            return None
        what = f"{PROPERTIES} is missing"
    except IsADirectoryError:
        return FOLDER_OF_PROPERTIES
    else:
        if data.strip():
            return None
        is_backed_up = storage.exists(PROPERTIES_BACKUP)
        what = f"{PROPERTIES} is empty"
    return f"{what}, and its backup is there: an update died on the way" if is_backed_up else what


def _require_same_version(before: TableConfig, now: TableConfig) -> None:
    if now.version is not before.version:
        raise TableChangedError(
            f"table {now.uri} was of version {int(before.version)} when it was opened, and is of version {int(now.version)} now; "
            "open it again"
        )


def load_config(storage: Storage) -> TableConfig:
    """The table's configuration; a writer may be replacing the file this moment, then its backup counts.

    Raises:
        TableNotFoundError: nothing of a table is there. UnsupportedTableError: a version or layout we do not know.
        CorruptFileError: the file is damaged, empty or gone, and so is the backup, or there is none.
    """
    first_error: CorruptFileError | None = None
    for path in (PROPERTIES, PROPERTIES_BACKUP, PROPERTIES):
        try:
            data = storage.read(path)
        except (FileNotFoundError, IsADirectoryError):
            continue
        if data.strip():
            try:
                return parse_table_config(parse_properties_file(data, path=f"{storage.uri}/{path}"), uri=storage.uri)
            except CorruptFileError as exc:
                first_error = first_error or exc
    if first_error is not None:
        raise first_error
    why = lost_properties(storage)
    if why is not None:
        first = "Delete it; then " if why is FOLDER_OF_PROPERTIES else ""
        raise CorruptFileError(
            f"table {storage.uri} cannot be opened: {why}. {first}{hoodie_command('repair', storage.uri, 'properties')} shows what "
            "can be put back, and from where"
        )
    if storage.exists(BOOTSTRAP_BEGUN):
        raise TableNotFoundError(
            f"no table at {storage.uri} yet: a migration in place began there and has not ended; run it again"
        )
    other = other_format(storage)
    if other:
        raise TableNotFoundError(f"no table at {storage.uri}: it is {other}, and hoodie opens those of Apache Hudi")
    raise TableNotFoundError(
        f"no table at {storage.uri}: there is no {PROPERTIES} in it. "
        "Check the path, or create the table (the first write does that in Spark; hoodie.create_table in Python)"
    )
