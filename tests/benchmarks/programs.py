# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark as a user does and reads what it prints.

usage: programs.py right|refuses|liar|few_threads PROGRAM [LAUNCHER...]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

case, program, launcher = sys.argv[1], sys.argv[2], sys.argv[3:]


def run(*options):
    done = subprocess.run([*launcher, program, *options], text=True, capture_output=True, timeout=200,
                          stdin=subprocess.DEVNULL)
    print(done.args, done.returncode, done.stdout, done.stderr, sep="\n")
    return done


def rows(output):
    """The table's rows as lists of words; a launcher may have tagged the lines."""
    lines = [re.sub(r"^\[\d+\] ", "", line) for line in output.splitlines()]
    return [line.split() for line in lines if re.match(r"\s+\d", line)]


def right():
    threads = [] if launcher else ["-t", "3"]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "table.json"
        done = run(*threads, "-b", "1", "-e", "100K", "-f", "7", "-d", "all", "-o", "all", "-n", "3",
                   "-w", "1", "-c", "2", "-J", str(file))
        assert done.returncode == 0
        table = json.loads(file.read_text())
    shown = rows(done.stdout)
    assert shown and all(len(row) == 13 for row in shown)
    assert all(row[8] == "0" and row[12] in ("0", "N/A") for row in shown)
    assert [(int(row[0]), int(row[1]), row[2], row[3]) for row in shown] == [
        (row["size"], row["count"], row["type"], row["redop"]) for row in table["results"]]
    assert all(row["out_of_place"]["nwrong"] == 0 for row in table["results"])
    assert table["out_of_bounds"] == {"count": 0, "okay": "true"} and table["errors"] == []
    assert len(table["config"]["devices"]) == table["ranks"] > 1
    # The other ways to call and to count, too.
    done = run(*threads, "-b", "0", "-e", "4K", "-i", "1333", "-n", "2", "-m", "3", "-z", "1", "-a",
               "3", "-N", "2", "-C", "1", "-S", "1", "-T", "60", "-c", "1")
    assert done.returncode == 0 and len(rows(done.stdout)) == 8
    if not launcher:
        done = run("-t", "2", "-p", "1", "-b", "64", "-e", "64", "-n", "2")
        assert done.returncode == 0 and rows(done.stdout)[0][8] == "0"


def refuses():
    for options, words in ((["-g", "2"], "-g"), (["-G", "1"], "graph"), (["-R", "1"], "regist"),
                           (["-o", "mulsum"], "mulsum"), (["-d", "quad"], "quad"),
                           (["-o", "band", "-d", "half"], "integer"), (["-b", "x"], "'x'"),
                           (["-b", "2", "-e", "1"], "-b"), (["-n", "0"], "--iters"),
                           (["-i", "0"], "-i"), (["--wrong"], "--wrong")):
        done = run(*options)
        assert done.returncode == 2 and words in done.stderr and not rows(done.stdout)
    done = run("-t", "2", "-J", "/nowhere/table.json", "-b", "8", "-e", "8")
    assert done.returncode == 1 and "/nowhere/table.json" in done.stderr
    done = run("-t", "2", "-e", "4000000G")
    assert done.returncode == 1 and "-e" in done.stderr


def liar():
    done = run("-t", "3", "-b", "4", "-e", "64", "-f", "4", "-n", "2")
    assert done.returncode == 1
    assert [(row[8], row[12]) for row in rows(done.stdout)] == [("0", "0"), ("0", "0"), ("1", "1")]
    assert "rank 1: 1 wrong of 16 elements (float, out of place), first at 5" in done.stdout
    assert "rank 0:" not in done.stdout and "Out of bounds values : 2 FAILED" in done.stdout


def few_threads():
    """Threads run out while ranks join, or when they shall run: words, and no rank that waits for
    the one that could not be started."""
    khoro = launcher.pop()
    for alone, parallel, left in ((True, "0", 1), (True, "1", 1), (False, "0", 4), (False, "1", 1)):
        launcher[:] = [] if alone else [khoro, "run", "-n", "2", "--threads", "3", "--"]
        os.environ["THREADS_LEFT"] = str(left)
        begin = time.monotonic()
        done = run("-t", "3", "-p", parallel, "-b", "8", "-e", "8", "-n", "1")
        assert done.returncode == 1 and "cannot start thread" in done.stderr
        assert "terminate" not in done.stderr
        assert time.monotonic() - begin < 50  # the init deadline is 60 s


{"right": right, "refuses": refuses, "liar": liar, "few_threads": few_threads}[case]()
