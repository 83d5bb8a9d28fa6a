"""Tables of other formats become Hudi tables: `hoodie.migrate`."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
