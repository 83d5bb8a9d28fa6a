"""Memory that allocators keep for later goes back to the operating system.

They keep what was freed because getting it anew costs time, a few hundredths of what the work on it costs. That is worth it where a
task is large and its peak is what counts: a file group of 1 GB left 300 MB behind in its worker.
"""

from __future__ import annotations

import mmap
from typing import IO
from weakref import WeakSet

import pyarrow as pa

_MAPS: WeakSet[mmap.mmap] = WeakSet()


def mapped_file(file: IO[bytes]) -> mmap.mmap:
    """The bytes of a file, which are read when they are looked at and let go by `release_maps`."""
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _MAPS.add(pages)
    return pages


def release_maps() -> None:
    """Let the pages go that were read of mapped files; who needs one again finds it, mostly in the system's cache.

    The system takes them itself where memory is short, but until then they count as memory of the process.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        for pages in list(_MAPS):
            pages.madvise(mmap.MADV_DONTNEED)


def release_unused_memory() -> None:
    """Return what Arrow's pool and the C library hold and nobody uses."""
    pa.default_memory_pool().release_unused()
    # This pool is the C library, which keeps freed blocks of up to 32 MB: footers have filters of that size.
    pa.system_memory_pool().release_unused()
