# SPDX-License-Identifier: Apache-2.0
"""`khoro run`: how it starts, feeds and ends a job.

usage: khoro_run.py KHORO WORLD
"""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from jobs import PATIENCE
from launcher import KHORO, Case, run, start

WORLD = sys.argv.pop(1)

WHO = "import os; print(*[os.environ[n] for n in ('KHORO_RANK', 'KHORO_SIZE', 'KHORO_LOCAL_RANK', " \
      "'KHORO_LOCAL_SIZE', 'KHORO_THREADS')])"
SLEEP = "import time; time.sleep(1000)"
# Ignores what can be ignored, and has a child in a process group of its own.
STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
subprocess.Popen(['sleep', '1000'], preexec_fn=os.setpgrp)
time.sleep(1000)
"""


class Start(Case):
    def test_each_process_learns_who_it_is(self):
        done = run("-n", 3, script=WHO)
        self.assertEqual(sorted(done.stdout.decode().splitlines()),
                         [f"[{rank}] {rank} 3 {rank} 3 1" for rank in range(3)])
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_process_of_several_ranks_learns_its_first(self):
        outside = {**os.environ, "KHORO_RANK": "77", "KHORO_THREADS": "9", "KHORO_RANKS": "kept"}
        done = run("-n", 2, "--threads", 3, script=WHO + "; print(os.environ['KHORO_RANKS'])",
                   env=outside)
        self.assertEqual(sorted(done.stdout.decode().splitlines()),
                         ["[0] 0 6 0 6 3", "[0] kept", "[3] 3 6 3 6 3", "[3] kept"])

    def test_all_ranks_of_a_job_hold_its_key_and_no_other_job_does(self):
        script = "import os; print(os.pread(int(os.environ['KHORO_KEY_FD']), 100, 0).hex())"
        keys = [{line[4:] for line in run("-n", 3, script=script).stdout.splitlines()}
                for _ in range(2)]
        self.assertEqual([len(found) for found in keys], [1, 1])
        self.assertEqual([len(key) for found in keys for key in found], [64, 64])
        self.assertNotEqual(*keys)

    def test_a_program_is_found_beside_khoro_on_path_and_by_name(self):
        self.assertEqual(run("-n", 1, "khoro", "--version").stdout.split()[:2], [b"[0]", b"khoro"])
        self.assertEqual(run("-n", 1, "echo", "-n", "x").stdout, b"[0] x\n")
        self.assertEqual(run("-n", 1, "--", "/bin/echo", "-n", "--", "y").stdout, b"[0] -- y\n")

    def test_a_program_that_cannot_be_run_is_named(self):
        for program in ("no-such-program", "/no/such", "/etc/passwd"):
            done = run("-n", 4, "--", program)
            self.assertEqual(done.returncode, 127)
            self.assertIn(f"cannot run '{program}'".encode(), done.stderr)

    def test_wrong_usage_is_2(self):
        for words in ((), ("-n", 2), ("-n", 0, "true"), ("-n", "x", "true"), ("-x", "true"),
                      ("-n", 2, "--threads", 0, "true"), ("-n", 2, "--tag-output", "--no-tag", "true")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)
            self.assertNotEqual(done.stderr, b"")

    def test_an_option_that_does_not_exist_is_not_taken_for_the_program(self):
        for words in (("--bogus", "true"), ("-b",), ("--bogus", "--", "true")):
            done = run("-n", 2, *words)
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)
            self.assertIn(f"khoro run has no option '{words[0]}'".encode(), done.stderr)
        done = run("-n", 2, "--", "--bogus")
        self.assertEqual(done.returncode, 127)
        self.assertIn(b"cannot run '--bogus'", done.stderr)
        self.assertEqual(run("-n", 1, "echo", "--bogus").stdout, b"[0] --bogus\n")

    def test_a_program_has_a_name(self):
        for words in ((), ("",), ("--", ""), ("", "true")):
            done = run("-n", 2, *words)
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)
            self.assertIn(b"no program is named", done.stderr)

    def test_64_ranks_start_soon(self):
        for program, line in ((["echo", "here"], b" here"), ([WORLD, "1"], b" sum 2016")):
            begin = time.monotonic()
            done = run("-n", 64, "--", *program)
            seconds = time.monotonic() - begin
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(done.stdout.count(line + b"\n"), 64)
            print(f"64 ranks of {os.path.basename(program[0])}: {seconds:.2f} s")
            self.assertLess(seconds, 60)  # it hangs

    def test_it_runs_without_standard_input_output_and_error(self):
        shell = f"'{KHORO}' run -n 2 -- sh -c 'exit 7' <&- >&- 2>&-"
        self.assertEqual(subprocess.run(["sh", "-c", shell], timeout=PATIENCE).returncode, 7)

    def test_rank_0_alone_reads_standard_input(self):
        script = "import os, sys; print(os.environ['KHORO_RANK'], len(sys.stdin.read()))"
        done = run("-n", 3, script=script, input=b"x" * 300_000)
        self.assertEqual(sorted(done.stdout.splitlines()), [b"[0] 0 300000", b"[1] 1 0", b"[2] 2 0"])


class End(Case):
    def test_the_status_of_the_first_failure_is_passed_on(self):
        script = "import os, sys, time; time.sleep(1 if os.environ['KHORO_RANK'] == '2' else 0.1)\n" \
                 "sys.exit({'1': 3, '2': 4}.get(os.environ['KHORO_RANK'], 0))"
        done = run("-n", 3, script=script)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr.decode(), r"rank 1 \(process \d+\) exited with status 3")
        self.assertIn("1 other process failed after that", done.stderr.decode())
        self.assertNotIn("status 4", done.stderr.decode())

    def test_survivors_have_time_to_report_and_are_ended_then(self):
        script = """
