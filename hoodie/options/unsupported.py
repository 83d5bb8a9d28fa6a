"""Features of Apache Hudi that an option asks for and this release lacks: each write or read reports them.

A request is refused where a query would give other rows without it. Where a service of the table would run beside the
rows, it is a warning: the write stands, the service did not run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hoodie.errors import OptionError
from hoodie.options.without_effect import with_reasons

log = logging.getLogger("hoodie")

_HUDI_CLASSES = "org.apache.hudi."
"""Mergers in Apache Hudi's own jar do what the merge mode says, which is held against the table elsewhere."""
_NO = ("", "false", "none")


@dataclass(frozen=True)
class NotDone:
    """One such capability."""

    what: str
    """The rest of a sentence that begins with `not done: `; of a refused one, the whole reason."""
    switches: tuple[str, ...]
    """Options that ask for it unless their value is false, none or empty."""
    details: tuple[str, ...] = ()
    """Options that ask for it by being there, as Apache Hudi does it without a switch; not where a switch says false."""
    refused: bool = False
    reading: bool = False
    """Asked for by a query. Otherwise by a write."""

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.switches, *self.details)

    def asked_by(self, options: Mapping[str, str]) -> list[str]:
        """Those of these options (by their newest names in lower case) that ask for it."""
        texts = {name: options[name.lower()].strip() for name in self.names if name.lower() in options}
        asking = [name for name in self.switches if texts.get(name, "").lower() not in _NO]
        if not asking and any(name in texts for name in self.switches):
            return []
        return asking + [name for name in self.details if name in texts]


NOT_DONE: tuple[NotDone, ...] = (
    NotDone(
        "indexes are built by build_index, or under the lock of a write",
        ("hoodie.metadata.index.async",),
    ),
    NotDone(
        "the column of a secondary index is that of hoodie.metadata.index.secondary.column",
        (),
        ("hoodie.datasource.write.secondarykey.column",),
    ),
    NotDone(
        "no partition index is made in AWS Glue, and no tags; make them there by hand, the registration keeps them",
        ("hoodie.datasource.meta.sync.glue.partition_index_fields.enable",),
        ("hoodie.datasource.meta.sync.glue.resource_tags",),
    ),
    NotDone("no metrics of executors are reported", ("hoodie.metrics.executor.enable",)),
    NotDone("no table service manager is asked", ("hoodie.table.service.manager.enabled",)),
    NotDone("rolled back instants are not kept", ("hoodie.rollback.instant.backup.enabled",)),
    NotDone(
        "a clean takes the partitions that have something to clean, and keeps to no list of them",
        ("hoodie.clean.partition.filter.regex", "hoodie.clean.partition.filter.selected"),
        refused=True,
    ),
    NotDone(
        "validators of rows that are about to be written are not run; hoodie.precommit.validators checks commits by SQL",
        ("hoodie.prewrite.validators",),
        refused=True,
    ),
    NotDone(
        "rows that cannot be written are not put into another table, the write fails",
        ("hoodie.errortable.enable",),
        refused=True,
    ),
    NotDone("the column _hoodie_operation is not written", ("hoodie.allow.operation.metadata.field",), refused=True),
    NotDone(
        "columns are never dropped", ("hoodie.datasource.write.schema.allow.auto.evolution.column.drop",), refused=True
    ),
    NotDone(
        "there is no metaserver; the timeline is in the table's folder", ("hoodie.metaserver.enabled",), refused=True
    ),
    NotDone(
        "records are not merged by that mode; hoodie.python.upsert.partial, or a payload class, says which columns count",
        ("hoodie.table.partial.update.mode",),
        refused=True,
    ),
    NotDone(
        "mergers written in Java are not run; hoodie.register_merger takes one in Python",
        ("hoodie.write.record.merge.custom.implementation.classes",),
        refused=True,
    ),
    NotDone(
        "files are not chosen by a path; use the option where",
        (
            *("hoodie.datasource.read.incr.path.glob", "hoodie.datasource.read.paths"),
            *("hoodie.datasource.read.incr.filters",),
        ),
        refused=True,
        reading=True,
    ),
    NotDone(
        "partition columns are read from the files, where they have the type that was written",
        ("hoodie.datasource.read.extract.partition.values.from.path",),
        refused=True,
        reading=True,
    ),
    NotDone(
        "the columns are those of the table now",
        ("hoodie.datasource.read.schema.use.end.instanttime",),
        refused=True,
        reading=True,
    ),
    NotDone(
        "rows are all that a query gives; the table's history() and files() tell of commits and files",
        (
            "hoodie.datasource.read.create.filesystem.relation",
            "hoodie.datasource.read.table.valued.function.timeline.relation",
        ),
        refused=True,
        reading=True,
    ),
)


def not_done(options: Mapping[str, tuple[str, str]], *, reading: bool) -> tuple[str, ...]:
    """A sentence for each thing that the options ask for and that is not done.

    `options`: newest name in lower case -> name and text as set.
    """
    return tuple(
        f"{each.what} ({', '.join(options[name.lower()][0] for name in asking)})"
        for each, asking in _asking(options, reading=reading)
        if not each.refused
    )


def refusals(options: Mapping[str, tuple[str, str]], *, reading: bool) -> list[OptionError]:
    """An error for each that would change what a query gives."""
    result = []
    for each, asking in _asking(options, reading=reading):
        if each.refused:
            settings = " and ".join(f"{options[name.lower()][0]}={options[name.lower()][1]!r}" for name in asking)
            result.append(OptionError(f"option {settings} is not supported by this release: {each.what}"))
    return result


def _asking(options: Mapping[str, tuple[str, str]], *, reading: bool) -> Iterator[tuple[NotDone, list[str]]]:
    """Everything that the options ask for and that is not done, with the options that do."""
    texts = {name: text for name, (_, text) in options.items()}
    for each in NOT_DONE:
        asking = each.asked_by(texts) if each.reading is reading else []
        asking = [name for name in asking if not _only_hudi_mergers(name, texts[name.lower()])]
        if asking:
            yield each, asking


def warn(ignored: Sequence[str], notes: Sequence[str] = ()) -> None:
    """One line for all options of Apache Hudi that have no effect and why, one for what was asked for and is not done.

    Names only: values may be secrets.
    """
    if ignored:
        log.warning("options of Apache Hudi that have no effect here: %s", with_reasons(ignored))
    if notes:
        log.warning("asked for by options of Apache Hudi, and not done: %s", "; ".join(notes))


def names_not_done(*, reading: bool) -> frozenset[str]:
    """Names in lower case of all options that ask for one of them."""
    return frozenset(name.lower() for each in NOT_DONE if each.reading is reading for name in each.names)


def _only_hudi_mergers(name: str, text: str) -> bool:
    return name.endswith("custom.implementation.classes") and all(
        part.strip().startswith(_HUDI_CLASSES) for part in text.split(",")
    )
