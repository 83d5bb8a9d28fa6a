"""Commands as messages print them, ready to be run: with the table's own path, quoted for a shell."""

from __future__ import annotations

import shlex


def hoodie_command(*words: str) -> str:
    """`hoodie WORDS` between backticks; each word is one argument."""
    return f"`{shlex.join(('hoodie', *words))}`"


def doctor_of(path: str) -> str:
    """Advice for a damaged file of a table; `path`: the file's, with that of the table."""
    return f"{hoodie_command('doctor', path.partition('/.hoodie/')[0])} says how to repair the table"


def restored(text: str) -> str:
    """What is wrong with a file, with the advice to restore it, if it has no advice yet."""
    return text if "restore" in text.lower() else f"{text}; restore the file from a copy"