import os, sys, time
if os.environ['KHORO_RANK'] == '1': sys.exit(3)
time.sleep(1)
print('report', flush=True)
time.sleep(1000)
"""
        begin = time.monotonic()
        done = run("-n", 3, script=script, env=self.environment)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(sorted(done.stdout.splitlines()), [b"[0] report", b"[2] report"])
        self.assert_nothing_is_left()

    def test_a_signal_is_named_and_is_128_plus_n(self):
        for number, name in ((9, "SIGKILL"), (11, "SIGSEGV"), (6, "SIGABRT"), (15, "SIGTERM")):
            script = f"import os; os.environ['KHORO_RANK'] == '2' and os.kill(os.getpid(), {number})"
            done = run("-n", 3, script=script)
            self.assertEqual(done.returncode, 128 + number)
            self.assertRegex(done.stderr.decode(),
                             rf"rank 2 \(process \d+\) ended by signal {number} \({name}, ")

    def test_a_killed_process_of_several_ranks_is_named_by_all_of_them(self):
        done = run("-n", 2, "--threads", 4,
                   script="import os; os.environ['KHORO_RANK'] == '4' and os.kill(os.getpid(), 9)")
        self.assertIn("ranks 4-7 (process ", done.stderr.decode())

    def test_children_and_those_that_ignore_signals_are_ended_too(self):
        script = "import os, sys\nif os.environ['KHORO_RANK'] == '1': sys.exit(3)\n" + STUBBORN
        done = run("-n", 3, script=script, env=self.environment)
        self.assertEqual(done.returncode, 3)
        self.assertIn("killed ranks 0, 2, which did not end by themselves", done.stderr.decode())
        self.assert_nothing_is_left(0.5)

    def test_one_that_did_not_end_is_told_as_one(self):
        script = "import os, sys\nif os.environ['KHORO_RANK'] == '0': sys.exit(3)\n" + STUBBORN
        done = run("-n", 2, script=script, env=self.environment)
        self.assertEqual(done.returncode, 3)
        self.assertIn("killed rank 1, which did not end by itself\n", done.stderr.decode())

    def test_what_a_rank_leaves_running_is_ended_with_the_job(self):
        done = run("-n", 2, "--", "sh", "-c", "sleep 1000 & exit 0", env=self.environment)
        self.assertEqual(done.returncode, 0)
        self.assertIn("2 processes that the job left running were killed", done.stderr.decode())
        self.assert_nothing_is_left(0.5)

    def test_a_rank_in_a_shell_fails_like_one_without(self):
        done = run("-n", 2, "--", "sh", "-c", "sh -c '[ $KHORO_RANK = 0 ] || exit 3; sleep 1000'; exit $?",
                   env=self.environment)
        self.assertEqual(done.returncode, 3)
        self.assert_nothing_is_left(0.5)

    def test_a_timeout_is_a_number(self):
        for words in ("nan", "0", "-1", "1e9", "soon"):
            done = run("-n", 1, "--timeout", words, script="")
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(b"--timeout", done.stderr)

    def test_a_job_that_takes_too_long_is_ended_with_124(self):
        done = run("-n", 2, "--timeout", 0.3, script=STUBBORN, env=self.environment)
        self.assertEqual(done.returncode, 124)
        self.assertIn("timeout: ranks 0-1 still ran after 0.3 s\n", done.stderr.decode())
        self.assert_nothing_is_left(0.5)


class World(Case):
    """Jobs whose ranks join each other."""

    def world(self, shell, *words):
        return run(*words, "--", "sh", "-c", f"{shell}\nexec '{WORLD}'", env=self.environment)

    def test_the_ranks_of_a_job_join_each_other(self):
        for ranks in (1, 2, 5, 16):
            done = run("-n", ranks, "--", WORLD, 100)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(sorted(done.stdout.decode().splitlines()),
                             sorted(f"[{rank}] sum {ranks * (ranks - 1) // 2}"
                                    for rank in range(ranks)))

    def test_a_rank_that_ends_before_it_joins_is_told_to_those_that_wait_for_it(self):
        for rank, others in (("1", "02"), ("0", "12"), ("2", "01")):
            begin = time.monotonic()
            done = self.world(f'[ "$KHORO_RANK" = {rank} ] && kill -9 $$', "-n", 3)
            self.assertEqual(done.returncode, 137)
            lines = sorted(done.stdout.decode().splitlines())
            self.assertEqual(len(lines), 2, lines)
            for other, line in zip(others, lines):
                self.assertRegex(line, rf"\[{other}\] init 12: rank {rank} \(process \d+\) ended by "
                                       r"signal 9 \(SIGKILL, Killed\)")
            self.assertLess(time.monotonic() - begin, 30)
            self.assert_nothing_is_left(0.5)

    def test_it_is_told_even_if_rank_0_comes_late(self):
        done = self.world('[ "$KHORO_RANK" = 1 ] && exit 4; [ "$KHORO_RANK" = 0 ] && sleep 0.5',
                          "-n", 3)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(len(done.stdout.splitlines()), 2)
        self.assertEqual(done.stdout.count(b"exited with status 4"), 2, done.stdout)

    def test_a_timeout_in_init_names_those_that_had_ended(self):
        done = self.world('[ $(($KHORO_RANK % 2)) = 1 ] && exit 0', "-n", 4, "--timeout", 5)
        self.assertEqual(done.returncode, 124)
        self.assertIn("timeout: ranks 0, 2 still ran after 5 s; ranks 1, 3 had ended with status 0\n"
                      "khoro run: no rank is in a communicator\n", done.stderr.decode())

    def test_settings_that_differ_are_named_with_both_values(self):
        done = self.world('[ "$KHORO_RANK" = 1 ] && export KHORO_SLOTS=3', "-n", 3)
        self.assertEqual(done.returncode, 5)
        self.assertEqual(done.stdout.count(b"KHORO_SLOTS is '"), 3, done.stdout)


class Signals(Case):
    def test_the_first_interrupt_is_passed_on(self):
        script = """
