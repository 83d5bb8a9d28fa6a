"""The page itself: HTML without a script, with everything in it. Every text is escaped: names come from files of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from html import escape
from importlib.resources import files
from itertools import pairwise

from hoodie.model.results import format_count, format_size
from hoodie.page.facts import SERVICES, SIZE_STEPS_MB, Lane, Mark, PartitionFacts, TableFacts
from hoodie.page.picture import class_of, commit_bars, timeline_picture

PARTITIONS_SHOWN = 100
INSTANTS_SHOWN = 50
SAFE = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for it: nothing."""


def page(facts: TableFacts) -> str:
    """The whole document."""
    style = files("hoodie.page").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{SAFE}">'
        f"<title>{_text(facts.name)}: Hoodie table</title><style>{style}</style></head><body>"
        f"{_header(facts)}<main>{''.join(_sections(facts))}</main>"
        f"<footer>Times are of the table's time zone, {_text(facts.zone)}. Made {_moment(facts.now)}.</footer></body></html>"
    )


def _header(facts: TableFacts) -> str:
    pairs = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.pairs)
    return (
        f'<header><p class="kind">{_text(facts.kind)}</p><h1>{_text(facts.name)}</h1><p class="uri">{_text(facts.uri)}</p>'
        f'<dl class="pairs">{pairs}</dl></header>'
    )


def _sections(facts: TableFacts) -> Iterable[str]:
    yield _section("Now", _tiles(facts))
    yield _section("Timeline", _timeline(facts))
    if facts.pending:
        yield _section("Pending", _pending(facts))
    if facts.consumers:
        yield _section("Consumers", _consumers(facts))
    if facts.written_bytes:
        legend = _legend(mark for mark in facts.marks if mark.bytes_written)
        yield _section("Written by each commit", legend + _wide(*commit_bars(facts.marks)) + _amplification(facts))
    yield _section("Partitions", _partitions(facts))
    yield _section("Sizes of file slices", _sizes(facts))


def _section(title: str, content: str) -> str:
    name = title.lower().replace(" ", "-")
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{content}</section>'


def _tiles(facts: TableFacts) -> str:
    latest = facts.writes[-1] if facts.writes else None
    amplification = facts.write_amplification
    tiles = [
        ("Latest write", _age(facts.now - latest.began) if latest else "none", _moment(latest.began) if latest else ""),
        ("Size", format_size(facts.base_bytes + facts.log_bytes), f"of it {format_size(facts.log_bytes)} in logs"),
        (
            "File groups",
            f"{facts.file_groups:,}",
            f"in {format_count(len(facts.partitions), 'partition')}; {facts.slices_with_logs:,} with logs",
        ),
        (
            "Writes on the timeline",
            f"{len(facts.writes):,}",
            f"since {_moment(facts.marks[0].began)}" if facts.marks else "",
        ),
        ("Pending", f"{len(facts.pending):,}", _oldest(facts)),
        (
            "Write amplification",
            f"{amplification:.1f} ×" if amplification else "none",
            "bytes written for each byte of changed rows",
        ),
    ]
    if facts.consumers:
        tiles.append(("Consumers", f"{len(facts.consumers):,}", _furthest_behind(facts)))
    return '<ul class="tiles">' + "".join(map(_tile, tiles)) + "</ul>"


def _tile(tile: tuple[str, str, str]) -> str:
    name, value, note = tile
    return f'<li><span class="name">{_text(name)}</span><strong>{_text(value)}</strong><span>{_text(note)}</span></li>'


def _oldest(facts: TableFacts) -> str:
    return f"oldest {_age(facts.now - facts.pending[0].began)}" if facts.pending else ""


def _timeline(facts: TableFacts) -> str:
    if not facts.marks:
        return "<p>Nothing was written yet.</p>"
    marks = facts.marks[-INSTANTS_SHOWN:]
    rows = [
        (
            mark.instant.time,
            mark.operation,
            str(mark.instant.state),
            f"{mark.inserted:,}",
            f"{mark.updated:,}",
            f"{mark.deleted:,}",
            format_size(mark.bytes_written) if mark.files else "",
        )
        for mark in reversed(marks)
    ]
    header = ("instant", "what", "state", "inserted", "updated", "deleted", "written")
    newest = "" if len(marks) == len(facts.marks) else f", the newest of {len(facts.marks):,}"
    title = f"{format_count(len(marks), 'instant')}{newest}"
    return (
        f"<p>{_text(_spread(facts))} The larger a mark, the more was written; a ring is not completed.</p>"
        f"{_legend(facts.marks, 'legend lanes')}{_wide(timeline_picture(facts.marks))}"
        f"<details><summary>{title}, as a table</summary>{_table(title, header, rows, numbers=3)}</details>"
    )


def _spread(facts: TableFacts) -> str:
    counts = [(lane, sum(1 for mark in facts.marks if mark.lane is lane)) for lane in Lane]
    return ", ".join(f"{lane.value.lower()}: {count:,}" for lane, count in counts if count).capitalize() + "."


def _pending(facts: TableFacts) -> str:
    rows = [
        (
            str(each.instant),
            _age(facts.now - each.began),
            "" if each.file_groups is None else f"{each.file_groups:,}",
            _Words(each.text),
        )
        for each in facts.pending
    ]
    return _table(
        format_count(len(rows), "pending instant"),
        ("instant", "age", "file groups", "next step"),
        rows,
        numbers=99,
    )


