"""A small SQLite database that is ingested from."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


class Shop:
    """It has one table, `trips`, whose column `at` grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.uri = f"sqlite:///{path}"
        self.run("CREATE TABLE trips (id INTEGER, at INTEGER, v TEXT, raw BLOB)")

    def run(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(statement, values)

    def insert(self, *rows: tuple[int, int | None]) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executemany("INSERT INTO trips (id, at, v) VALUES (?, ?, 'old')", rows)
