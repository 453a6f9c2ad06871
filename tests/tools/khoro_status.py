# SPDX-License-Identifier: Apache-2.0
"""`khoro status`: which jobs run, and what the ranks of one do.

usage: khoro_status.py KHORO ACTOR
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

from jobs import PATIENCE, actors, wait_until

KHORO, ACTOR = sys.argv.pop(1), sys.argv.pop(1)
NOBODY = 65534


def status(*words):
    return subprocess.run([KHORO, "status", *map(str, words)], text=True, capture_output=True,
                          timeout=PATIENCE)


def status_json(*words):
    done = status(*words, "--format", "json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def jobs():
    return {job["pid"]: job for job in status_json()["jobs"]}


def socket_of(launcher):
    """The abstract socket of a launcher."""
    with open("/proc/net/unix", encoding="utf-8") as file:
        return "\0" + re.search(rf"@(khoro-job-\d+-{launcher.pid}-\S+)", file.read())[1]


def as_nobody(body):
    """A process of another user that runs `body` and exits with what it returns; 99: it threw."""
    process = os.fork()
    if process == 0:
        status = 99
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            status = body()
        finally:
            os._exit(status)
    return process


class Case(unittest.TestCase):
    def start(self, ranks, *command):
        launcher = subprocess.Popen([KHORO, "run", "-n", str(ranks), "--", *map(str, command)],
                                    text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (launcher.send_signal(signal.SIGCONT), launcher.kill(),
                                 launcher.communicate()))
        return launcher

    def start_actor(self, ranks, *part):
        """A job whose ranks have all made their first call."""
        launcher = self.start(ranks, ACTOR, *part)
        self.pids = actors(launcher, ranks)
        return launcher

    def members(self, launcher):
        [communicator] = status_json(launcher.pid)["communicators"]
        return {member["rank"]: member for member in communicator["members"]}

    def wait_for_verdicts(self, launcher, verdicts):
        def seen():
            return [member["verdict"] for _, member in sorted(self.members(launcher).items())]
        self.assertTrue(wait_until(lambda: seen() == verdicts), seen())


class List(Case):
    def test_running_jobs_are_listed_and_ended_ones_are_not(self):
        first, second = self.start(2, "sleep", 1000), self.start(3, "sleep", 1000)
        self.assertTrue(wait_until(lambda: {first.pid, second.pid} <= set(jobs())))
        self.assertRegex(status().stdout, rf"(?m)^{second.pid} +3 +\d{{4}}-\d\d-\d\dT\S+Z +sleep$")
        job = jobs()[first.pid]
        self.assertEqual({key: job[key] for key in ("answers", "program", "ranks", "processes", "running")},
                         {"answers": True, "program": "sleep", "ranks": 2, "processes": 2, "running": 2})
        first.kill()
        second.terminate()
        second.wait(PATIENCE)
        self.assertTrue(wait_until(lambda: not {first.pid, second.pid} & set(jobs())))

    def test_a_launcher_that_is_stopped_is_listed_as_that(self):
        launcher = self.start(1, "sleep", 1000)
        self.assertTrue(wait_until(lambda: launcher.pid in jobs()))
        launcher.send_signal(signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: not jobs().get(launcher.pid, {}).get("answers", True)))
        self.assertRegex(status().stdout, rf"(?m)^{launcher.pid} .*its launcher is stopped")
        done = status(launcher.pid)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"job {launcher.pid}: its launcher is stopped", done.stderr)

    def test_a_job_that_does_not_run_is_1_and_wrong_usage_is_2(self):
        done = status(os.getpid())
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"no job {os.getpid()} of this user runs here", done.stderr)
        for words in (["x"], ["0"], ["-1"], ["1", "2"], ["--format", "xml"]):
            self.assertEqual(status(*words).returncode, 2, words)


class One(Case):
    def test_what_ranks_do_is_shown_while_they_run_and_while_they_are_stopped(self):
        launcher = self.start_actor(3, "wait", 1)
        verdicts = ["in a call", "has not called", "in a call"]
        self.wait_for_verdicts(launcher, verdicts)
        members = self.members(launcher)
        self.assertEqual(members[1], {
            "rank": 1, "pid": self.pids[1], "verdict": "has not called", "detail": "#2", "calls": 1,
            "last_finished": "#1 khoroAllReduce(1 x khoroFloat32, khoroSum)",
            "under_way": "nothing"})
        self.assertEqual(members[0]["under_way"], "#2 khoroAllReduce(2 x khoroFloat32, khoroSum)")
        text = status(launcher.pid).stdout
        self.assertIn(f"job {launcher.pid}: {ACTOR}, 3 ranks in 3 processes of which 3 run, since", text)
        self.assertIn("communicator 1, 3 ranks: rank 1 has not called #2", text)
        self.assertRegex(text, r"(?m)^0, 2 +- "
                               r"+#1 khoroAllReduce\(1 x khoroFloat32, khoroSum\) "
                               r"+#2 khoroAllReduce\(2 x khoroFloat32, khoroSum\) +in a call *$")
        for pid in self.pids.values():
            os.kill(pid, signal.SIGSTOP)
        self.wait_for_verdicts(launcher, ["stopped"] * 3)
        self.assertEqual({rank: (member["last_finished"], member["under_way"], member["calls"])
                          for rank, member in self.members(launcher).items()},
                         {rank: (member["last_finished"], member["under_way"], member["calls"])
                          for rank, member in members.items()})
        for pid in self.pids.values():
            os.kill(pid, signal.SIGCONT)
        self.wait_for_verdicts(launcher, verdicts)

    def test_calls_are_counted_while_a_job_runs_and_it_is_not_disturbed(self):
        launcher = self.start_actor(2, "loop")
        before = self.members(launcher)[0]["calls"]
        self.assertTrue(wait_until(lambda: self.members(launcher)[0]["calls"] > before + 100))
        self.assertIsNone(launcher.poll())

    def test_a_communicator_that_all_have_left_is_gone(self):
        launcher = self.start_actor(2, "leave")
        self.assertTrue(wait_until(lambda: not status_json(launcher.pid)["communicators"]))
        self.assertIn("no rank has joined a communicator", status(launcher.pid).stdout)


class Askers(Case):
    def connect(self, name):
        asker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(asker.close)
        asker.settimeout(PATIENCE)
        asker.connect(name)
        return asker

    def test_askers_that_are_silent_or_talk_nonsense_hold_up_nobody(self):
        launcher = self.start_actor(2, "loop")
        name = socket_of(launcher)
        askers = []
        for number in range(300):
            askers.append(self.connect(name))
            if number % 3 == 1:
                try:
                    askers[-1].send(os.urandom(1000))
                except OSError:
                    pass  # it has been answered and closed
            if number % 3 == 2:
                askers[-1].close()
        before = self.members(launcher)[0]["calls"]
        self.assertTrue(wait_until(lambda: self.members(launcher)[0]["calls"] > before + 10))
        held = len(os.listdir(f"/proc/{launcher.pid}/fd"))
        self.assertLess(held, 30)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to become another user")
    def test_another_user_is_told_nothing(self):
        launcher = self.start_actor(2, "loop")
        name = socket_of(launcher)
        def ask():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asker:
                asker.settimeout(PATIENCE)
                asker.connect(name)
                return len(asker.recv(100))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(as_nobody(ask), 0)[1]), 0)
        self.assertEqual(len(self.members(launcher)), 2)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to become another user")
    def test_a_socket_of_another_user_that_has_the_name_of_a_job_is_not_believed(self):
        ready, told = os.pipe()

        def lie():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                listener.bind(f"\0khoro-job-0-{os.getpid()}-0123456789abcdef")
                listener.listen()
                os.write(told, b"x")
                time.sleep(1000)
        liar = as_nobody(lie)
        self.addCleanup(lambda: (os.kill(liar, signal.SIGKILL), os.waitpid(liar, 0)))
        os.close(told)
        self.assertEqual(os.read(ready, 1), b"x")
        os.close(ready)
        self.assertNotIn(liar, jobs())


if __name__ == "__main__":
    unittest.main()
