# SPDX-License-Identifier: Apache-2.0
"""The trace of a job: what is in it, and what becomes of it when ranks die.

usage: trace.py KHORO TRACED ALL_REDUCE_PERF
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from jobs import PATIENCE, wait_until

KHORO, TRACED, ALL_REDUCE_PERF = (sys.argv.pop(1) for _ in range(3))


def events_of(path):
    """The array, whose last bracket is left out."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    return json.loads(text.rstrip().rstrip(",") + "]")


class Trace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.first = os.path.join(folder.name, "first.json")
        self.second = os.path.join(folder.name, "second.json")
        self.environment = {**os.environ, "KHORO_TRACE": self.first}

    def run_job(self, *words):
        return subprocess.run([KHORO, "run", *words, "--", TRACED, self.second], text=True,
                              capture_output=True, timeout=PATIENCE, env=self.environment)

    def calls_by_line(self, path):
        """The names of the calls of each rank's line, in the order of their begins."""
        events = events_of(path)
        lines = {(event["pid"], event["tid"]): event["args"]["name"] for event in events
                 if event["name"] == "thread_name"}
        calls = collections.defaultdict(list)
        for event in sorted((event for event in events if "ts" in event), key=lambda e: e["ts"]):
            if event["ph"] in "Xb":
                calls[lines[event["pid"], event["tid"]]].append(event["name"])
        return calls

    def check_both_files(self, ranks):
        for calls in (self.calls_by_line(self.first), self.calls_by_line(self.second)):
            self.assertEqual(len([line for line in calls if f"of {ranks}," in line]), ranks)
        for line, calls in self.calls_by_line(self.first).items():
            self.assertEqual(calls[:3], ["allreduce", "allreduce", "barrier"], line)
            self.assertEqual(sorted(calls[3:]), ["recv", "send"], line)
        for line, calls in self.calls_by_line(self.second).items():
            of_all = f"of {ranks}," in line
            wanted = ["allgather", "split", "split"] if of_all else ["allreduce"]
            self.assertEqual(calls, wanted, line)

    def test_every_call_of_every_process_is_in_it_while_it_is_on(self):
        done = self.run_job("-n", "4")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.check_both_files(4)

    def test_every_call_of_every_thread_is_in_it_while_it_is_on(self):
        done = subprocess.run([KHORO, "run", "-n", "2", "--threads", "2", "--", ALL_REDUCE_PERF,
                               "-b", "8", "-e", "8", "-n", "5"], text=True, capture_output=True,
                              timeout=PATIENCE, env=self.environment)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(len({event["pid"] for event in events_of(self.first)}), 2)
        calls = list(self.calls_by_line(self.first).values())
        self.assertEqual(len(calls), 4)
        self.assertEqual(calls, 4 * calls[:1])

    def test_messages_are_arrows_forward_in_time_between_calls_of_one_number(self):
        self.assertEqual(self.run_job("-n", "4").returncode, 0)
        events = events_of(self.first)
        slices = [event for event in events if event["ph"] == "X"]
        starts = {event["id"]: event for event in events if event["ph"] == "s"}
        ends = {event["id"]: event for event in events if event["ph"] == "f"}
        self.assertEqual(len(starts), len([event for event in events if event["ph"] == "s"]))
        self.assertEqual(starts.keys(), ends.keys())
        self.assertGreater(len(starts), 4 * 3)  # every rank hears of three others in each call

        def call_at(event):
            return [each["args"]["number"] for each in slices
                    if (each["pid"], each["tid"]) == (event["pid"], event["tid"])
                    and each["ts"] <= event["ts"] <= each["ts"] + each["dur"] + 0.001]

        for arrow, start in starts.items():
            self.assertLessEqual(start["ts"], ends[arrow]["ts"])
            self.assertEqual(len(call_at(start)), 1)
            self.assertEqual(call_at(start), call_at(ends[arrow]))

    def test_a_call_says_what_was_asked_and_how_it_was_done(self):
        self.assertEqual(self.run_job("-n", "2").returncode, 0)
        long_one = max((event for event in events_of(self.first) if event["ph"] == "X"),
                       key=lambda event: "300000" in event["args"]["call"])
        self.assertEqual(long_one["args"], {"number": 2, "algorithm": "two-shot",
                                            "call": "khoroAllReduce(300000 x khoroFloat32, khoroSum)"})

    def test_a_run_begins_the_file_of_the_one_before_anew(self):
        pathlib.Path(self.first).write_text("what was there\n", encoding="utf-8")
        self.assertEqual(self.run_job("-n", "2").returncode, 0)
        self.assertEqual(len(self.calls_by_line(self.first)), 2)

    def test_what_ranks_did_until_they_were_killed_is_in_it(self):
        job = subprocess.Popen([KHORO, "run", "-n", "3", "--", TRACED, self.second, "stuck"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=self.environment)
        self.addCleanup(lambda: (job.kill(), job.wait()))

        def has_all():
            return (os.path.exists(self.second) and
                    sum("of 3," in line and len(calls) >= 3 for line, calls
                        in self.calls_by_line(self.second).items()) == 3)

        self.assertTrue(wait_until(has_all))
        job.terminate()
        job.wait(PATIENCE)
        self.assertTrue(has_all())

    def test_a_call_that_failed_is_shown_as_failed(self):
        self.environment["KHORO_DEADLINE"] = "300ms"
        done = subprocess.run([KHORO, "run", "-n", "3", "--", TRACED, self.second, "stuck"],
                              text=True, capture_output=True, timeout=PATIENCE,
                              env=self.environment)
        self.assertNotEqual(done.returncode, 0)
        failed = [event for event in events_of(self.second)
                  if event["ph"] == "X" and event["args"].get("failed")]
        self.assertEqual({event["name"] for event in failed}, {"allreduce"})

    def test_a_file_that_cannot_be_written_fails_the_init_and_is_named(self):
        self.environment["KHORO_TRACE"] = self.first + "/below/a/file"
        done = self.run_job("-n", "2")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"the trace file '{self.first}/below/a/file' cannot be written: "
                      "No such file or directory", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
