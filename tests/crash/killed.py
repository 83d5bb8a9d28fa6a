"""Run an action on a table of the local disk and die by SIGKILL right before its n-th call that changes the storage.

python killed.py FOLDER ACTION N, where the folder may be an address that the environment says how to reach
"""

import os
import signal
import sys

from hoodie.storage.faults import Call, Fault, FaultStorage, Verb
from hoodie.storage.uri import open_storage
from tests.crash.actions import ACTIONS
from tests.memory_tables import opened


class KillingStorage(FaultStorage):
    """Where the base class would raise, the process ends: no clean-up of any kind runs."""

    def _count(self, verb: Verb, path: str) -> tuple[Call, Fault | None]:
        call, fault = super()._count(verb, path)
        if fault is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return call, fault


if __name__ == "__main__":
    folder, action, at = sys.argv[1:]
    ACTIONS[action].run(opened(KillingStorage(open_storage(folder), [Fault(int(at))])))
