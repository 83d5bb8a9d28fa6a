"""Bytes <-> values of every file kind; opens no file and knows no table."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
