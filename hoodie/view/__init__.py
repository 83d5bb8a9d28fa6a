"""An open table, and its files as one timeline sees them: groups and slices, folded from that and a listing."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
