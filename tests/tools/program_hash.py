# SPDX-License-Identifier: Apache-2.0
"""What runs is what was proved: the hashes in the log are those that `khoro plan verify` prints.

usage: program_hash.py KHORO PROGRAM WITH_SWITCHES
PROGRAM calls one allreduce; it has the flags of nccl-tests.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

khoro, program, switches = sys.argv[1], sys.argv[2], sys.argv[3] == "true"
RANKS = 3


def run(*command, **environment):
    done = subprocess.run(command, text=True, capture_output=True, timeout=120,
                          env={**os.environ, **environment})
    assert done.returncode == 0, f"{command} exits {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def proved(*what):
    found = json.loads(run(khoro, "plan", "verify", *what, "--format", "json"))
    assert not found["found"], found
    return dict(enumerate(found["programs"]))


def logged(**environment):
    text = run(khoro, "run", "-n", str(RANKS), "--", program, "-b", "64K", "-e", "64K", "-n", "1",
               "-w", "0", KHORO_LOG="info", **environment)
    lines = re.findall(r"rank (\d+): plan allreduce\.ring ranks 3 program hash ([0-9a-f]+)", text)
    assert lines, text
    return {int(rank): value for rank, value in lines}


ring = ("allreduce", "ring", "--ranks", str(RANKS))
assert logged(KHORO_ALGORITHM="allreduce:ring") == proved(*ring)
if switches:
    with tempfile.NamedTemporaryFile("w", suffix=".plan") as file:
        # Lane 1 instead of lane 0 is another program with the same results.
        text = run(khoro, "plan", "show", *ring)
        file.write(re.sub(r"lane 0\n", "lane 0\n  lane 1\n", text))
        file.flush()
        of_file = proved(file.name)
        assert of_file != proved(*ring)
        assert logged(KHORO_TEST_PLAN_FILE=file.name) == of_file
else:
    print("the plan file is left out: it needs a build with -Dtest_switches=true")
