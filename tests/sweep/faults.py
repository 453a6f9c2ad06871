# SPDX-License-Identifier: Apache-2.0
"""Plants wrong plans, and sees that a sweep finds them and shows how to play them again.

usage: faults.py KHORO SWEEP_PROGRAM
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

khoro, program = sys.argv[1:]
SWEEP = [sys.executable, "-B", pathlib.Path(__file__).parent / "sweep.py", khoro, program]
# What the sweep takes the plan for: sums of three ranks, by the ring.
CASES = [word for value in ("collective=allreduce", "algorithm=allreduce:ring", "reduction=sum",
                            "ranks=3", "living=processes", "dtype=f32")
         for word in ("--only", value)] + ["--points", "60"]


def shown(algorithm):
    return subprocess.run([khoro, "plan", "show", "allreduce", algorithm, "--ranks", "3"],
                          check=True, text=True, stdout=subprocess.PIPE).stdout


def play(plan, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".plan") as file:
        file.write(plan)
        file.flush()
        environment = {**os.environ, "KHORO_TEST_PLAN_FILE": file.name}
        return subprocess.run([*SWEEP, *options], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300, env=environment)


ring = shown("ring")
left_out = re.sub(r"recv (\d) \| reduce input\[\d\] \| send", r"recv \1 | send", ring, count=1)
assert left_out != ring, ring
done = play(ring, *CASES)
assert done.returncode == 0, f"the right plan: {done.stdout}"
for fault, plan in (("a contribution is left out", left_out),
                    ("the sum is made in another order", shown("one-shot"))):
    done = play(plan, *CASES)
    again = re.search(r"^again: (.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 1 and again, f"{fault}, and the sweep says: {done.stdout}"
    assert "the output has other bits" in done.stdout, done.stdout
    assert play(plan, "--case", again.group(1)).returncode == 1, f"{fault}: not played again"
    assert play(ring, "--case", again.group(1)).returncode == 0, f"{fault}: another case than that"
    print(f"found: {fault}: {again.group(1)}")
