"""`python -m integration.many_writers --setup s3 --seconds 60 --seed 1`: many writers on one table, disturbed, and judged."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from integration.many_writers.run import WRITERS, soak
from integration.many_writers.setups import SETUPS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", choices=list(SETUPS), default="zookeeper")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1, help="its last two bits say which kind of table comes first")
    parser.add_argument("--writers", type=int, default=WRITERS)
    parser.add_argument("--services", action="store_true", help="clean and archive meanwhile")
    parser.add_argument("--jobs", type=int, default=0, help="so many processes of `hoodie services` do it")
    parser.add_argument("--calm", action="store_true", help="disturb nobody: to see how long writers wait for services")
    parser.add_argument("--folder", type=Path, help="where tables, notes and logs go; left there")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="many-writers-"))
    folder.mkdir(parents=True, exist_ok=True)
    report = soak(
        asked.setup,
        asked.seconds,
        asked.seed,
        folder,
        writers=asked.writers,
        services=asked.services,
        jobs=asked.jobs,
        calm=asked.calm,
    )
    sys.stdout.write(f"{asked.setup}, {asked.seconds:.0f} s, seed {asked.seed}, notes in {folder}\n{report}\n")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
