"""Undoes writes: rollback, restore, and recovery from dead processes."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