import os, signal, sys, time
signal.signal(signal.SIGINT, lambda *_: (os.write(1, b'stopping\\n'), sys.exit(0)))
print('ready', flush=True)
time.sleep(1000)
"""
        launcher = self.start_and_wait_for(2, "-n", 2, script=script)
        self.assertEqual(sorted(launcher.stdout.readline() for _ in range(2)),
                         [b"[0] ready\n", b"[1] ready\n"])
        launcher.send_signal(signal.SIGINT)
        output, _ = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(sorted(output.splitlines()), [b"[0] stopping", b"[1] stopping"])
        self.assertEqual(launcher.returncode, 0)

    def test_ranks_that_an_interrupt_ends_give_130(self):
        launcher = self.start_and_wait_for(2, "-n", 2, "--", "sleep", "1000", script=None)
        launcher.send_signal(signal.SIGINT)
        launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, 130)

    def test_ranks_that_ignore_an_interrupt_have_2_seconds(self):
        launcher = self.start_and_wait_for(4, "-n", 2, script=STUBBORN)
        launcher.send_signal(signal.SIGINT)
        _, errors = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, 130)
        self.assertIn(b"which have 2 s to end", errors)
        self.assertIn(b"killed ranks 0-1, which did not end by themselves", errors)
        self.assert_nothing_is_left(0.5)

    def test_ranks_that_an_interrupt_does_not_end_are_ended_by_SIGTERM(self):
        script = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print('ready', flush=True)
time.sleep(1000)
"""
        launcher = self.start_and_wait_for(2, "-n", 2, script=script)
        self.assertEqual([launcher.stdout.readline()[3:] for _ in range(2)], [b" ready\n"] * 2)
        launcher.send_signal(signal.SIGINT)
        _, errors = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, 130)
        self.assertNotIn(b"did not end by themselves", errors)

    def test_the_second_interrupt_kills(self):
        launcher = self.start_and_wait_for(4, "-n", 2, script=STUBBORN)
        launcher.send_signal(signal.SIGINT)
        self.assertIn(b"once more kills", launcher.stderr.readline())
        self.assertEqual(len(self.of_ranks(launcher)), 4)
        launcher.send_signal(signal.SIGINT)
        _, errors = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, 130)
        self.assertNotIn(b"failed after that", errors)  # none was named before
        self.assert_nothing_is_left(0.5)

    def test_a_launcher_that_is_told_to_end_ends_its_job(self):
        for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")):
            launcher = self.start_and_wait_for(4, "-n", 2, script=STUBBORN)
            launcher.send_signal(number)
            _, errors = launcher.communicate(timeout=PATIENCE)
            self.assertEqual(launcher.returncode, 128 + number)
            self.assertIn(f"ended by signal {int(number)} ({name}), and all ranks with it\n",
                          errors.decode())
            self.assert_nothing_is_left(0.5)


