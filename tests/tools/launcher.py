# SPDX-License-Identifier: Apache-2.0
"""What the tests of `khoro run` share: the first argument of each of them is the program."""
import os
import pathlib
import subprocess
import sys
import unittest
import uuid

from jobs import PATIENCE, alive, wait_until

KHORO = sys.argv.pop(1)


def job(*words, script=None):
    """The command line of a job; `script` is Python, run by every rank."""
    program = ["--", sys.executable, "-c", script] if script else []
    return [KHORO, "run", *map(str, words), *program]


def run(*words, script=None, **options):
    options = {"capture_output": True, "timeout": PATIENCE, **options}
    return subprocess.run(job(*words, script=script), **options)


def start(*words, script=None, **options):
    pipe = subprocess.PIPE
    return subprocess.Popen(job(*words, script=script), stdout=pipe, stderr=pipe, **options)


def processes_with(token):
    """Living processes whose command line or environment holds the token."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            held = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        process = int(folder.name)
        if token.encode() in held and process != os.getpid() and alive(process):
            found.append(process)
    return found


class Case(unittest.TestCase):
    def setUp(self):
        self.token = str(uuid.uuid4())
        self.environment = {**os.environ, "TOKEN": self.token}

    def assert_nothing_is_left(self, seconds=5):
        self.assertTrue(wait_until(lambda: not processes_with(self.token), seconds),
                        f"left: {processes_with(self.token)}")

    def start_and_wait_for(self, count, *words, script):
        """A job whose ranks have `count` processes, the launcher's own two not counted."""
        launcher = start(*words, script=script, env=self.environment)
        self.addCleanup(lambda: (launcher.kill(), launcher.communicate()))
        self.assertTrue(wait_until(lambda: len(self.of_ranks(launcher)) == count),
                        f"{len(self.of_ranks(launcher))} processes, not {count}")
        return launcher

    def of_ranks(self, launcher):
        return set(processes_with(self.token)) - {launcher.pid, self.guardian_of(launcher)}

    def guardian_of(self, launcher):
        for process in processes_with(self.token):
            try:
                stat = pathlib.Path(f"/proc/{process}/stat").read_text()
            except OSError:
                continue
            if "(khoro-guardian)" in stat and f") S {launcher.pid} " in stat:
                return process
        return None
