"""Who may write, and who still lives: the lock of a table and the marks of its writers."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
