# SPDX-License-Identifier: Apache-2.0
"""`khoro run`: how it passes on what the ranks write.

usage: khoro_run_output.py KHORO
"""
import fcntl
import hashlib
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from jobs import PATIENCE, wait_until
from launcher import KHORO, Case, job, run, start


class Output(Case):
    def test_lines_of_ranks_never_mix(self):
        script = """
import os, random, sys
rank = os.environ['KHORO_RANK']
text = ''.join(f'{rank} {i} {"x" * (i * 37 % 9000)} end\\n' for i in range(400)).encode()
at = 0
while at < len(text):
    step = random.randint(1, 5000)
    at += os.write(1, text[at:at + step])
os.write(2, b'last words without an end of line')
"""
        done = run("-n", 6, script=script)
        lines = done.stdout.decode().splitlines()
        for rank in range(6):
            mine = [line for line in lines if line.startswith(f"[{rank}] ")]
            self.assertEqual(mine, [f"[{rank}] {rank} {i} {'x' * (i * 37 % 9000)} end"
                                    for i in range(400)])
        self.assertEqual(len(lines), 6 * 400)
        self.assertEqual(sorted(done.stderr.decode().splitlines()),
                         [f"[{rank}] last words without an end of line" for rank in range(6)])

    def test_100_mb_arrive_whole_at_a_slow_reader(self):
        script = """
import os, sys
block = b''.join(b'%s %d %s\\n' % (os.environ['KHORO_RANK'].encode(), i, b'y' * (i % 200))
                 for i in range(10_000))
for _ in range(25_000_000 // len(block) + 1):
    sys.stdout.buffer.write(block)
"""
        begin = time.monotonic()
        launcher = start("-n", 4, "--no-tag", script=script)
        hashes, size, slept = [hashlib.sha256() for _ in range(4)], 0, False
        for line in launcher.stdout:
            hashes[line[0] - ord("0")].update(line)
            size += len(line)
            if size > 1_000_000 and not slept:
                time.sleep(0.5)
                slept = True
        errors = launcher.stderr.read()
        self.assertEqual((launcher.wait(PATIENCE), errors), (0, b""))
        launcher.stdout.close()
        launcher.stderr.close()
        for rank in range(4):
            block = b"".join(b"%d %d %s\n" % (rank, i, b"y" * (i % 200)) for i in range(10_000))
            expected = hashlib.sha256(block * (25_000_000 // len(block) + 1))
            self.assertEqual(hashes[rank].hexdigest(), expected.hexdigest())
        print(f"{size / 1e6:.0f} MB in {time.monotonic() - begin:.1f} s")
        self.assertGreater(size, 100_000_000)

    def test_lines_stay_whole_where_output_and_errors_share_one_pipe(self):
        script = """
import os
rank = os.environ['KHORO_RANK']
for i in range(300):
    for stream in (1, 2):
        line = f'{rank} {stream} {i} {"x" * (i * 37 % 9000)} end\\n'.encode()
        while line:
            line = line[os.write(stream, line):]
"""
        done = run("-n", 3, script=script, capture_output=False, stdout=subprocess.PIPE,
                   stderr=subprocess.STDOUT)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(sorted(lines),
                         sorted(f"[{rank}] {rank} {stream} {i} {'x' * (i * 37 % 9000)} end"
                                for rank in range(3) for stream in (1, 2) for i in range(300)))

    def test_output_goes_to_a_file_for_each_rank_and_stream_if_a_directory_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder, "of", "the job")
            done = run("-n", 2, "--threads", 2, "--output-dir", made, "--", "sh", "-c",
                       "echo $KHORO_RANK says; echo and $KHORO_RANK warns >&2; printf end")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
            self.assertEqual({path.name: path.read_text() for path in made.iterdir()},
                             {"rank-0.out": "0 says\nend", "rank-0.err": "and 0 warns\n",
                              "rank-2.out": "2 says\nend", "rank-2.err": "and 2 warns\n"})
            done = run("-n", 1, "--output-dir", made, "--", "sh", "-c", "echo anew; exit 3")
            self.assertEqual((done.returncode, done.stdout), (3, b""))
            self.assertIn(b"exited with status 3", done.stderr)
            self.assertEqual((made / "rank-0.out").read_text(), "anew\n")

    def test_an_output_directory_that_cannot_be_is_named_before_anything_runs(self):
        for words in (["--output-dir", "/etc/passwd"], ["--output-dir", "/proc/none"],
                      ["--output-dir", ""], ["--output-dir", "/tmp", "--tag-output"]):
            done = run("-n", 1, *words, "--", "echo", "ran")
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            self.assertIn(b"--output-dir", done.stderr)

    def test_a_line_without_end_is_cut_and_not_kept_for_ever(self):
        done = run("-n", 1, script="import os\nfor i in range(50): os.write(1, b'z' * 100_000)")
        lines = done.stdout.splitlines()
        self.assertEqual(sum(len(line) - 4 for line in lines), 5_000_000)
        self.assertLessEqual(max(map(len, lines)), 1 << 21)

    def test_output_that_cannot_be_written_is_a_failure(self):
        for redirection in ("> /dev/full", "2> /dev/full"):
            shell = f"'{KHORO}' run -n 2 -- sh -c 'echo out; echo err >&2' {redirection}"
            done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 1, redirection)
            if redirection[0] == ">":
                self.assertEqual(done.stderr.count(b"not all output could be written: No space"), 1)
            else:
                self.assertEqual(sorted(done.stdout.splitlines()), [b"[0] out", b"[1] out"])

    def test_lost_output_does_not_hide_the_status_of_a_rank(self):
        shell = f"'{KHORO}' run -n 2 -- sh -c 'echo out; exit 3' > /dev/full"
        done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"not all output could be written", done.stderr)

    def test_a_job_ends_when_nobody_reads_any_more(self):
        shell = f"'{KHORO}' run -n 2 -- yes 2>/dev/null | head -3"
        done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=PATIENCE,
                              env=self.environment)
        self.assertEqual(done.stdout.count(b"\n"), 3)
        self.assert_nothing_is_left()


