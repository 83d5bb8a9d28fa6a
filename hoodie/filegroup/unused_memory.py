"""Memory that allocators keep for later goes back to the operating system.

They keep what was freed because getting it anew costs time, a few hundredths of what the work on it costs. That is worth it where a
task is large and its peak is what counts: a file group of 1 GB left 300 MB behind in its worker.
"""

from __future__ import annotations

import pyarrow as pa


def release_unused_memory() -> None:
    """Return what Arrow's pool and the C library hold and nobody uses."""
    pa.default_memory_pool().release_unused()
    # This pool is the C library, which keeps freed blocks of up to 32 MB: footers have filters of that size.
    pa.system_memory_pool().release_unused()
