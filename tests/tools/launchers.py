# SPDX-License-Identifier: Apache-2.0
"""Ranks find each other under every launcher, and `khoro info --launcher` says how.

usage: launchers.py KHORO WORLD

Real mpirun and torchrun are tried where PATH has them.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

KHORO, WORLD = sys.argv.pop(1), sys.argv.pop(1)
PATIENCE = 120
FOREIGN = re.compile(r"KHORO_|OMPI_|PMIX?_|MPI_|PRTE_|HYDI_|MASTER_|TORCHELASTIC_|(LOCAL_)?RANK$|"
                     r"(LOCAL_)?WORLD_SIZE$")
# Root may start jobs in a container, and more ranks than cores.
CLEAN = {**{name: value for name, value in os.environ.items() if not FOREIGN.match(name)},
         "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
         "OMPI_MCA_rmaps_base_oversubscribe": "1",
         "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
# Starts its arguments as COUNT ranks, as torchrun does: torchrun.py COUNT PORT [WORD ...]
TORCHRUN = """
import os, subprocess, sys
count, port, *words = sys.argv[1:]
ranks = [subprocess.Popen(words, env={**os.environ, 'RANK': str(rank), 'WORLD_SIZE': count,
                                      'LOCAL_RANK': str(rank), 'LOCAL_WORLD_SIZE': count,
                                      'MASTER_ADDR': 'localhost', 'MASTER_PORT': port})
         for rank in range(int(count))]
