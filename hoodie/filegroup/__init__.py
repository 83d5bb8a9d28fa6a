"""One file slice, one task at a time: merge, read, write and compact it."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
