"""Rows from elsewhere into a table, round by round, each row once: `hoodie.ingest`."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