class Unread(Case):
    """Jobs whose output nobody reads."""

    # More than a pipe holds, and not so much that the ranks have to wait for a reader.
    WRITE = "head -c 100000 /dev/zero | tr '\\0' x; echo"

    def start_unread(self, *words, errors=subprocess.PIPE):
        """The launcher, and the end of its output that nobody reads, which is full."""
        output, written = os.pipe()
        if errors == "full":
            errors = written
        launcher = subprocess.Popen(job(*words), stdout=written, stderr=errors, env=self.environment)
        self.addCleanup(lambda: (launcher.kill(), launcher.communicate(), os.close(output)))
        os.close(written)
        self.assertTrue(wait_until(lambda: self.held_by(output) > 60_000))
        return launcher, output

    def held_by(self, pipe):
        return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"0000"))[0]

    def start_and_let_end(self, status):
        """The same, once all ranks have ended."""
        launcher, output = self.start_unread("-n", 2, "--", "sh", "-c",
                                             f"{self.WRITE}; exit {status}")
        self.assertTrue(wait_until(lambda: not self.of_ranks(launcher)))
        return launcher, output

    def assert_ends(self, launcher, status, why):
        _, errors = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, status, errors)
        self.assertIn(f"khoro run: not all output was written: {why}\n", errors.decode())
        self.assert_nothing_is_left()

    def test_a_job_that_times_out_waits_2_seconds_for_its_reader(self):
        launcher, _ = self.start_unread("-n", 2, "--timeout", 1, "--", "yes")
        self.assert_ends(launcher, 124, "the rest was not read within 2 s")

    def test_a_job_that_a_signal_ends_waits_2_seconds_for_its_reader(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            launcher, _ = self.start_unread("-n", 2, "--", "yes")
            launcher.send_signal(number)
            self.assert_ends(launcher, 128 + number, "the rest was not read within 2 s")

    def test_a_second_interrupt_ends_it(self):
        launcher, _ = self.start_unread("-n", 2, "--", "yes")
        launcher.send_signal(signal.SIGINT)
        time.sleep(0.5)
        launcher.send_signal(signal.SIGINT)
        _, errors = launcher.communicate(timeout=PATIENCE)
        self.assertEqual(launcher.returncode, 130)
        self.assertIn(b"not all output was written: ", errors)

    def test_a_signal_gives_up_what_is_left_of_a_job_that_has_ended(self):
        for number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM"),
                             (signal.SIGHUP, "SIGHUP")):
            for status in (0, 7):
                launcher, _ = self.start_and_let_end(status)
                # Once it no longer sees to its ranks, whose ends it may have yet to see.
                time.sleep(0.5)
                launcher.send_signal(number)
                self.assert_ends(launcher, status or 128 + number,
                                 f"ended by signal {int(number)} ({name})")

    def test_a_job_that_has_ended_by_itself_waits_for_its_reader(self):
        for status in (0, 7):
            launcher, output = self.start_and_let_end(status)
            time.sleep(4)
            self.assertIsNone(launcher.poll())
            text = b""
            while block := os.read(output, 65_536):
                text += block
            self.assertEqual(sorted(text.splitlines()),
                             [b"[%d] " % rank + b"x" * 100_000 for rank in range(2)])
            _, errors = launcher.communicate(timeout=PATIENCE)
            self.assertEqual(launcher.returncode, status)
            self.assertNotIn(b"not all output", errors)

    def test_it_ends_too_where_its_errors_are_not_read_either(self):
        launcher, _ = self.start_unread("-n", 2, "--timeout", 1, "--", "yes", errors="full")
        self.assertEqual(launcher.wait(PATIENCE), 124)
        launcher, _ = self.start_unread("-n", 2, "--timeout", 2, "--", "sh", "-c", "yes >&2 & yes")
        self.assertEqual(launcher.wait(PATIENCE), 124)
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
