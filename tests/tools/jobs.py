# SPDX-License-Identifier: Apache-2.0
"""What the tests of the launcher share: processes, and jobs of the actor."""
import pathlib
import re
import time

PATIENCE = 120  # seconds; only what hangs takes so long


def wait_until(condition, seconds=PATIENCE):
    """Whether it came true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def alive(process):
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def actors(launcher, ranks):
    """The processes by rank, once all ranks of a job of the actor have made their first call."""
    pids = {}
    while len(pids) < ranks:
        line = launcher.stdout.readline()
        if ready := re.match(r"\[(\d+)\] ready (\d+)\n", line):
            pids[int(ready[1])] = int(ready[2])
        elif not line:
            raise AssertionError(launcher.communicate(timeout=PATIENCE))
    return pids
