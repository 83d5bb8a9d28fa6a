"""Lists of log names in the JSON of commits, which are nearly all of it where many commits went into one slice.

Every commit names all logs of its slices again, so that a thousand commits hold half a million names. As text they are what the
commit before had, and a little more: only that is decoded.
"""

from __future__ import annotations

import re

from hoodie.model.log_names import LogNames

_LIST = re.compile(rb'"logFiles"\s*:\s*\[')
"""Never inside of a string: its quotes would have backslashes."""
_NAME = rb'"\.[0-9A-Za-z][0-9A-Za-z_.\-]*"'
_NAMES = re.compile(rb"%b(?:\s*,\s*%b)*" % (_NAME, _NAME))
"""Names that are plain ones: nothing in them is escaped, and none leads out of its folder."""
_COMMA = re.compile(rb"\s*,\s*")
_MOST_BYTES = 32 * 1024 * 1024


class LogNameTexts:
    """The newest list of each file group that was read, to tell what the next one has besides. Thread-safe: a list that another
    thread has just put there is as good as any. `most_bytes`: of all lists together.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._last: dict[tuple[str, str], tuple[bytes, LogNames]] = {}
        self._bytes = 0

    def read(self, partition_path: str, file_id: str, text: bytes) -> LogNames | None:
        """The names in a list, given without its brackets; None where they are not plain."""
        before, names = self._last.get((partition_path, file_id), (b"", None))
        rest, text_bytes = text, len(text)
        if names is not None and text.startswith(before):
            comma = _COMMA.match(text, len(before))
            if len(text) == len(before):
                return names
            rest = text[comma.end() :] if comma is not None else b""
        else:
            names = None
        if not text:
            return LogNames(None, (), 0)
        if not _NAMES.fullmatch(rest):
            return None
        added = tuple(name.decode("ascii") for name in re.findall(rb'"([^"]*)"', rest))
        result = LogNames(names, added, text_bytes)
        self._keep((partition_path, file_id), text, result)
        return result

    def _keep(self, key: tuple[str, str], text: bytes, names: LogNames) -> None:
        if self._bytes > self._most_bytes:
            self._last, self._bytes = {}, 0
        self._bytes += len(text) - len(self._last.get(key, (b"",))[0])
        self._last[key] = text, names


def cut_lists(data: bytes) -> tuple[bytes, list[bytes]]:
    """The JSON with a number in place of each list of log names, and the lists by these numbers, without their brackets."""
    parts: list[bytes] = []
    lists: list[bytes] = []
    at = 0
    while (match := _LIST.search(data, at)) is not None:
        end = data.find(b"]", match.end())
        if end < 0:
            break
        parts += data[at : match.end() - 1], b"%d" % len(lists)
        lists.append(data[match.end() : end].strip())
        at = end + 1
    return b"".join([*parts, data[at:]]), lists


def put_names(commit: object, lists: list[bytes], texts: LogNameTexts) -> bool:
    """Put the names into a commit's parsed JSON where their numbers stand. False when that is not possible."""
    partitions = commit.get("partitionToWriteStats") if isinstance(commit, dict) else None
    remaining = set(range(len(lists)))
    for partition_path, stats in partitions.items() if isinstance(partitions, dict) else ():
        for stat in stats if isinstance(stats, list) else ():
            number = stat.get("logFiles") if isinstance(stat, dict) else None
            if number is None:
                continue
            file_id = stat.get("fileId")
            if type(number) is not int or number not in remaining or not isinstance(file_id, str):
                return False
            names = texts.read(partition_path, file_id, lists[number])
            if names is None:
                return False
            remaining.discard(number)
            stat["logFiles"] = names
    return not remaining
