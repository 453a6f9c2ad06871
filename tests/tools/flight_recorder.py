# SPDX-License-Identifier: Apache-2.0
"""The report that the launcher prints of a job's failure, from what its ranks recorded.

usage: flight_recorder.py KHORO ACTOR
"""
import os
import re
import signal
import subprocess
import sys
import unittest

from jobs import PATIENCE, actors

KHORO, ACTOR = sys.argv.pop(1), sys.argv.pop(1)
REPORT = re.compile(r"^khoro run: (report of communicator .*)$", re.M)


class Job:
    """A job of ACTOR whose ranks have all made their first call."""

    def __init__(self, ranks, *part, before=(), environment=None):
        command = [*before, *([ACTOR, *map(str, part)] if part else [])]
        self.launcher = subprocess.Popen(
            [KHORO, "run", "-n", str(ranks), "--", *command], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "KHORO_LOG": "off", **(environment or {})})
        self.pids = actors(self.launcher, ranks)

    def end(self):
        """Output, and errors of the launcher and the ranks."""
        try:
            return self.launcher.communicate(timeout=PATIENCE)
        finally:
            self.launcher.kill()


class Case(unittest.TestCase):
    def report_of(self, ranks, *part, kill=None, status=None, **options):
        """The lines of the one report of a job, the first without what precedes it."""
        job = Job(ranks, *part, **options)
        self.pids = job.pids
        if kill:
            rank, number = kill
            os.kill(job.pids[rank], number)
        _, errors = job.end()
        self.assertEqual(len(REPORT.findall(errors)), 1, errors)
        if status is not None:
            self.assertEqual(job.launcher.returncode, status, errors)
        lines = errors[REPORT.search(errors).start():].splitlines()
        report = [lines[0]] + [line for line in lines[1:] if line.startswith("khoro run:   ")]
        return [line.removeprefix("khoro run: ") for line in report]


