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


def shown(algorithm):
    return subprocess.run([khoro, "plan", "show", "allreduce", algorithm, "--ranks", "3"],
                          check=True, text=True, stdout=subprocess.PIPE).stdout


def changed(plan, what, into, count=0):
    found = re.sub(what, into, plan, count=count, flags=re.MULTILINE)
    assert found != plan, plan
    return found


def asks_for(words, plan):
    return changed(plan, r"^(plan .*)$", rf"\1 {words}")


def one_is_left_out(plan):
    return changed(plan, r"recv (\d) \| reduce input\[\d\] \| send", r"recv \1 | send", count=1)


RING, ONE_SHOT = shown("ring"), shown("one-shot")
SCALED = changed(asks_for("premul", RING), r"input\[\d\]", r"\g<0>*")
# What is wrong with a plan, one that is right for the same calls, and how these are told from others.
FAULTS = (
    ("a contribution is left out", one_is_left_out(RING), RING, "ring", "reduction=sum"),
    ("a sum is made in another order", ONE_SHOT, RING, "ring", "reduction=sum"),
    ("a function is not called for a contribution", one_is_left_out(RING), RING, "ring",
     "reduction=user"),
    ("a factor is left out", changed(SCALED, r"\]\*", "]", count=1), SCALED, "ring",
     "reduction=premul-device"),
    ("contributions to a function are not in rank order", asks_for("rank-order", RING),
     asks_for("rank-order", ONE_SHOT), "one-shot", "reduction=user-ordered", "determinism=default"),
    ("an exact sum is not made in rank order", asks_for("rank-order", RING),
     asks_for("rank-order", ONE_SHOT), "one-shot", "reduction=sum", "determinism=exact"),
)


def play(plan, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".plan") as file:
        file.write(plan)
        file.flush()
        environment = {**os.environ, "KHORO_TEST_PLAN_FILE": file.name}
        return subprocess.run([*SWEEP, *options], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300, env=environment)


for fault, wrong, right, algorithm, *values in FAULTS:
    values += ["collective=allreduce", f"algorithm=allreduce:{algorithm}", "ranks=3",
               "living=processes", "dtype=f32", "memory=host"]
    cases = [word for value in values for word in ("--only", value)] + ["--points", "60"]
    done = play(right, *cases)
    assert done.returncode == 0, f"the plan without that {fault}: {done.stdout}"
    done = play(wrong, *cases)
    again = re.search(r"^again: (.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 1 and again, f"{fault}, and the sweep says: {done.stdout}"
    assert "the output has other bits" in done.stdout, done.stdout
    assert play(wrong, "--case", again.group(1)).returncode == 1, f"{fault}: not played again"
    assert play(right, "--case", again.group(1)).returncode == 0, f"{fault}: another case than that"
    print(f"found: {fault}: {again.group(1)}")
