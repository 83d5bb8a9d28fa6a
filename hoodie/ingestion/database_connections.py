"""A database that an address names, and its connection by ADBC. Errors name the database, never its password."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

import pyarrow as pa

from hoodie.errors import HoodieError, OptionError

POSTGRESQL, SQLITE = "postgresql", "sqlite"
_DRIVERS = {
    POSTGRESQL: "adbc_driver_postgresql",
    "postgres": "adbc_driver_postgresql",
    SQLITE: "adbc_driver_sqlite",
    "snowflake": "adbc_driver_snowflake",
    "grpc": "adbc_driver_flightsql",
    "grpc+tls": "adbc_driver_flightsql",
    "bigquery": "adbc_driver_bigquery",
    **{name: name for name in ("clickhouse", "databricks", "mssql", "mysql", "redshift", "trino")},
}
"""Scheme of an address -> the package on PyPI that has its driver, or the name that ADBC's driver manager knows it by."""
_JDBC = "jdbc:"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")


@dataclass(frozen=True)
class Database:
    """Where the rows are."""

    uri: str = field(repr=False)
    scheme: str
    driver: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the driver by their own names."""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """The address without user, password and parameters."""
        if self.scheme == SQLITE:
            return self.uri
        parts = urlsplit(self.uri)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}" if host else self.scheme

    @contextmanager
    def connected(self, purpose: str) -> Iterator[Any]:
        """A connection whose statements are one transaction, which is rolled back at the end: nothing is written.

        Raises:
            OptionError: there is no driver, or the database does not understand what it is asked.
            HoodieError: it is not reached, or it fails.
        """
        try:
            from adbc_driver_manager import dbapi  # noqa: PLC0415 - an extra
        except ModuleNotFoundError:
            raise OptionError(
                f"reading {purpose} of {self} needs adbc-driver-manager, which is not installed\n"
                "  fix:     pip install 'hoodie[databases]', and the driver of the database, such as adbc-driver-postgresql"
            ) from None
        try:
            with dbapi.connect(**self._arguments()) as connection:
                yield connection
        except (dbapi.Error, OSError, pa.ArrowException) as exc:
            if isinstance(exc, HoodieError):
                raise
            kind = OptionError if isinstance(exc, dbapi.ProgrammingError) else HoodieError
            text = self._without_secrets(str(exc))
            raise kind(f"{purpose} of database {self} cannot be read: {text.strip()}") from (
                exc if text == str(exc) else None
            )

    def _arguments(self) -> dict[str, Any]:
        uri = self._sqlite_uri() if self.scheme == SQLITE else self.uri
        return {"driver": _driver_path(self.driver), "uri": uri, "db_kwargs": dict(self.settings)}

    def _sqlite_uri(self) -> str:
        """Read only, so that a file that is not there is not made."""
        path = Path(unquote(self.uri.partition(":")[2]).removeprefix("///"))
        if not path.is_file():
            raise OptionError(
                f"database {self} is no file: give sqlite:///relative/path.db, or sqlite:////absolute/path.db"
            )
        return f"{path.absolute().as_uri()}?mode=ro"

    def _without_secrets(self, message: str) -> str:
        for secret in sorted(self.secrets, key=len, reverse=True):
            message = message.replace(secret, "***")
        return message


def is_database(address: str) -> bool:
    """Whether it names a database that is known by its scheme."""
    return address.startswith(_JDBC) or _scheme(address) in _DRIVERS


def parse_database(
    address: str, *, driver: str | None, user: str | None, password: str | None, settings: Mapping[str, str]
) -> Database:
    """The database of an address such as `postgresql://host/db`, with or without `jdbc:` before it.

    Raises:
        OptionError: no driver is known for it.
    """
    uri = address.removeprefix(_JDBC)
    scheme = _scheme(uri)
    if not scheme:
        raise OptionError(
            "the address of a database begins with its kind: postgresql://host/name, sqlite:///path.db; found none"
        )
    chosen = driver or _DRIVERS.get(scheme, scheme)
    scheme = POSTGRESQL if scheme == "postgres" else scheme
    if scheme == SQLITE and not uri.startswith("sqlite:///"):
        uri = f"sqlite:///{uri.partition(':')[2]}"  # as JDBC has it
    settings = dict(settings)
    secrets = {password or "", *_secrets(uri)}
    if scheme == POSTGRESQL:
        uri = _with_user(uri, user, password)
    elif scheme != SQLITE:  # which knows no users
        settings.update({k: v for k, v in (("username", user), ("password", password)) if v is not None})
    secrets |= {quote(each, safe="") for each in secrets} | {unquote(each) for each in secrets}
    return Database(uri, scheme, chosen, settings, tuple(secrets - {""}))


def _scheme(address: str) -> str:
    match = _SCHEME.match(address)
    return match[0].lower() if match else ""


def _secrets(uri: str) -> Iterator[str]:
    """The passwords in an address."""
    parts = urlsplit(uri)
    user, _, host = parts.netloc.rpartition("@")
    if host:
        yield user.partition(":")[2]
    yield from (value for name, value in parse_qsl(parts.query) if "pass" in name.lower())


def _with_user(uri: str, user: str | None, password: str | None) -> str:
    """PostgreSQL's driver takes them in the address only."""
    if user is None and password is None:
        return uri
    parts = urlsplit(uri)
    credentials, _, host = parts.netloc.rpartition("@")
    name, colon, word = credentials.partition(":")
    name = name if user is None else quote(user, safe="")
    word = f"{colon}{word}" if password is None else f":{quote(password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{name}{word}@{host}"))


def _driver_path(driver: str) -> str:
    """The library of a package of PyPI; another name or path is the driver manager's to find."""
    if not driver.startswith("adbc_driver_"):
        return driver
    try:
        return str(importlib.import_module(driver)._driver_path())
    except ModuleNotFoundError:
        package = driver.replace("_", "-")
        raise OptionError(f"the driver {package} is not installed\n  fix:     pip install {package}") from None