class Report(Case):
    def test_a_killed_rank_is_dead_and_its_last_calls_are_read_after_its_end(self):
        head, dead, *others = self.report_of(4, "loop", kill=(2, signal.SIGKILL), status=137)
        self.assertEqual(head, "report of communicator 1, 4 ranks: rank 2 is dead")
        self.assertRegex(dead, rf"^  rank 2 \(process {self.pids[2]}\): dead, ended by signal 9 "
                               r"\(SIGKILL, Killed\); last finished: #\d+ "
                               r"khoroAllReduce\(\d x khoroFloat32, khoroSum\); "
                               r"not finished: (nothing|#\d+ khoroAllReduce\(2 x khoroFloat32, khoroSum\))$")
        self.assertTrue(any("first told by rank" in line and f"rank 2 (pid {self.pids[2]}) died" in line
                            for line in others), others)

    def test_a_rank_in_a_shell_is_dead_too(self):
        # The status is that of the first shell to end: rank 1's, or one that fails for its sake.
        head, dead, *_ = self.report_of(3, kill=(1, signal.SIGKILL),
                                        before=["sh", "-c", f"'{ACTOR}' loop; exit $?"])
        self.assertEqual(head, "report of communicator 1, 3 ranks: rank 1 is dead")
        self.assertIn(f"rank 1 (process {self.pids[1]}): dead;", dead)

    def test_a_rank_that_exits_while_others_receive_ends_the_job_with_its_status(self):
        for before in ([], ["sh", "-c", f"'{ACTOR}' exit 1; exit $?"]):
            head, dead, *_ = self.report_of(3, *([] if before else ["exit", 1]), before=before, status=3)
            self.assertEqual(head, "report of communicator 1, 3 ranks: rank 1 is dead")
            end = "dead;" if before else "dead, exited with status 3;"
            self.assertIn(f"rank 1 (process {self.pids[1]}): {end}", dead)
            self.assertFalse(any(os.path.exists(f"/proc/{pid}") for pid in self.pids.values()))

    def test_a_stopped_rank_is_named_when_the_deadline_of_the_others_has_passed(self):
        head, stopped, *_ = self.report_of(3, "loop", kill=(1, signal.SIGSTOP), status=3,
                                           environment={"KHORO_DEADLINE": "1s"})
        self.assertEqual(head, "report of communicator 1, 3 ranks: rank 1 is stopped")
        self.assertRegex(stopped, rf"^  rank 1 \(process {self.pids[1]}\): stopped; last finished: #")

    def test_a_call_that_a_rank_did_not_make_is_named(self):
        head, missing, others, *_ = self.report_of(4, "wait", 3, status=3,
                                                   environment={"KHORO_DEADLINE": "500ms"})
        self.assertEqual(head, "report of communicator 1, 4 ranks: rank 3 has not called #2")
        self.assertEqual(missing, f"  rank 3 (process {self.pids[3]}): has not called #2; last "
                                  "finished: #1 khoroAllReduce(1 x khoroFloat32, khoroSum); not finished: nothing")
        self.assertEqual(others, "  ranks 0-2: in a call; last finished: #1 "
                                 "khoroAllReduce(1 x khoroFloat32, khoroSum); not finished: #2 "
                                 "khoroAllReduce(2 x khoroFloat32, khoroSum)")

    def test_a_call_that_differs_is_named_with_what_it_was(self):
        head, odd, *others = self.report_of(4, "differ", 1, status=3)
        self.assertEqual(head, "report of communicator 1, 4 ranks: rank 1 made another call than most")
        self.assertRegex(odd, rf"^  rank 1 \(process {self.pids[1]}\): mismatch; .*"
                              r"#2 khoroAllReduce\(3 x khoroFloat32, khoroSum\)")
        self.assertTrue(any("#2 khoroAllReduce(2 x khoroFloat32, khoroSum)" in line for line in others), others)

    def test_a_message_that_a_rank_did_not_send_is_named(self):
        head, missing, others, *_ = self.report_of(3, "silent", 2, status=3,
                                                  environment={"KHORO_DEADLINE": "500ms"})
        self.assertEqual(head, "report of communicator 1, 3 ranks: "
                               "rank 2 has not called send #1 to rank 0")
        self.assertRegex(missing, r"last finished: #1 khoroAllReduce\(1 x khoroFloat32, khoroSum\); "
                                  r"not finished: nothing$")
        self.assertRegex(others, r"^  ranks 0-1: in a call; .*"
                                 r"not finished: #1 khoroRecv\(1 x khoroFloat32, from rank 2\)$")

    def test_ranks_that_receive_from_each_other_are_a_cycle(self):
        head, first, *_ = self.report_of(3, "circle", status=3)
        self.assertEqual(head, "report of communicator 1, 3 ranks: "
                               "ranks 0-2 wait for each other in a cycle")
        self.assertRegex(first, r"^  rank 0 \(process \d+\): in a cycle, waits for rank 1; ")

    def test_a_rank_that_aborts_is_named(self):
        head, aborted, *_ = self.report_of(3, "abort", 0, status=3)
        self.assertEqual(head, "report of communicator 1, 3 ranks: rank 0 aborted the communicator")
        self.assertIn("rank 0 (process", aborted)

    def test_ranks_that_say_the_same_are_one_line(self):
        # Long enough for all to be in the call, also where 16 ranks are slow.
        _, missing, others, told = self.report_of(16, "wait", 5, status=3,
                                                  environment={"KHORO_DEADLINE": "5s"})
        self.assertIn("rank 5 (process", missing)
        self.assertIn("ranks 0-4, 6-15: in a call;", others)
        self.assertIn("first told by rank", told)

    def test_a_job_that_takes_too_long_is_reported_with_what_its_ranks_do(self):
        launcher = subprocess.Popen([KHORO, "run", "-n", "3", "--timeout", "5", "--", ACTOR, "wait", "2"],
                                    text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, errors = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, 124)
        if output.count("ready") == 3:  # else it took longer to start
            self.assertIn("report of communicator 1, 3 ranks: rank 2 has not called #2", errors)
        self.assertLessEqual(len(REPORT.findall(errors)), 1)

    def test_a_job_that_is_interrupted_has_no_report(self):
        job = Job(3, "loop")
        job.launcher.send_signal(signal.SIGINT)
        _, errors = job.end()
        self.assertEqual(job.launcher.returncode, 130)
        self.assertEqual(REPORT.findall(errors), [])

    def test_a_job_that_fails_outside_of_communicators_has_no_report(self):
        for command, status in ((["sh", "-c", "exit 3"], 3), ([ACTOR, "leave"], 137)):
            launcher = subprocess.Popen([KHORO, "run", "-n", "2", "--", *command], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if command[0] == ACTOR:
                pids, left = [], 0
                while left < 2:
                    words = launcher.stdout.readline().split()
                    pids += words[2:]
                    left += words[1] == "left"
                os.kill(int(pids[0]), signal.SIGKILL)
            _, errors = launcher.communicate(timeout=PATIENCE)
            self.assertEqual(launcher.returncode, status, errors)
            self.assertEqual(REPORT.findall(errors), [])


# Does to the recorder's descriptor what some programs do, and becomes the actor.
LOSE = """
import os, sys
number = int(os.environ['KHORO_RECORDER_FD'])
os.close(number)
if sys.argv[1] == 'replace':
    import socket
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.dup2(pair[0].fileno(), number)
    os.set_inheritable(number, True)
os.execv(sys.argv[2], sys.argv[2:])
"""


class WithoutRecorder(Case):
    def test_the_log_of_one_rank_has_the_report_if_the_launcher_cannot(self):
        for how in ("close", "replace"):
            job = Job(3, "wait", 1, before=[sys.executable, "-c", LOSE, how],
                      environment={"KHORO_DEADLINE": "500ms", "KHORO_LOG": "error"})
            _, errors = job.end()
            self.assertEqual(job.launcher.returncode, 3, errors)
            self.assertEqual(errors.count("report of 3 ranks: rank 1 has not called #2"), 1, errors)
            self.assertIn(f"report: rank 1 (process {job.pids[1]}): has not called #2;", errors)
            self.assertIn("report: ranks 0, 2: in a call;", errors)
            self.assertNotIn("report of communicator", errors)


if __name__ == "__main__":
    unittest.main()
