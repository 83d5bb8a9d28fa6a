"""Sizes and durations that limit units of work: chosen by measurement, the same for every table, and no options of users.

They are one value, handed down from the open table to its plans and tasks, so that a test brings its own and patches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

_MB = 1024 * 1024


@dataclass(frozen=True)
class Tuning:
    chunk_bytes: int = 128 * _MB
    """Rows of a batch are cut into chunks of about this size, so that a worker holds no more of it than that at once."""
    append_bytes: int = 64 * _MB
    """Of rows that one task writes into a log: a hot file group takes several tasks."""
    cheap_bytes: int = 128 * 1024
    """Rewriting a file of this size takes a few milliseconds, hardly more than starting one does. Without it a table that gets a few
    new rows a minute got a file for them each time. Its footer is larger than they are, and each later write looks into all files."""
    encoded_bytes: int = 256 * 1024
    """Texts of smaller base files are not carried over as dictionary arrays: that takes longer than making dictionaries anew."""
    feed_bytes: int = 32 * _MB
    """Loads: rows are prepared in parts of about this size."""
    held_bytes: int = 128 * _MB
    """Loads: Arrow bytes that a worker holds back while it waits for more of the same partition."""
    worth_bytes: int = 8 * _MB
    """Loads: Arrow bytes of a partition that are worth a file of their own, about 3 MB of Parquet."""
    open_files: int = 16
    """Loads: files that a worker has open at once; each holds its keys until it is closed, for the bloom filter."""
    sorted_bytes: int = 64 * _MB
    """Clustering: bytes of files whose rows one task sorts in memory, some 300 MB of Arrow. More are cut into ranges first."""
    merged_entries: int = 4_000_000
    """Records and deletes in the logs of an embedded query up to which row copies are used: which rows count is found for all of
    them at once, in about 100 bytes each."""
    bounds_characters: int = 4 * _MB
    """Spark's scans: what commits state of columns, in characters of all of them together; those that say most of the scan's files for
    their length come first."""
    least_room_bytes: int = 16 * _MB
    """Compactions: so much memory a task has at least, whatever it was given; with less it would cut its work into shreds."""
    least_plan_bytes: int = _MB
    """Compactions for a budget: what one of several plans reads and writes at least; each is three files on the timeline."""
    copies_looked_at: int = 16
    """Archiving: so many row copies in a row that are still needed end the search for others; each look opens a file."""
    neglected_commits: int = 100
    """Doctor: commits on the active timeline that call for archiving, which by default keeps it at 20 to 30."""
    neglected_logs: int = 50
    """Doctor: log files of one file slice that call for a compaction. By default Apache Hudi compacts after five delta commits."""
    doctor_bytes: int = 64 * 1024 * 1024
    """Doctor: up to so many bytes of the newest state are read without being asked for: a second or two."""
    warned_logs: int = 200
    """Writers warn of a file slice with more log files: each commit names them all, so that what commits say grows with the square of
    their number."""


TUNING = Tuning()
