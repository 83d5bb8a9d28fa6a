"""Named consumers: cursors over the changes of a table that stay in the table, embedded and on Spark alike.

Rows come from the `changes` of the facade. A consumer says from where to where, and remembers it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from hoodie.errors import InstantNotFoundError, OptionError
from hoodie.model.enums import ChangeFormat
from hoodie.model.instant import InstantTime
from hoodie.model.service_results import ConsumerInfo, ConsumerLag
from hoodie.options.arguments import parse_images
from hoodie.options.moments import BEGINNING, Moment, parse_begin_option, parse_position_option
from hoodie.options.write import WriteOptions
from hoodie.storage.refusals import hoodie_errors, with_hoodie_errors
from hoodie.timeline.clock import zone_of
from hoodie.timeline.moments import counted, refuse_undone
from hoodie.txn.consumer_places import create_place, drop_place, move_place, shown
from hoodie.txn.heartbeat import changes_table
from hoodie.view.consumers import (
    ConsumerPlace,
    StoredPlace,
    check_name,
    consumer_names,
    consumers_of,
    lag_behind,
    read_place,
)
from hoodie.view.context import TableContext

if TYPE_CHECKING:
    from hoodie.read.where import Where

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

LATEST = "latest"
_NOTHING = "19700101000000000"
"""Before every commit: the end of a range in which there is none."""


class Changes(Protocol[R_co]):
    """The `changes` of a table."""

    def __call__(
        self,
        since: Moment | None = None,
        until: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        images: str = ...,
        full_scan_fallback: bool = ...,
        meta_columns: bool = ...,
    ) -> R_co: ...


@with_hoodie_errors
class Consumer(Generic[R]):
    """A cursor over the changes of a table, created by `HoodieTable.consumer`. The table stores its position under its name.

    Use it in a `with` block: at its end the position moves past the changes that `changes` gave. If an error ends the block, or the
    process dies, the position stays, and the next run reads the same changes again. So every change is read at least once, and exactly
    once if nothing fails. Read the rows inside the block: a range that `changes` gave counts as read.

    Example:
        >>> with table.consumer("dashboard") as c:
        ...     load(c.changes())
    """

    def __init__(self, context: TableContext, stored: StoredPlace, changes: Changes[R]) -> None:
        self._context = context
        self._stored = stored
        self._changes = changes
        self._until: InstantTime | None = None
        """Where the range ends that was asked for since the place was moved; None: nothing was asked for."""
        self._images = False
        self._tried: set[str] = set()
        """Revisions of the place's file that this object has written, perhaps without an answer."""
        self._was_left = False

    def __repr__(self) -> str:
        return f"<Consumer {self.name!r} of {self.uri}, at {shown(self.position)}>"

    @property
    def name(self) -> str:
        """What it is called."""
        return self._stored.place.name

    @property
    def uri(self) -> str:
        """The table's address."""
        return self._context.storage.uri

    @property
    def position(self) -> str | None:
        """How far it has read, as a position of `changes`. None is the beginning."""
        place = self._stored.place.position
        return None if place is None else str(place)

    @hoodie_errors
    def __enter__(self) -> Self:
        if self._was_left:
            self._read_again()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._was_left = True
        if kind is None:
            self.commit()

    def changes(
        self,
        until: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        images: str = ChangeFormat.LATEST_STATE,
        full_scan_fallback: bool = False,
        meta_columns: bool = False,
    ) -> R:
        """The changes after the position, as `HoodieTable.changes` gives them.

        The first call fixes the end of the range. Until the position moves, further calls read the same range, for other columns or
        after an error. `commit` begins the next range. Rows that `where` or a `limit` leave out count as read.

        Args:
            until: where the range ends at the latest, inclusive; never later than the last commit that can be passed safely.
            columns, where, images, full_scan_fallback, meta_columns: as `HoodieTable.changes` takes them.

        Returns:
            What `HoodieTable.changes` returns.

        Raises:
            InstantNotFoundError: the commits after the position were archived or cleaned, or the table was restored to an earlier
                commit. `seek` to a readable instant.
            OptionError: `until` lies before the position, or before the end of the open range.
        """
        end = self._end(until)
        if parse_images(images) is not ChangeFormat.LATEST_STATE:
            self._announce_images()
        since = self.position
        try:
            result = self._changes(
                since,
                end or _NOTHING,
                columns,
                where,
                images=images,
                full_scan_fallback=full_scan_fallback,
                meta_columns=meta_columns,
            )
        except InstantNotFoundError as exc:
            raise InstantNotFoundError(self._lost_position(exc)) from exc
        self._until = end
        return result

    @changes_table
    def commit(self) -> None:
        """Move the position past the changes that `changes` gave, now. The end of a `with` block does so, too.

        Raises:
            CommitConflictError: another process has moved or dropped the consumer since this one read its position. This call did not
                move it.

        Example:
            >>> with table.consumer("dashboard") as c:
            ...     load(c.changes())
            ...     c.commit()
            ...     refresh()  # if it fails, nothing is loaded twice
        """
        if self._until is None:
            return
        if self._until and self._until != self.position:
            self._move(self._until, before_images=self._images)
        self._until, self._images = None, False

    @hoodie_errors
    def lag(self) -> ConsumerLag:
        """How many commits come after the position, and how old the first of them is.

        Returns:
            The lag as of now; changes that were given but not committed count.
        """
        return lag_behind(self._context, self._context.snapshot(), self._stored.place.position)

    @changes_table
    def seek(self, to: Moment) -> None:
        """Move the position at once; the open range of `changes` is dropped.

        Args:
            to: a moment as `HoodieTable.changes(since=…)` takes it; changes after it come next. "earliest" is the beginning, and
                "latest" the last commit that can be passed safely, which also stands for all moments after it.

        Raises:
            InstantNotFoundError: the moment belongs to commits that a restore or a rollback has undone.
            CommitConflictError: as `commit` has it.
        """
        # Also where it stands there already: another process may have moved it since.
        self._move(position_of(self._context, to, name="to"), before_images=self._stored.place.before_images)
        self._until, self._images = None, False

    # -- inside ------------------------------------------------------------------------------------------------------

    def _end(self, until: Moment | None) -> InstantTime:
        """Where the range ends; empty: nothing was committed yet."""
        requested_end, open_end = None, self._until
        if until is not None:
            until = counted(until, lambda: self._context.snapshot().timeline.commits, name="until")
            requested_end = parse_position_option(until, name="until", zone=zone_of(self._context.config.timezone))
        if open_end is None:
            least, what = self._stored.place.position or InstantTime(), "its place, which seek() can move back"
            # Beyond what can be passed there may come rows that nobody would look for any more.
            newest = self._newest() or InstantTime()
            end = newest if requested_end is None else min(requested_end, newest)
        else:
            least, what = open_end, "the end of the open range, which commit() closes"
            end = open_end
        if requested_end is not None and requested_end < least:
            raise OptionError(f"until={requested_end} of consumer {self.name!r} lies before {least}, {what}")
        return end

    def _newest(self) -> InstantTime | None:
        """The last commit that can be passed; the place, where that lies behind it."""
        newest, place = safe_end(self._context), self._stored.place.position
        if newest is None or (place is not None and place > newest):
            return place
        return newest

    def _announce_images(self) -> None:
        """Say in the table that the change feed is read: from now on cleans keep its files."""
        self._images = True
        if not self._stored.place.before_images:
            self._write(self._stored.place.position, before_images=True)

    @changes_table
    def _write(self, position: InstantTime | None, *, before_images: bool) -> None:
        self._move(position, before_images=before_images)

    def _move(self, position: InstantTime | None, *, before_images: bool) -> None:
        place = new_place(self._context, self.name, position, before_images=before_images)
        self._tried.add(place.revision)
        self._stored = move_place(self._context, self._stored, place, ours=self._tried)

    def _read_again(self) -> None:
        stored = read_place(self._context.storage, self.name)
        if stored is None:
            raise OptionError(
                f"there is no consumer {self.name!r} of table {self.uri} any more: table.consumer() makes it"
            )
        self._stored, self._until, self._images, self._was_left = stored, None, False, False

    def _lost_position(self, exc: InstantNotFoundError) -> str:
        return (
            f"consumer {self.name!r} stands at {shown(self.position)} and cannot go on from there: {exc}\n"
            f"It cannot get the changes since then one by one. Call seek({LATEST!r}) and then read the whole table, or seek() "
            "to an instant that can be read from"
        )


