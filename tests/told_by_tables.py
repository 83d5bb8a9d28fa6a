"""What a table says of its past: the rows of each state that can be read, and its commits."""

import hoodie
from tests.memory_tables import plain


def states(table):
    """Instant -> rows of the states that can be read."""
    found = {}
    for commit in table.timeline.commits:
        try:
            found[commit.time] = plain(table.scan(as_of=commit.time, meta_columns=True))
        except hoodie.InstantNotFoundError:
            continue
    return found


def described(results):
    return [(r.instant, r.operation, r.inserted, r.updated, r.deleted, r.replaced) for r in results]
