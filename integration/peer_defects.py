"""What the peers get wrong in tables that hoodie wrote, so that everything else can be compared."""

from urllib.parse import unquote

from integration.tables import BUILDERS
from tests.rows import sorted_rows

EVOLVED = [name for name in BUILDERS if name.endswith(("added_column", "widened_columns"))]


def with_decoded_regions(read):
    """Undo what Hudi's incremental queries do to partition columns of a url-encoded table."""

    def decoded(path, view):
        rows = read(path, view)
        if view.query != "incremental":
            return rows
        return sorted_rows(row | {"region": unquote(row["region"])} for row in rows)

    return decoded


def hudi_rs_defects(name, table):
    """Which views of a table hudi-rs 0.5.0 gets wrong."""
    times = list(table.states)

    def skip(view):
        if name == "mor_compacted":
            # A stored row outside of the range still beats a late one in it, where the base file is of a compaction.
            return view.query == "incremental" and view.begin == times[len(times) // 3] and view.end == times[-1]
        if name == "mor_pending_compaction":
            # It does not merge logs that are named with a compaction which is not done.
            (scheduled,) = table.table.pending_compactions()
            last = view.as_of or view.end or times[-1]
            return view.query != "read_optimized" and last > scheduled.time
        if name in EVOLVED and view.as_of in times[:2]:
            return True  # it shows the newest columns in an as-of query, not those of that instant
        if name == "mor_widened_columns":
            # It cannot widen a column of a log block.
            return view.as_of in times[:3] or (view.begin, view.end) == (times[0], times[1])
        return False

    return skip
