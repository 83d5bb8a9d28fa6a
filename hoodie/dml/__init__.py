"""SQL without Spark: DuckDB gives expressions and joins their meaning, one write makes one commit of what they change."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
