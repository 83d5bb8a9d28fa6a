"""Engines that let something happen in the midst of a write."""

from hoodie.engine.local import LocalEngine
from hoodie.storage.faults import InjectedFault


class Meanwhile(LocalEngine):
    """Calls `act` once, when a step whose label says so is about to run: what another writer does at that moment."""

    def __init__(self, step, act):
        super().__init__(1)
        self.step, self.act, self.times = step, act, 0

    def run(self, fn, tasks, *, label, at_once=1):
        if self.step in label and not self.times:
            self.times += 1
            self.act()
        return super().run(fn, tasks, label=label)


class Dies(LocalEngine):
    def __init__(self, step):
        super().__init__(1)
        self.step = step

    def run(self, fn, tasks, *, label, at_once=1):
        found = super().run(fn, tasks, label=label)
        if self.step in label:
            raise InjectedFault(f"the process died after: {label}")
        return found
