"""The page of what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]

_HEAD = """# The key-value store: figures

Made by `python -m benchmarks.key_values.run` on {made}.
Machine: {machine}, one disk.

Keys have 16 bytes, values 1,000 random bytes unless a table says otherwise. "Keys a core" is keys for each second of
CPU time, of all threads of the process. A window ends when its rows are on storage (`fsync`, on HDFS `hflush`). It has
as many keys as come in so many seconds at 110,000 a second; they are put as fast as the store takes them. Time to make
the data does not count.
"""


def page(lines: Sequence[Line], *, made: str, machine: str) -> str:
    parts = [_HEAD.format(made=made, machine=machine)]
    for part, table in (("hdht", _hdht), ("beside", _beside), ("s3", _s3), ("growth", _growth)):
        some = [line for line in lines if line["part"] == part]
        if some:
            parts.append("\n".join(table(some)) + "\n")
    return "\n".join(parts)


def _hdht(lines: Sequence[Line]) -> Iterator[str]:
    yield "## The rows of HDHT's table\n"
    yield "HDHT reports 27,000 to 110,000 keys a second for a partition on a cluster. Here one process writes one bucket. In"
    yield '"ranges", as in HDHT\'s own benchmark, keys are random out of 10,000, and after 500,000 puts out of 10,000 others.'
    yield '"Read, change, write" looks each key up first. Keys come and are asked for in Arrow arrays of 5,000.\n'
    yield "| place | work | keys | window | windows | keys/s | keys a core | bytes to disk for each byte put |"
    yield "|---|---|---|---|---|---|---|---|"
    for line in lines:
        told, found = line["told"], line["found"]
        work = "read, change, write" if told["reads"] else "write"
        written = f"{found['written'] / found['put']:.1f}" if told["place"] == "disk" else ""
        yield (
            f"| {told['place']} | {work} | {told['keys_come']} | {told['window_s']:g} s | {found['windows']} "
            f"| {_rate(found, 'wall_s')} | {_rate(found, 'cpu_s')} | {written} |"
        )


def _beside(lines: Sequence[Line]) -> Iterator[str]:
    told = lines[0]["told"]
    yield "## Beside others on a disk\n"
    yield f"{told['keys']:,} keys are loaded in order, {told['more']:,} random ones are put again, as many are looked up and put"
    yield "again, all in batches of 5,000 and windows of half a second; then single puts. Gets are of random keys after the store was"
    yield "opened anew and its files were dropped from the system's cache: the first get of each, and a second one.\n"
    yield from _table(lines)
    yield ""
    yield "RocksDB has filters and a cache of 192 MB as we have, LMDB maps its file, SQLite has a cache of as much. None of them"
    yield "lies on HDFS or an object store. RocksDB's wrapper gives rows of a scan one by one; ours come as Arrow batches."


def _s3(lines: Sequence[Line]) -> Iterator[str]:
    told = lines[0]["told"]
    yield "## Beside SlateDB on S3\n"
    yield f"The same with {told['keys']:,} and {told['more']:,} keys on an S3 server of the same machine (versitygw).\n"
    yield from _table(lines)


def _table(lines: Sequence[Line]) -> Iterator[str]:
    yield "| | " + " | ".join(line["store"] for line in lines) + " |"
    yield "|---|" + "---|" * len(lines)
    rates = (
        ("load", "load, in order"),
        ("overwrite", "put again"),
        ("change", "look up and put"),
        ("single", "single puts"),
    )
    for case, name in rates:
        yield f"| {name}, keys a core | " + " | ".join(_rate(line["found"][case], "cpu_s") for line in lines) + " |"
        yield f"| {name}, keys/s | " + " | ".join(_rate(line["found"][case], "wall_s") for line in lines) + " |"
    for which, name in (("uncached_us", "first get"), ("cached_us", "second get")):
        found = [line["found"]["get"][which] for line in lines]
        yield (
            f"| {name}, µs: half below / 99 % below | "
            + " | ".join(f"{p50:,.0f} / {p99:,.0f}" for p50, p99 in found)
            + " |"
        )
    yield "| scan, keys a core | " + " | ".join(_rate(line["found"]["scan"], "cpu_s") for line in lines) + " |"
    cases = ("load", "overwrite", "change")
    ratios = [
        sum(line["found"][case]["written"] for case in cases) / sum(line["found"][case]["put"] for case in cases)
        for line in lines
    ]
    if all(line["found"]["size"] is not None for line in lines):
        yield "| bytes to disk for each byte put | " + " | ".join(f"{ratio:.1f}" for ratio in ratios) + " |"
        yield "| MB on disk at the end | " + " | ".join(f"{line['found']['size'] / 1e6:,.0f}" for line in lines) + " |"
    yield "| most memory, MB | " + " | ".join(f"{line['found']['change']['memory_mb']:,.0f}" for line in lines) + " |"


def _growth(lines: Sequence[Line]) -> Iterator[str]:
    yield "## As a store grows\n"
    size = lines[0]["told"]["value_bytes"]
    yield f"Keys in no order, values of {size} bytes, in batches of 5,000 and windows of half a second. Each row tells of"
    yield "the step up to so many keys. hoodie is told to keep files that were merged for five seconds instead of ten"
    yield "minutes.\n"
    yield "| keys | store | keys/s | keys a core | first get, µs | bytes to disk for each byte put | MB on disk | most memory, MB |"
    yield "|---|---|---|---|---|---|---|---|"
    for line in sorted(lines, key=lambda line: line["found"]["stop"]):
        found = line["found"]
        yield (
            f"| {found['stop']:,} | {line['store']} | {_rate(found, 'wall_s')} | {_rate(found, 'cpu_s')} "
            f"| {found['uncached_us'][0]:,.0f} | {found['written'] / found['put']:.1f} | {found['size'] / 1e6:,.0f} "
            f"| {found['memory_mb']:,.0f} |"
        )


def _rate(found: Mapping[str, Any], by: str) -> str:
    return f"{round(found['keys'] / found[by], -2):,.0f}"
