"""Which rows of which database are meant by an address and the options of a source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hoodie.errors import OptionError
from hoodie.ingestion.database_connections import parse_database
from hoodie.ingestion.databases import DatabaseSource

_OURS = ("table", "query", "column", "strict", "look_back", "driver", "user", "password", "password_file")
_OF_DRIVERS = ("username", "path", "entrypoint")
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


def database_source(kind: str, address: str, options: Mapping[str, str] | None) -> DatabaseSource:
    """The source; docs/INGEST.md has the options. Names with a dot are the driver's.

    Raises:
        OptionError: an option is unknown or missing, or two contradict each other.
    """
    settings = dict(options or {})
    for name in settings:
        if name not in (*_OURS, *_OF_DRIVERS) and "." not in name:
            raise OptionError(
                f"{name!r} is no option of a database as a source; there are {', '.join(_OURS)}, and those of the driver (adbc.…)"
            )
    ours = {name: settings.pop(name) for name in _OURS if name in settings}
    table, query = ours.get("table"), ours.get("query", "").strip().rstrip(";") or None
    database = parse_database(
        address, driver=ours.get("driver"), user=ours.get("user"), password=_password(ours), settings=settings
    )
    if bool(table) == bool(query):
        raise OptionError(
            f"database {database} needs one of the source's options table and query, not {_names_of(ours)}"
        )
    column = ours.get("column")
    strict, look_back = _flag(ours.get("strict", "false")), _amount(ours.get("look_back", "0"))
    if column is None and (strict or look_back):
        raise OptionError(f"strict and look_back of database {database} need column, the one whose values grow")
    if strict and look_back:
        raise OptionError(f"database {database} cannot be read both strict and with look_back: drop one of them")
    return DatabaseSource(database, table or None, query, column, strict, look_back)


def _password(options: Mapping[str, str]) -> str | None:
    if "password_file" not in options:
        return options.get("password")
    path = Path(options["password_file"])
    try:
        return path.read_text().strip()
    except OSError as exc:
        raise OptionError(f"password_file={str(path)!r} cannot be read: {exc.strerror}") from exc


def _flag(text: str) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        raise OptionError(f"strict={text!r} is neither true nor false")
    return text.lower() in _TRUE


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise OptionError(f"look_back={text!r} is no number of seconds, or of the column's own unit")
    return amount


def _names_of(options: Mapping[str, str]) -> str:
    return " and ".join(name for name in ("table", "query") if name in options) or "none"
