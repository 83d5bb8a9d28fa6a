"""Commands as messages print them, ready to be run: with the table's own path, quoted for a shell."""

from __future__ import annotations

import shlex


def hoodie_command(*words: str) -> str:
    """`hoodie WORDS` between backticks; each word is one argument."""
    return f"`{shlex.join(('hoodie', *words))}`"


def doctor_of(path: str) -> str:
    """What to ask where a file of a table is damaged; `path`: the file's, with that of the table."""
    return f"{hoodie_command('doctor', path.partition('/.hoodie/')[0])} says what mends the table"
