# SPDX-License-Identifier: Apache-2.0
"""`khoro plan`: what it prints and how it exits.

usage: khoro_plan.py KHORO
"""
import json
import subprocess
import sys
import unittest

KHORO = sys.argv.pop(1)


def plan(*arguments, status=0):
    done = subprocess.run([KHORO, "plan", *map(str, arguments)], text=True, capture_output=True,
                          timeout=250)
    assert done.returncode == status, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stderr if status == 2 else done.stdout


class List(unittest.TestCase):
    def test_it_names_every_collective_and_the_rule_that_chooses(self):
        text = plan("list")
        for line in ("allreduce      ring           2            2(P-1)           2(P-1)/P S",
                     "allreduce      any    any         ring           least bytes"):
            self.assertIn(line, text)

    def test_its_json_holds_what_the_text_does(self):
        text, found = plan("list"), json.loads(plan("list", "--format", "json"))
        self.assertEqual(found["version"], 1)
        for row in found["algorithms"]:
            for key in ("collective", "algorithm", "rounds", "sent"):
                self.assertIn(row[key], text)
        self.assertEqual(len(found["algorithms"]) + len(found["default_rule"]) + 5,
                         len(text.splitlines()))

    def test_an_unknown_format_is_wrong_usage(self):
        self.assertIn("--format", plan("list", "--format", "xml", status=2))


class Show(unittest.TestCase):
    def test_one_rank_of_a_ring(self):
        self.assertEqual(plan("show", "allreduce", "ring", "--ranks", 4, "--rank", 0), """\
plan allreduce.ring ranks 4 chunks 4
rank 0
  lane 0
    read input[0] | send 1
    recv 3 | reduce input[3] | send 1
    recv 3 | reduce input[2] | send 1
    recv 3 | reduce input[1] | write output[1] | send 1
    recv 3 | write output[0] | send 1
    recv 3 | write output[3] | send 1
    recv 3 | write output[2]
""")

    def test_a_root_and_an_average(self):
        self.assertIn("root 2\n", plan("show", "broadcast", "chain", "--ranks", 3, "--root", 2))
        self.assertIn("| scale |", plan("show", "allreduce", "ring", "--ranks", 3, "--avg"))

    def test_wrong_usage_says_what_is_wrong(self):
        for said, *arguments in (
                ("there are: allreduce one-shot", "allreduce", "rinx", "--ranks", 4),
                ("--ranks", "allreduce", "ring"),
                ("--ranks", "allreduce", "ring", "--ranks", 0),
                ("--rank 4: the plan has ranks 0..3", "allreduce", "ring", "--ranks", 4, "--rank", 4),
                ("root 3: must be 0..2", "broadcast", "chain", "--ranks", 3, "--root", 3),
                ("--root: allreduce has no root", "allreduce", "ring", "--ranks", 3, "--root", 1),
                ("--avg: broadcast reduces nothing", "broadcast", "chain", "--ranks", 3, "--avg")):
            self.assertIn(said, plan("show", *arguments, status=2))


if __name__ == "__main__":
    unittest.main()