@with_hoodie_errors
class TableConsumers(ABC, Generic[R]):
    """The verbs of named consumers."""

    @property
    @abstractmethod
    def uri(self) -> str: ...

    @abstractmethod
    def _at_work(self, options: Mapping[str, str] | None = None) -> tuple[TableContext, WriteOptions]:
        """The table among the writers that the options speak of, and these options."""

    @abstractmethod
    def changes(
        self,
        since: Moment | None = None,
        until: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        images: str = ChangeFormat.LATEST_STATE,
        full_scan_fallback: bool = False,
        meta_columns: bool = False,
    ) -> R: ...

    @changes_table
    def consumer(self, name: str, *, start: Moment = "earliest") -> Consumer[R]:
        """A durable cursor over the changes of the table, which the table keeps under a name. The first use creates it.

        Args:
            name: up to 100 ASCII letters, digits, dots, hyphens and underscores.
            start: where a new one begins: "earliest", "latest", or a moment as `changes(since=…)` takes it. An existing one keeps its
                position.

        Returns:
            The consumer, for a `with` block.

        Raises:
            OptionError: the name or the start cannot be understood.
            InstantNotFoundError: the start belongs to commits that were undone.
            CorruptFileError: the file with its position is damaged.

        Example:
            >>> with table.consumer("dashboard") as c:
            ...     load(c.changes())
        """
        check_name(name)
        context, _ = self._at_work()
        stored = read_place(context.storage, name)
        if stored is None:
            position = position_of(context, start, name="start")
            stored = create_place(context, new_place(context, name, position, before_images=False))
        return Consumer(context, stored, self.changes)

    @hoodie_errors
    def consumers(self) -> list[ConsumerInfo]:
        """The named consumers of the table, by name: how far each has read, when it last moved, and its lag.

        Example:
            >>> {each.name: each.lag.commits for each in table.consumers()}
        """
        context, _ = self._at_work()
        return consumers_of(context, context.snapshot())

    @changes_table
    def drop_consumer(self, name: str) -> None:
        """Drop a named consumer. A new one can be created under the same name.

        Raises:
            OptionError: there is no such consumer.
        """
        check_name(name)
        context, _ = self._at_work()
        there = consumer_names(context.storage)
        if name not in there:
            raise OptionError(f"table {self.uri} has no consumer {name!r}; its consumers: {', '.join(there) or 'none'}")
        drop_place(context, name)


def new_place(context: TableContext, name: str, position: InstantTime | None, *, before_images: bool) -> ConsumerPlace:
    return ConsumerPlace(name, position, before_images, int(context.storage.now_s() * 1000))


def safe_end(context: TableContext) -> InstantTime | None:
    """The position that a pull may reach now; None where there is no commit that it could pass."""
    snapshot = context.snapshot()
    return snapshot.timeline.readable_until(snapshot.pending_writes)


def position_of(context: TableContext, moment: Moment, *, name: str) -> InstantTime | None:
    """The place that a moment stands for; None is the beginning.

    Raises:
        OptionError: it cannot be understood. InstantNotFoundError: it belongs to commits that were taken back.
    """
    snapshot = context.snapshot()
    latest = snapshot.timeline.readable_until(snapshot.pending_writes)
    if isinstance(moment, str) and moment.strip().lower() == LATEST:
        return latest
    position = parse_begin_option(
        counted(moment, lambda: context.snapshot().timeline.commits, name=name),
        name=name,
        zone=zone_of(context.config.timezone),
    )
    if position == BEGINNING or latest is None:
        return None
    refuse_undone(snapshot.active, snapshot.timeline, position, table=context.storage.uri)
    return min(position, latest)
