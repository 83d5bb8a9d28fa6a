"""Table services: each is planned on the timeline and run, after a write or in rounds."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
