"""Files under one root: local disk, memory, and a wrapper that makes either fail on purpose."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
