# SPDX-License-Identifier: Apache-2.0
"""`khoro plan`: what it prints and how it exits.

usage: khoro_plan.py KHORO
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest

KHORO = sys.argv.pop(1)


def plan(*arguments, status=0):
    done = subprocess.run([KHORO, "plan", *map(str, arguments)], text=True, capture_output=True,
                          timeout=250)
    assert done.returncode == status, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stderr if status == 2 else done.stdout


class Output(unittest.TestCase):
    def test_what_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([KHORO, "plan", "list"], stdout=full, stderr=subprocess.PIPE,
                                  timeout=60, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not all output could be written: No space left on device", done.stderr)


class List(unittest.TestCase):
    def test_it_names_every_collective_and_the_rule_that_chooses(self):
        text = plan("list")
        lines = [line.split() for line in text.splitlines()]
        for line in ("allreduce ring 2 2(P-1) 2(P-1)/P S", "allreduce any any any ring least bytes,"):
            self.assertTrue(any(found[:len(line.split())] == line.split() for found in lines), line)

    def test_its_json_holds_what_the_text_does(self):
        text, found = plan("list"), json.loads(plan("list", "--format", "json"))
        self.assertEqual(found["version"], 1)
        for row in found["algorithms"]:
            for key in ("collective", "algorithm", "rounds", "sent"):
                self.assertIn(row[key], text)
        self.assertEqual(len(found["algorithms"]) + len(found["default_rule"]) + 5,
                         len(text.splitlines()))

    def test_it_says_what_not_all_algorithms_can_and_what_some_cannot(self):
        said = {"rank_order": "folds in rank order", "equal_blocks": "equal blocks only",
                "by_machine": "by machine"}
        lines = plan("list").splitlines()[2:]
        rows = json.loads(plan("list", "--format", "json"))["algorithms"]
        for row, line in zip(rows, lines):
            notes = ", ".join(words for key, words in said.items() if row[key])
            self.assertRegex(line, f"{re.escape(row['sent'])}{'  +' if notes else ''}{notes}$")
        for key, *expected in (("rank_order", "allreduce one-shot", "allreduce two-shot",
                                "reducescatter linear", "reduce linear"),
                               ("equal_blocks", "allgather two-level", "reducescatter two-level",
                                "gather binomial", "gather two-level", "scatter binomial",
                                "scatter two-level", "alltoall bruck")):
            self.assertEqual([f"{row['collective']} {row['algorithm']}" for row in rows if row[key]],
                             expected)
        self.assertEqual({row["algorithm"] for row in rows if row["by_machine"]}, {"two-level"})

    def test_an_unknown_format_is_wrong_usage(self):
        self.assertIn("--format: 'xml' is neither text nor json",
                      plan("list", "--format", "xml", status=2))


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

    def test_ranks_on_several_machines(self):
        def sends(*groups):
            text = plan("show", "broadcast", "two-level", "--ranks", 4, *groups)
            return [line.split(" | send ")[1:] for line in text.splitlines() if "send" in line]
        self.assertEqual(sends(), [["2", "1"], ["3"]])
        self.assertEqual(sends("--groups", "3,1"), [["3"], ["2", "1"]])
        self.assertEqual(sends("--groups", "3,1", "--dealt"), [["1"], ["3", "2"]])

    def test_wrong_usage_says_what_is_wrong(self):
        for said, *arguments in (
                ("--groups 3,2: 5 ranks, but --ranks 4", "broadcast", "two-level", "--ranks", 4,
                 "--groups", "3,2"),
                ("--groups", "broadcast", "two-level", "--ranks", 4, "--groups", "4,0"),
                ("--dealt requires --groups", "broadcast", "two-level", "--ranks", 4, "--dealt"),
                ("there are: allreduce one-shot", "allreduce", "rinx", "--ranks", 4),
                ("--ranks", "allreduce", "ring"),
                ("--ranks", "allreduce", "ring", "--ranks", 0),
                ("--rank 4: the plan has ranks 0..3", "allreduce", "ring", "--ranks", 4, "--rank", 4),
                ("root 3: must be 0..2", "broadcast", "chain", "--ranks", 3, "--root", 3),
                ("--root: allreduce has no root", "allreduce", "ring", "--ranks", 3, "--root", 1),
                ("--avg: broadcast reduces nothing", "broadcast", "chain", "--ranks", 3, "--avg")):
            self.assertIn(said, plan("show", *arguments, status=2))


class Verify(unittest.TestCase):
    def with_file(self, text, *arguments, status=0):
        with tempfile.NamedTemporaryFile("w", suffix=".plan") as file:
            file.write(text)
            file.flush()
            return plan("verify", file.name, *arguments, status=status).replace(file.name, "FILE")

    def test_one_plan_with_the_hashes_of_its_programs(self):
        text = plan("verify", "allreduce", "ring", "--ranks", 4)
        self.assertRegex(text, r"^12 proofs, 0 failed, [0-9]+ steps in [0-9.]+ s\n"
                               r"(rank [0-3] program [0-9a-f]{16}\n){4}$")
        of_text = self.with_file(plan("show", "allreduce", "ring", "--ranks", 4))
        self.assertEqual(of_text.splitlines()[1:], text.splitlines()[1:])

    def test_a_range_of_ranks_covers_roots_and_averages(self):
        # Of 1..3 ranks 1 + 2 + 3 roots, slots 1, 2 and 8, four modes.
        self.assertIn("72 proofs, 0 failed", plan("verify", "broadcast", "chain", "--ranks", "1..3"))
        # Sum and average; in place one-shot lends what is not input.
        self.assertIn("72 proofs, 0 failed",
                      plan("verify", "allreduce", "one-shot", "--ranks", "1..3"))

    def test_every_algorithm(self):
        found = json.loads(plan("verify", "--all", "--ranks", "1..9", "--slots", "2,3,8",
                                "--format", "json"))
        self.assertEqual((found["version"], found["found"], found["unreadable"]), (1, [], []))
        self.assertGreater(found["proofs"], 1000)
        self.assertNotIn("programs", found)

    def test_too_few_slots_are_found(self):
        text = plan("verify", "allreduce", "ring", "--ranks", 3, "--slots", 1, status=1)
        self.assertIn("allreduce.ring ranks 3 slots 1, not in place, messages copied: deadlock", text)
        self.assertIn("rank 0 lane 0 step 1: recv 2 | reduce input[2] | send 1", text)
        self.assertIn("4 proofs, 4 failed", text)
        found = json.loads(plan("verify", "allreduce", "ring", "--ranks", 3, "--slots", 1,
                                "--format", "json", status=1))
        self.assertEqual(found["found"][0]["fault"], "deadlock")

    def test_a_fault_says_on_which_machines_the_ranks_are(self):
        arguments = ("verify", "allreduce", "two-level", "--ranks", 5, "--groups", "2,3", "--dealt")
        self.assertIn("rank 4 program", plan(*arguments))
        self.assertIn("allreduce.two-level ranks 5 groups 2,3 dealt slots 1, not in place, ",
                      plan(*arguments, "--slots", 1, status=1))
        found = json.loads(plan(*arguments, "--slots", 1, "--format", "json", status=1))["found"][0]
        self.assertEqual((found["groups"], found["dealt"]), ([2, 3], True))

    def test_a_faulty_file_is_found(self):
        text = plan("show", "allreduce", "ring", "--ranks", 3)
        self.assertIn("recv 2 | reduce input[2]", text)
        self.assertIn("FILE ranks 3 slots 8, not in place, messages copied: ",
                      self.with_file(text.replace("reduce input[2]", "reduce input[1]"), status=1))

    def test_a_file_that_is_no_plan_is_found_with_the_line(self):
        self.assertEqual(self.with_file("plan allreduce.x ranks 1 chunks 1\nrank 0\n lane 0\n  read",
                                        status=1),
                         'FILE:4: expected "input", "output" or "scratch", found the end of the '
                         "line\n    read\n")
        found = json.loads(self.with_file("", "--format", "json", status=1))
        self.assertEqual(found["unreadable"][0]["line"], 1)

    def test_a_file_that_may_not_lend_in_place_is_a_plan(self):
        self.assertIn("calls in place lend nothing",
                      self.with_file(plan("show", "allreduce", "one-shot", "--ranks", 3)))

    def test_wrong_usage_says_what_is_wrong(self):
        for said, *arguments in (
                ("expected a file", ),
                ("expected a file", "allreduce", "ring", "more"),
                ("expected a file", "--all", "allreduce", "ring"),
                ("no algorithm", "allreduce", "rinx"),
                ("cannot be read", "/no/such/file"),
                ("cannot be read", "/"),
                ("--ranks", "--all", "--ranks", "5..4"),
                ("--ranks", "--all", "--ranks", "0..4"),
                ("--ranks", "--all", "--ranks", "1..4x"),
                ("--ranks", "--all", "--ranks", "1.4"),
                ("--slots", "--all", "--slots", "0"),
                ("--root: allreduce", "allreduce", "ring", "--ranks", "3", "--root", "1")):
            self.assertIn(said, plan("verify", *arguments, status=2))

    def test_the_options_of_one_call_are_refused_where_none_is_asked_for(self):
        text = plan("show", "allreduce", "ring", "--ranks", 3)
        for option, *value in (("--root", 0), ("--root", 1), ("--avg", ), ("--groups", 3)):
            self.assertIn(f"{option}: a file", self.with_file(text, option, *value, status=2))
            for arguments in (("--all", ), ("--all", "--ranks", 3), ("allreduce", "ring"),
                              ("broadcast", "chain", "--ranks", "2..3")):
                self.assertIn(f"{option}: --all and a range of ranks prove",
                              plan("verify", *arguments, option, *value, status=2))


if __name__ == "__main__":
    unittest.main()
