"""What finds damage of a table, and mends it."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
