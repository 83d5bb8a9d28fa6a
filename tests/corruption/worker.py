"""Reads damaged tables in a process of its own: a crash, a hang or a flood of memory takes only it, and is a verdict.

    python -m tests.corruption.worker TABLE flips|cuts SEED COUNT PROGRESS

Writes one JSON object: how many cases came to which verdict, and the cases that are faults. PROGRESS names a file that
holds the case at work, so that whoever started this knows which one ended it.
"""

import faulthandler
import json
import resource
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa

from hoodie.timeline import active
from tests.corruption.damage import ask, load, random_flips, sampled_cuts, views_of
from tests.corruption.verdict import FAULTS, judge, worst

ROOM_BYTES = 1 << 30
"""How much more memory than for the undamaged table a query may take."""
CASE_S = 30
_SHOWN = 20


def main(name: str, kind: str, seed: int, count: int, progress: Path) -> None:
    active._READ_PAUSE_S = 0.0  # a damaged commit is looked at again after a pause; nobody writes here
    pa.set_memory_pool(pa.system_memory_pool())  # the others reserve address space far beyond what they use
    source = load(name)
    views = views_of(source)
    good = {view: ask(source.stored(), query) for view, query in views.items()}
    assert not any(answer.error for answer in good.values()), [answer.error for answer in good.values()]
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, resource.RLIM_INFINITY))
    counts: Counter[str] = Counter()
    faults = []
    make = random_flips if kind == "flips" else sampled_cuts
    for damage in make(source, seed=seed, count=count):
        progress.write_text(str(damage))
        faulthandler.dump_traceback_later(CASE_S, exit=True)
        storage = source.stored(damage)
        answers = {view: ask(storage, query) for view, query in views.items()}
        verdicts = {view: judge(source, damage, good[view], answer) for view, answer in answers.items()}
        counts[worst(verdicts)] += 1
        if worst(verdicts) in FAULTS:
            faults += [
                f"{damage}, {view}: {verdict}: {answers[view].error!r:.300} "
                f"lost {dict(good[view].keys - answers[view].keys)} new {dict(answers[view].keys - good[view].keys)}"
                for view, verdict in verdicts.items()
                if verdict in FAULTS
            ]
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.write(json.dumps({"counts": counts, "faults": faults[:_SHOWN]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