sys.exit(max(rank.wait() for rank in ranks))
"""


def run(*words, status=0, environment=None, **variables):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True,
                          timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          env={**(environment or CLEAN), **variables})
    assert status is None or done.returncode == status, \
        f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}"
    return done


def launcher(*words, status=0, **variables):
    """What `khoro info --launcher` says at the end of a command line."""
    return json.loads(run(*words, KHORO, "info", "--launcher", "--format", "json", status=status,
                          **variables).stdout)


def torchrun(count, port):
    return [sys.executable, "-c", TORCHRUN, str(count), str(port)]


def sums(text):
    return [int(found) for found in re.findall(r"sum (\d+)", text)]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def mpiruns():
    """Every mpirun on PATH, and of which kind it is."""
    found = {}
    for name in ("mpirun", "mpirun.openmpi", "mpirun.mpich"):
        path = shutil.which(name)
        if not path or os.path.realpath(path) in [os.path.realpath(p) for p in found]:
            continue
        version = run(path, "--version", status=None).stdout
        kind = ("openmpi" if re.search("Open MPI|OpenRTE|PRTE|PRRTE", version) else
                "mpich" if re.search("HYDRA|MPICH", version) else None)
        if kind:
            found[path] = kind
            number = re.search(r"(?:Version:?|\)) *([\d.]+)", version)
            print(f"{path} is of {kind} {number[1] if number else ''}")
    return found


class Text(unittest.TestCase):
    def test_without_a_launcher_it_says_so(self):
        said = run(KHORO, "info", "--launcher").stdout
        self.assertIn("no rank: no launcher says both which rank this is and of how many", said)
        found = launcher()
        self.assertEqual((found["version"], found["launcher"], found["rank"]), (1, None, None))
        self.assertEqual([each["name"] for each in found["launchers"]],
                         ["khoro", "torchrun", "openmpi", "mpich"])
        self.assertEqual({each["state"] for each in found["launchers"]}, {"absent"})

    def test_it_names_what_was_found_who_wins_and_why(self):
        said = run(KHORO, "info", "--launcher", RANK="1", WORLD_SIZE="2", PMI_RANK="0").stdout
        self.assertRegex(said, r"torchrun +1 +2 .* wins\n")
        self.assertRegex(said, r"mpich .* is ignored: PMI_RANK is set and PMI_SIZE is not\n")
        self.assertIn("rank 1 of 2, from torchrun, or whoever sets RANK and WORLD_SIZE: no other", said)

    def test_the_object_holds_the_variables_and_who_set_them(self):
        found = launcher(RANK="1", WORLD_SIZE="2", MASTER_PORT="7")
        self.assertEqual((found["launcher"], found["rank"], found["size"]), ("torchrun", 1, 2))
        row = found["launchers"][1]
        self.assertEqual(row["variables"], {"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "7"})
        self.assertEqual((row["generation"], row["process"], row["local_rank"]),
                         (1, os.getpid(), None))

    def test_a_launcher_can_be_named(self):
        both = {"RANK": "1", "WORLD_SIZE": "2", "PMI_RANK": "0", "PMI_SIZE": "3"}
        self.assertEqual(launcher(**both)["launcher"], "torchrun")
        self.assertEqual(launcher(**both, KHORO_LAUNCHER="mpich")["launcher"], "mpich")
        self.assertIn("KHORO_LAUNCHER is 'slurm', which is not one of auto, khoro",
                      run(KHORO, "info", "--launcher", status=2, KHORO_LAUNCHER="slurm").stderr)


class Nested(unittest.TestCase):
    def test_the_innermost_wins(self):
        khoro = [KHORO, "run", "-n", "1", "--no-tag", "--"]
        torch = torchrun(1, 7)
        shell = ["sh", "-c", '"$@"; exit $?', "sh"]
        for words, winner in ((khoro, "khoro"), (torch, "torchrun"), (khoro + torch, "torchrun"),
                              (torch + khoro, "khoro"), (khoro + shell + torch + shell, "torchrun"),
                              (torch + shell + khoro + shell, "khoro"),
                              (torch + khoro + torch, "torchrun")):
            found = launcher(*words)
            self.assertEqual(found["launcher"], winner, words)

    def test_each_inner_job_is_one_of_its_own(self):
        done = run(KHORO, "run", "-n", 2, "--", sys.executable, "-c",
                   "import os, sys; os.execv(sys.argv[1], [*sys.argv[1:3], sys.argv[3], sys.argv[4],"
                   "str(29500 + int(os.environ['KHORO_RANK'])), *sys.argv[5:]])",
                   *torchrun(3, 0)[:4], WORLD)
        self.assertEqual(sums(done.stdout), [3] * 6)
        done = run(*torchrun(2, free_port()), KHORO, "run", "-n", 3, "--", WORLD)
        self.assertEqual(sums(done.stdout), [3] * 6)


class Plain(unittest.TestCase):
    def start(self, rank, size, **variables):
        process = subprocess.Popen([WORLD, "100"], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE,
                                   env={**CLEAN, "RANK": str(rank), "WORLD_SIZE": str(size),
                                        **variables})
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def ends(self, processes):
        return [(process.communicate(timeout=PATIENCE)[0], process.returncode)
                for process in processes]

    def test_rank_and_size_and_a_port_are_enough(self):
        # Two jobs at a time, whose ranks come in turn.
        ports = [free_port(), free_port()]
        self.assertNotEqual(*ports)
        processes = [self.start(rank, size, MASTER_PORT=port)
                     for rank in range(3) for port, size in zip(ports, (3, 4))]
        processes.append(self.start(3, 4, MASTER_PORT=ports[1]))
        self.assertEqual(sorted(self.ends(processes)),
                         sorted([("sum 3\n", 0)] * 3 + [("sum 6\n", 0)] * 4))

    def test_sockets_between_the_ranks_work_too(self):
        port = free_port()
        processes = [self.start(rank, 2, MASTER_PORT=port, KHORO_TRANSPORT="tcp")
                     for rank in range(2)]
        self.assertEqual(self.ends(processes), [("sum 1\n", 0)] * 2)

    def test_without_a_port_a_key_is_needed_and_named(self):
        out, status = self.ends([self.start(0, 2)])[0]
        self.assertEqual(status, 5)
        self.assertIn("RANK and WORLD_SIZE say which rank this is, and nothing says of which job; "
                      "set MASTER_PORT to a number that this job alone has, or name a file with a "
                      "key of this job in KHORO_JOB_KEY_FILE", out)
        with tempfile.TemporaryDirectory() as folder:
            key = pathlib.Path(folder) / "key"
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(32))
            processes = [self.start(rank, 2, KHORO_JOB_KEY_FILE=str(key)) for rank in range(2)]
            self.assertEqual(self.ends(processes), [("sum 1\n", 0)] * 2)

    def test_half_a_launcher_is_ignored_with_one_warning(self):
        port = free_port()
        processes = [self.start(rank, 2, MASTER_PORT=port, PMI_RANK=str(rank)) for rank in range(2)]
        for process in processes:
            out, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(out, "sum 1\n")
            self.assertEqual(err.count("what mpirun of MPICH says is ignored: PMI_RANK is set and "
                                       "PMI_SIZE is not"), 1, err)
            self.assertEqual(len(err.splitlines()), 1, err)
        alone = run(WORLD, status=5, RANK="0")
        self.assertIn("no launcher says both which rank this is and of how many", alone.stdout)
        self.assertIn("RANK is set and WORLD_SIZE is not", alone.stderr)

    def test_ranks_on_several_machines_are_refused_at_once(self):
        done = run(WORLD, status=5, RANK="0", WORLD_SIZE="4", LOCAL_WORLD_SIZE="2", MASTER_PORT="7")
        self.assertIn("torchrun has 4 ranks and 2 of them on this machine", done.stdout)

    def test_ranks_of_one_number_are_told(self):
        port = free_port()
        processes = [self.start(0, 2, MASTER_PORT=port) for _ in range(2)]
        while all(process.poll() is None for process in processes):  # the other waits for rank 1
            time.sleep(0.01)
        late = next(process for process in processes if process.poll() is not None)
        processes.remove(late)
        self.assertIn("another process is rank 0 of the same job", late.communicate()[0])
        self.assertEqual(late.returncode, 5)
        processes.append(self.start(1, 2, MASTER_PORT=port))
        self.assertEqual(self.ends(processes), [("sum 1\n", 0)] * 2)


class Horovodrun(unittest.TestCase):
    def test_its_spelling_is_understood(self):
        here = socket.gethostname()
        for words in (("-np", 2), ("--num-proc", 2), ("-np", 2, "-H", "localhost:2"),
                      ("-H", f"{here}:1,127.0.0.1:1", "-np", 2), ("-H", "[::1]:2", "-np", "2"),
                      ("-np", 2, "--hosts", "localhost,localhost"), ("--transport", "tcp", "-np", 2)):
            self.assertEqual(sums(run(KHORO, "run", *words, WORLD).stdout), [1, 1], words)
        # The program's own words are left alone.
        self.assertEqual(run(KHORO, "run", "-np", 1, "--no-tag", "echo", "-np", 3).stdout, "-np 3\n")

    def test_hosts_that_cannot_be_had_are_named(self):
        for hosts, why in (("h2:2", "'h2:2' is not this machine"), ("localhost:1", "slots for 1 of 2"),
                           ("localhost:x", "'localhost:x' has no number of slots"),
                           ("localhost:2,", "'' names no host"), ("localhost:0", "no number"),
                           ("localhost:2 ", "'localhost:2 ' has no number of slots")):
            said = run(KHORO, "run", "-np", 2, f"--hosts={hosts}", "true", status=2).stderr
            self.assertIn(why, said)

    def test_other_options_get_a_clear_word(self):
        for option, instead in (("--timeline-filename", "KHORO_TRACE"), ("-p", "leave it out"),
                                ("--output-filename", "--output-dir"), ("--min-np", "keeps its size"),
                                ("--fusion-threshold-mb=3", "leave it out"),
                                ("--bogus", "comes after --")):
            said = run(KHORO, "run", "-np", 2, option, "3", "true", status=2).stderr
            self.assertIn(f"khoro run has no option '{option}'; ", said)
            self.assertIn(instead, said)


class Torch(unittest.TestCase):
    """What programs made for torchrun read, from `khoro run`."""

    def test_they_find_their_rank_and_a_free_port(self):
        script = "import os, socket; e = os.environ; rank = e['RANK']\n" \
                 "if rank == '0':\n" \
                 "    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n" \
                 "    s.bind((e['MASTER_ADDR'], int(e['MASTER_PORT']))); s.listen()\n" \
                 "print(rank, e['WORLD_SIZE'], e['LOCAL_RANK'], e['LOCAL_WORLD_SIZE'], " \
                 "[n for n in e if n.startswith('TORCHELASTIC')])"
        done = run(KHORO, "run", "-n", 2, "--no-tag", "--", sys.executable, "-c", script,
                   RANK="7", WORLD_SIZE="8", TORCHELASTIC_USE_AGENT_STORE="True", MASTER_PORT="1")
        self.assertEqual(sorted(done.stdout.splitlines()), ["0 2 0 2 []", "1 2 1 2 []"])

    def test_nobody_else_gets_that_port(self):
        script = "import os, socket; ports = set()\n" \
                 "for _ in range(20_000):\n" \
                 "    with socket.socket() as s: s.bind(('127.0.0.1', 0)); ports.add(s.getsockname()[1])\n" \
                 "assert len(ports) > 1000; assert int(os.environ['MASTER_PORT']) not in ports"
        run(KHORO, "run", "-n", 1, "--", sys.executable, "-c", script)

    @unittest.skipUnless(shutil.which("torchrun"), "no torchrun on PATH")
    def test_torchrun_itself(self):
        words = ["torchrun", "--nproc-per-node", "3", "--master-port", free_port(), "--no-python"]
        self.assertEqual(sums(run(*words, WORLD).stdout), [3] * 3)
        inside = run(KHORO, "run", "-n", 1, "--", *words, WORLD)
        self.assertEqual(sums(inside.stdout), [3] * 3)
        words[2] = "1"
        found = launcher(*words)
        self.assertEqual((found["launcher"], found["size"]), ("torchrun", 1))
        self.assertIn("TORCHELASTIC_RUN_ID", found["launchers"][1]["variables"])


class Mpirun(unittest.TestCase):
    found = mpiruns()

    def each(self):
        if not self.found:
            self.skipTest("no mpirun on PATH")
        for path, kind in self.found.items():
            print(f"trying {path}")
            yield path, kind

    def test_kinds(self):
        missing = {"openmpi", "mpich"} - set(self.found.values())
        if missing:
            self.skipTest(f"no mpirun of {' and of '.join(sorted(missing))} on PATH")

    def test_ranks_find_each_other(self):
        for path, _ in self.each():
            for transport in ("auto", "tcp"):
                done = run(path, "-n", 4, WORLD, 10, KHORO_TRANSPORT=transport)
                self.assertEqual(sums(done.stdout), [6] * 4, path)
                self.assertEqual(done.stderr, "")

    def test_jobs_at_a_time_do_not_meet(self):
        for path, _ in self.each():
            with tempfile.TemporaryDirectory() as folder:
                for name in "abc":  # for Open MPI, whose jobs else share a folder that each may remove
                    os.mkdir(f"{folder}/{name}")
                jobs = [subprocess.Popen([path, "-n", str(count), WORLD, "10"], text=True,
                                         env={**CLEAN, "TMPDIR": f"{folder}/{name}"},
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
                        for name, count in zip("abc", (2, 3, 3))]
                said = [job.communicate(timeout=PATIENCE) for job in jobs]
            self.assertEqual([sums(out) for out, _ in said], [[1] * 2, [3] * 3, [3] * 3], said)

    def test_a_shell_in_between_may_close_what_is_inherited(self):
        shell = [sys.executable, "-c",
                 "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"]
        for path, _ in self.each():
            self.assertEqual(sums(run(path, "-n", 3, *shell, WORLD).stdout), [3] * 3)

    def test_one_job_after_the_other_in_one_shell(self):
        for path, _ in self.each():
            done = run(path, "-n", 2, "sh", "-c", f"'{WORLD}' && '{WORLD}' && '{WORLD}'")
            self.assertEqual(sums(done.stdout), [1] * 6)

    def test_they_are_known_by_their_names_alone_and_inside_of_others(self):
        khoro = [KHORO, "run", "-n", "1", "--no-tag", "--"]
        for path, kind in self.each():
            mpirun = [path, "-n", "1"]
            for words, winner in ((mpirun, kind), (khoro + mpirun, kind), (mpirun + khoro, "khoro"),
                                  (mpirun + torchrun(1, 7), "torchrun"),
                                  (torchrun(1, 7) + mpirun, kind)):
                found = launcher(*words)
                self.assertEqual(found["launcher"], winner, words)
                row = next(each for each in found["launchers"] if each["name"] == winner)
                self.assertEqual((row["rank"], row["size"]), (0, 1))
                if winner == kind:
                    self.assertEqual((row["local_rank"], row["local_size"]), (0, 1))

    def test_mpich_inside_of_itself(self):
        for path, kind in self.each():
            if kind == "mpich":
                done = run(path, "-n", 2, path, "-n", 3, WORLD)
                self.assertEqual(sums(done.stdout), [3] * 6)


if __name__ == "__main__":
    unittest.main()
