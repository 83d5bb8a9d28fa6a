"""What undoes writes: rollback, restore, and recovery from what dead processes left."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
