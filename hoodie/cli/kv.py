"""The commands `kv get`, `kv scan`, `kv check` and `kv stats`: key-value stores for people."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import islice

from hoodie.cli.arguments import Commands, add_options, table_path
from hoodie.cli.report import Report, format_pairs, format_table
from hoodie.errors import OptionError
from hoodie.kv.binary import listed
from hoodie.kv.settings import StoreOptions
from hoodie.kv.store import KeyValueStore, open_at
from hoodie.storage.uri import open_storage

DONE, FAILED = 0, 1
_LIMIT = 20
_SHOWN = 60


def register(to: Commands) -> None:
    text = "look into a key-value store"
    commands = to.add_parser("kv", help=text, description=text).add_subparsers(metavar="COMMAND", required=True)
    get = _added(commands, "get", "the value of a key in data files; exit status 1 if there is none", _get)
    get.add_argument("key", metavar="KEY", help="as text, or as 0x and hexadecimal digits")
    get.add_argument("--bucket", metavar="N", type=int, help="where it is (default: by its hash)")
    scan = _added(commands, "scan", "rows in the order of their keys", _scan)
    scan.add_argument("--bucket", metavar="N", type=int, help="of one bucket (default: of all, one after the other)")
    scan.add_argument("--start", metavar="KEY", help="from this key on")
    scan.add_argument("--stop", metavar="KEY", help="before this key")
    scan.add_argument("--prefix", metavar="KEY", help="keys with this prefix")
    scan.add_argument(
        "--limit", metavar="N", type=int, default=_LIMIT, help=f"at most so many rows (default {_LIMIT}; 0: all)"
    )
    check = _added(commands, "check", "check that files and logs are whole; exit status 1 if one is not", _check)
    check.add_argument("--rows", action="store_true", help="read every row, too")
    _added(commands, "stats", "buckets, files, keys and bytes", _stats)


def _added(to: Commands, name: str, text: str, command: object) -> argparse.ArgumentParser:
    added = to.add_parser(name, help=text, description=text)
    added.add_argument("path", metavar="PATH", type=table_path, help="the store's folder, or its URI")
    add_options(added)
    added.set_defaults(alone=_run, kv_command=command)
    return added


def _run(args: argparse.Namespace, options: Mapping[str, str], reached_by: Mapping[str, str]) -> int:
    """Raises: TableNotFoundError: there is no store."""

    def below(folder: str) -> object:
        return open_storage(f"{args.path.rstrip('/')}/{folder}" if folder else args.path, reached_by)

    report: Report = args.kv_command(open_at(below, StoreOptions(), create=False), args)
    print(report.text(as_json=args.json), flush=True)
    return FAILED if report.failed else DONE


def _get(store: KeyValueStore, args: argparse.Namespace) -> Report:
    key = _key(args.key)
    bucket = store.bucket_of(key) if args.bucket is None else args.bucket
    value = store.reader(bucket).get(key)
    data = {"key": _text_or_hex(key), "bucket": bucket, "value": None if value is None else _text_or_hex(value)}
    return Report(data, ("(none)" if value is None else _text_or_hex(value),), failed=value is None)


def _scan(store: KeyValueStore, args: argparse.Namespace) -> Report:
    bounds = {
        name: None if (text := getattr(args, name)) is None else _key(text) for name in ("start", "stop", "prefix")
    }
    buckets = range(store.buckets) if args.bucket is None else [args.bucket]
    rows = (
        (bucket, key, value)
        for bucket in buckets
        for batch in store.reader(bucket, max_age_s=None).scan(bounds["start"], bounds["stop"], prefix=bounds["prefix"])
        for key, value in zip(listed(batch["key"]), listed(batch["value"]), strict=True)
    )
    entries = list(islice(rows, args.limit or None))
    data = [
        {"bucket": bucket, "key": _text_or_hex(key), "value": _text_or_hex(value)} for bucket, key, value in entries
    ]
    lines = format_table(
        ("bucket", "key", "value"),
        [(bucket, _cut(_text_or_hex(key)), _cut(_text_or_hex(value))) for bucket, key, value in entries],
    )
    return Report({"rows": data}, tuple(lines) if entries else ("no rows",))


def _check(store: KeyValueStore, args: argparse.Namespace) -> Report:
    buckets = store.check(rows=args.rows)
    bad = [each for each in buckets if each.problem]
    names = ("bucket", "window", "files", "entries", "problem")
    rows = [
        [each.bucket, "-" if each.window is None else each.window, *each[2:4], each.problem or "-"] for each in buckets
    ]
    end = f"{len(bad)} of {len(buckets)} buckets are damaged" if bad else f"all {len(buckets)} buckets are whole"
    data = {"uri": store.uri, "whole": not bad, "buckets": [each._asdict() for each in buckets]}
    return Report(data, (*format_table(names, rows), "", end), failed=bool(bad))


def _stats(store: KeyValueStore, args: argparse.Namespace) -> Report:
    rows = []
    for bucket in range(store.buckets):
        files = store.manifest(bucket).files
        rows.append(
            {
                "bucket": bucket,
                "window": store.reader(bucket).window,
                "files": len(files),
                "runs": len({file.run for file in files}),
                "entries": sum(file.entries for file in files),
                "bytes": sum(file.size_bytes for file in files),
            }
        )
    data = {"uri": store.uri, "file_format": store.file_format, "order": store.order, "buckets": rows}
    names = ("bucket", "window", "files", "runs", "entries", "bytes")
    table = [["-" if row[name] is None else row[name] for name in names] for row in rows]
    head = format_pairs([("store", store.uri), ("file format", store.file_format), ("order of keys", store.order)])
    return Report(data, (*head, "", *format_table(names, table)))


def _key(text: str) -> bytes:
    if not text.startswith("0x"):
        return text.encode()
    try:
        return bytes.fromhex(text[2:])
    except ValueError as exc:
        raise OptionError(f"key {text!r} is not hexadecimal after 0x: {exc}") from exc


def _text_or_hex(data: bytes) -> str:
    """Text where it is such, else hexadecimal digits."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() and not text.startswith("0x") else f"0x{data.hex()}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
