"""An interrupt (Ctrl-C) at any line of Python that a thread passes: what a signal can hit between the calls of the storage."""

import ast
import sys
import threading
from functools import cache
from pathlib import Path

import hoodie

ROOMS = ("lock", "txn", "services", "engine")
FILES = (
    "writer.py",
    "write/attempt.py",
    "write/stage.py",
    "write/load.py",
    "write/load.py",
    "write/publish.py",
    "filegroup/base_writer.py",
)
ROOT = Path(hoodie.__file__).parent


def is_watched(file, more=()):
    if file.endswith("/contextlib.py"):
        return True
    if not file.startswith(f"{ROOT}/"):
        return False
    place = file[len(str(ROOT)) + 1 :]
    return place.startswith((*ROOMS, *more)) or place in FILES


@cache
def with_lines(file):
    """Lines of `with`: on leaving a block they are visited again at a place where Python looks for no signal."""
    tree = ast.parse(Path(file).read_text())
    return {node.lineno for node in ast.walk(tree) if isinstance(node, ast.With)}


class Steps:
    """Counts the steps of the calling thread, lines and calls, at places that it has not been at; raises at one of them.

    `more`: begins of other files below `hoodie/` that are watched, too.
    """

    def __init__(self, at=0, error=KeyboardInterrupt, more=()):
        self.at, self.error, self.more = at, error, more
        self.seen = {}
        self.where = None

    def __call__(self, frame, event, arg):
        code = frame.f_code
        if not is_watched(code.co_filename, self.more):
            return None
        if event in ("call", "line") and not (event == "line" and frame.f_lineno in with_lines(code.co_filename)):
            caller = frame.f_back.f_code.co_name if code.co_filename.endswith("/contextlib.py") else ""
            place = (code.co_filename, frame.f_lineno, event, caller)
            visits = self.seen[place] = self.seen.get(place, 0) + 1
            if visits == 1 and len(self.seen) == self.at:
                self.where = place
                raise self.error(f"at {place}")
        return self

    def __enter__(self):
        self.traced = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(self.traced)


def threads_left(before=()):
    """Names of threads of ours that do not end, without those of earlier tests."""
    for thread in threads_of_ours(before):
        thread.join(5)
    return [thread.name for thread in threads_of_ours(before)]


def threads_of_ours(before=()):
    return [each for each in threading.enumerate() if each.name.startswith("hoodie") and each not in before]