def _furthest_behind(facts: TableFacts) -> str:
    behind = [each.lag.commits for each in facts.consumers if each.lag.commits]
    return f"{len(behind):,} behind, by up to {format_count(max(behind), 'commit')}" if behind else "up to date"


def _consumers(facts: TableFacts) -> str:
    ordered = sorted(facts.consumers, key=lambda each: (-each.lag.commits, each.name))
    most = max(each.lag.commits for each in ordered)
    rows = [
        (
            each.name,
            f"{each.lag.commits:,}",
            _age(timedelta(seconds=each.lag.seconds)) if each.lag.commits else "up to date",
            each.position or "(beginning)",
            _age(facts.now - each.moved),
            _Bar(each.lag.commits / most if most else 0, 0),
        )
        for each in ordered
    ]
    header = ("consumer", "commits behind", "oldest of them", "has read up to", "moved", "by commits")
    return _table(f"{format_count(len(rows), 'named consumer')}, the furthest behind first", header, rows, numbers=1)


def _legend(marks: Iterable[Mark], kind: str = "legend") -> str:
    there = {mark.lane for mark in marks}
    items = "".join(
        f'<li><span class="dot {class_of(lane)}"></span>{_text(lane.value)}</li>' for lane in Lane if lane in there
    )
    return f'<ul class="{kind}">{items}</ul>'


def _amplification(facts: TableFacts) -> str:
    changed = sum(mark.changed_bytes for mark in facts.marks)
    if not changed:
        return ""
    served = sum(mark.bytes_written for mark in facts.marks if mark.lane in SERVICES)
    writes = facts.written_bytes - served
    return (
        f"<p>Changed rows took {format_size(round(changed))}. To bring them in, writes wrote {format_size(writes)}, "
        f"compaction and clustering {format_size(served)}.</p>"
    )


def _partitions(facts: TableFacts) -> str:
    ordered = sorted(facts.partitions, key=lambda each: (-_bytes(each), each.path))
    most = max(map(_bytes, ordered), default=0)
    largest = ordered[:PARTITIONS_SHOWN]
    rows = [
        (
            each.path or "(root)",
            f"{each.file_groups:,}",
            format_size(each.base_bytes),
            f"{each.log_files:,}",
            format_size(each.log_bytes),
            _Bar(each.base_bytes / most if most else 0, each.log_bytes / most if most else 0),
        )
        for each in largest
    ]
    smaller = ordered[PARTITIONS_SHOWN:]
    more = (
        f"<p>{format_count(len(smaller), 'smaller partition')} with {format_size(sum(map(_bytes, smaller)))} not shown.</p>"
        if smaller
        else ""
    )
    header = ("partition", "file groups", "base files", "logs", "log bytes", "both, by size")
    title = f"{format_count(len(ordered), 'partition')}, the largest first"
    return _table(title, header, rows, numbers=1) + more


class _Bar:
    """A cell that shows two shares of the widest."""

    def __init__(self, base: float, logs: float) -> None:
        self._base, self._logs = base, logs

    def html(self) -> str:
        return (
            '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="writes" x="0" y="0" width="{100 * self._base:.1f}" height="10"/>'
            f'<rect class="compaction" x="{100 * self._base:.1f}" y="0" width="{100 * self._logs:.1f}" height="10"/></svg>'
        )


class _Words:
    """A cell of words in which commands stand between backticks."""

    def __init__(self, text: str) -> None:
        self._text = text

    def html(self) -> str:
        parts = _text(self._text).split("`")
        return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def _bytes(partition: PartitionFacts) -> int:
    return partition.base_bytes + partition.log_bytes


def _sizes(facts: TableFacts) -> str:
    most = max((*facts.sizes, 1))
    names = [f"below {SIZE_STEPS_MB[0]} MiB"]
    names += [f"{low} to {high} MiB" for low, high in pairwise(SIZE_STEPS_MB)]
    names.append(f"{SIZE_STEPS_MB[-1]} MiB and more")
    rows = [(name, f"{count:,}", _Bar(count / most, 0)) for name, count in zip(names, facts.sizes, strict=True)]
    most_logs = f"<p>The most log files of one slice: {facts.most_logs:,}.</p>" if facts.most_logs else ""
    return _table("base file and logs of a slice together", ("size", "slices", ""), rows, numbers=1) + most_logs


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: int) -> str:
    """`numbers`: the column from which on cells stand to the right."""
    head = "".join(f'<th scope="col"{_side(at, numbers)}>{_text(name)}</th>' for at, name in enumerate(header))
    lines = "".join(
        "<tr>" + "".join(f"<td{_side(at, numbers)}>{_cell(cell)}</td>" for at, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scrolls" tabindex="0" role="region" aria-label="{_text(title)}"><table><caption>{_text(title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _side(at: int, numbers: int) -> str:
    return ' class="number"' if at >= numbers else ""


def _wide(picture: str, scale: str = "") -> str:
    """A picture that scrolls where the screen is narrow, which it says there; `scale` stays beside it."""
    scrolls = f'<div class="scrolls newest" tabindex="0" role="region" aria-label="picture"><div class="picture">{picture}</div></div>'
    beside = f'<div class="scaled"><div class="beside">{scale}</div>{scrolls}</div>' if scale else scrolls
    return f'{beside}<p class="hint">Scroll the picture sideways for older ones.</p>'


def _cell(value: object) -> str:
    return value.html() if isinstance(value, _Bar | _Words) else _text(value)


def _age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{format_count(seconds // length, unit)} ago"
    return f"{format_count(seconds, 'second')} ago"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _text(value: object) -> str:
    return escape(str(value))
