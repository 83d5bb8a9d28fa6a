import subprocess
import sys
import time

from benchmarks.meter import Meter

# A grandchild that works for 0.6 s, stays to be seen, and ends while its parent ignores that it does.
_DAEMON = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
worker = os.fork()
if not worker:
    while time.process_time() < 0.6:
        pass
    time.sleep(1)
    os._exit(0)
while os.path.exists(f"/proc/{worker}"):
    time.sleep(0.01)
print("ended", flush=True)
input()
"""


def test_a_worker_that_ended_counts_though_its_daemon_does_not_wait_for_it():
    own = time.process_time()
    with Meter() as meter:
        daemon = subprocess.Popen([sys.executable, "-c", _DAEMON], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert daemon.stdout.readline() == b"ended\n"
    own = time.process_time() - own
    daemon.communicate(b"\n")
    assert meter.cost.cpu_s - own > 0.4
