# SPDX-License-Identifier: Apache-2.0
"""Kills a rank of a job at random moments over init, idle and a loop of 32 MiB allreduces. The
survivors learn who died, the launcher names rank and signal, and nothing is left.

usage: killed_ranks.py KHORO VICTIM SLOW_DEATH KILLS [SEED]
"""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from jobs import PATIENCE, alive, wait_until

KHORO, VICTIM, SLOW_DEATH, KILLS = *sys.argv[1:4], int(sys.argv[4])
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else random.randrange(1 << 32)
RANKS, PROMISED = 4, 1.0
PEER_DIED = "12"  # khoroPeerDied


class Job:
    """A job under way, and what its ranks have said so far: (rank, words) lines."""

    def __init__(self, phase):
        self.heard, self.change = [], threading.Condition()
        self.launcher = subprocess.Popen(
            [KHORO, "run", "-n", str(RANKS), "--", VICTIM, phase],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.listener = threading.Thread(target=self.listen)
        self.listener.start()

    def listen(self):
        for line in self.launcher.stdout:
            tag = re.match(r"\[(\d+)\] (.*)", line)
            with self.change:
                self.heard.append((int(tag[1]), tag[2]))
                self.change.notify_all()

    def of(self, word):
        """What came after `word`, by rank."""
        return {rank: line[len(word) + 1:] for rank, line in self.heard if line.startswith(word)}

    def wait_for(self, word, ranks):
        with self.change:
            if not self.change.wait_for(lambda: ranks <= set(self.of(word)), PATIENCE):
                raise AssertionError(f"only {sorted(self.of(word))} of {sorted(ranks)} said '{word}'")

    def end(self):
        self.launcher.wait(PATIENCE)
        self.listener.join()
        with self.launcher.stdout, self.launcher.stderr as errors:
            return errors.read()


def kill_one(phase, dice):
    """Returns the longest time from the kill to a survivor's report; 0 during init."""
    job = Job("loop" if phase == "init" else phase)
    victim = dice.randrange(RANKS)
    if phase == "init":
        job.wait_for("process", {victim})
        time.sleep(dice.uniform(0, 0.02))
    else:
        job.wait_for("looping" if phase == "loop" else "joined", set(range(RANKS)))
        time.sleep(dice.uniform(0, 0.2))
    with job.change:
        processes = {rank: int(words) for rank, words in job.of("process").items()}
    killed_at = time.monotonic()
    os.kill(processes[victim], signal.SIGKILL)
    errors = job.end()
    assert job.launcher.returncode == 128 + signal.SIGKILL, (job.launcher.returncode, errors)
    assert re.search(rf"rank {victim} \(process {processes[victim]}\) ended by signal 9 \(SIGKILL",
                     errors), errors
    told = job.of("told")
    longest = 0.0
    for rank in set(range(RANKS)) - {victim}:
        if phase == "init" and rank not in told:
            continue  # the launcher may end it before it has met anyone
        moment, code, words = told[rank].split(" ", 2)
        joined = rank in job.of("joined")
        if phase != "init":
            assert code == PEER_DIED, (rank, told[rank])
            assert f"rank {victim}" in words, (rank, words)
            if phase == "loop":  # the blow may fall between two calls
                assert "allreduce" in words or "no operation was under way" in words, (rank, words)
            longest = max(longest, float(moment) - killed_at)
        elif joined:
            assert f"rank {victim}" in words, (rank, words)
    assert longest < 10 * PROMISED, f"a survivor learned of it after {longest:.2f} s"
    # Sockets and shared memory have no names in the file system, and so end with the processes.
    assert wait_until(lambda: not any(map(alive, processes.values())), 5), "a rank is left"
    return longest


def a_killed_rank_is_named_before_one_that_failed_for_its_sake():
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "fifo")
        os.mkfifo(fifo)
        done = subprocess.run([KHORO, "run", "-n", "2", "--", SLOW_DEATH, fifo],
                              capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 128 + signal.SIGKILL, (done.returncode, done.stderr)
    assert re.search(r"rank 1 \(process \d+\) ended by signal 9 \(SIGKILL", done.stderr), done.stderr


def main():
    a_killed_rank_is_named_before_one_that_failed_for_its_sake()
    dice = random.Random(SEED)
    worst = {"init": 0.0, "idle": 0.0, "loop": 0.0}
    for kill in range(KILLS):
        phase = list(worst)[kill % len(worst)]
        try:
            worst[phase] = max(worst[phase], kill_one(phase, dice))
        except Exception:
            print(f"kill {kill} of seed {SEED}, during {phase}:", file=sys.stderr)
            raise
    print(f"{KILLS} kills, seed {SEED}: told within {worst['idle'] * 1e3:.0f} ms at idle, "
          f"{worst['loop'] * 1e3:.0f} ms in a loop of 32 MiB allreduces; nothing left")


main()
