# SPDX-License-Identifier: Apache-2.0
"""dev/gpu-check on virtual GPUs: it goes through all its parts, says why it leaves some out, and sees a wrong
byte.

usage: gpu_check.py SCRIPT BUILD TEST_SWITCHES
"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

script, build, test_switches = sys.argv[1:]
PARTS = {"build", "tests", "small calls", "large calls", "by hand", "NCCL", "sweep", "sanitizer"}
LEFT_OUT = {"build", "by hand", "NCCL", "sanitizer"}  # on virtual GPUs, of what was built already


def check(*options, **environment):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "table.json"
        done = subprocess.run([sys.executable, "-B", script, "--build", build, "--json", str(file), *options],
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        print(done.args, done.returncode, done.stdout, done.stderr, sep="\n")
        return done, json.loads(file.read_text()) if file.exists() else None


done, table = check("--device", "virtual")
assert done.returncode == 0 and table["counts"]["WRONG"] == 0
assert {row["part"] for row in table["rows"]} == PARTS
for row in table["rows"]:
    assert row["what"] in done.stdout
    if row["verdict"] == "skipped":
        assert row["reason"] in done.stdout
        assert row["part"] in LEFT_OUT or "power of 2" in row["reason"]
    else:
        assert row["verdict"] == "ok" and row["part"] not in LEFT_OUT

if test_switches == "true":
    done, table = check("--device", "virtual", KHORO_TEST_FLIP_BYTE="1")
    assert done.returncode == 1 and "WRONG" in done.stdout
    of_benchmarks = [row for row in table["rows"] if row["part"] in ("small calls", "large calls", "sweep")]
    assert all(row["verdict"] in ("WRONG", "skipped") for row in of_benchmarks)

try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    done, table = check()
    assert done.returncode == 1 and table is None and "no driver of GPUs" in done.stdout
