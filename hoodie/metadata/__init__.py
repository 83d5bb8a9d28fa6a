"""The metadata table of Apache Hudi: partitions, files, bounds, bloom filters and places of keys, without a listing."""

from typing import TYPE_CHECKING

from hoodie.model.late import late

if not TYPE_CHECKING:
    __getattr__ = late(__name__)