class Orphans(Case):
    def test_nothing_is_left_when_the_launcher_is_killed(self):
        for script, count in ((SLEEP, 3), (STUBBORN, 6)):
            launcher = self.start_and_wait_for(count, "-n", 3, script=script)
            launcher.kill()
            launcher.communicate(timeout=PATIENCE)
            self.assert_nothing_is_left()

    def test_nothing_is_left_when_the_launcher_is_killed_while_it_starts(self):
        for delay in range(20):
            launcher = start("-n", 16, script=STUBBORN, env=self.environment)
            time.sleep(0.003 * delay)
            launcher.kill()
            launcher.communicate(timeout=PATIENCE)
            self.assert_nothing_is_left()

    def test_the_job_ends_when_its_guardian_is_killed(self):
        launcher = self.start_and_wait_for(6, "-n", 3, script=STUBBORN)
        os.kill(self.guardian_of(launcher), signal.SIGKILL)
        _, errors = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, 1)
        self.assertIn(b"the guardian of the job was killed", errors)
        self.assert_nothing_is_left()

    def test_nothing_is_left_when_a_rank_is_killed(self):
        launcher = self.start_and_wait_for(6, "-n", 3, script=STUBBORN)
        victim = int(pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
                     .read_text().split()[2])
        os.kill(victim, signal.SIGKILL)
        _, errors = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, 137)
        self.assertIn(f"(process {victim}) ended by signal 9 (SIGKILL, Killed)".encode(), errors)
        self.assert_nothing_is_left(0.5)


if __name__ == "__main__":
    unittest.main()
