# SPDX-License-Identifier: Apache-2.0
"""The digits are learned alike by one process and by 1, 2 and 4 ranks, under every launcher there is.

usage: digits_ddp.py KHORO EXAMPLE PACKAGE

PACKAGE is the folder that holds the package for Python. It is run by this Python, or by one of an
environment beside the package, whichever has torch and scikit-learn; where none has, the test is
skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

KHORO, EXAMPLE, PACKAGE = sys.argv[1:]
PATIENCE = 100
EPOCHS = "4"
ENVIRONMENT = {**os.environ, "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1",
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def python():
    """A Python that can run the example."""
    why = ""
    for candidate in [pathlib.Path(sys.executable),
                      *sorted(pathlib.Path(PACKAGE).glob("environment-*/bin/python"))]:
        done = subprocess.run([candidate, "-c", "import torch, sklearn, khoro.torch"], text=True,
                              capture_output=True, env=ENVIRONMENT)
        if done.returncode == 0:
            return str(candidate)
        why += f"{candidate}: {done.stderr.strip().splitlines()[-1]}\n"
    print(f"skipped: no Python has torch, scikit-learn and khoro\n{why}", end="")
    sys.exit(77)


def learn(name, launcher, ranks, *options):
    done = subprocess.run([*launcher, EXAMPLE, "--epochs", EPOCHS, *options], text=True,
                          capture_output=True, timeout=PATIENCE, env=ENVIRONMENT,
                          stdin=subprocess.DEVNULL)
    print(f"{name}, {ranks} ranks: exit {done.returncode}\n{done.stdout}{done.stderr}")
    assert done.returncode == 0
    assert re.search(rf"^{ranks} ranks?, 96 steps of 64 digits$", done.stdout, re.M)
    # It judges the difference itself; here, that it had one to judge, and that they did learn.
    alone, learned = (re.search(rf"^{by} +[\d.]+ +([\d.]+)", done.stdout, re.M)
                      for by in ("one process", "khoro"))
    assert abs(float(alone[1]) - float(learned[1])) <= 1e-4 * float(alone[1]) + 1e-6
    assert 0 < float(learned[1]) < 1.5  # a guess among ten has 2.3
    return done.stdout


def main():
    interpreter = python()
    for ranks in (1, 2, 4):
        said = learn("khoro run", [KHORO, "run", "--no-tag", "-n", str(ranks), "--", interpreter],
                     ranks, *(["--compare"] if ranks == 2 else []))
        assert (ranks == 2) == bool(re.search(r"^gloo ", said, re.M))
    learn("torchrun", [interpreter, "-m", "torch.distributed.run", "--standalone",
                       "--nproc-per-node", "2"], 2)
    mpiruns = [path for path in map(shutil.which, ("mpirun.openmpi", "mpirun.mpich")) if path]
    for mpirun in mpiruns:
        learn(mpirun, [mpirun, "-n", "2", interpreter], 2)
    if not mpiruns:
        print("not tried: there is no mpirun")
    # A rank that learns other digits is found out.
    script = pathlib.Path(EXAMPLE).read_text().replace("share = batch[rank::size]",
                                                       "share = batch[:BATCH // size]")
    assert script != pathlib.Path(EXAMPLE).read_text()
    done = subprocess.run([KHORO, "run", "-n", "2", "--", interpreter, "-c", script, "--epochs", "1"],
                          text=True, capture_output=True, timeout=PATIENCE, env=ENVIRONMENT)
    assert done.returncode == 1, done.stdout + done.stderr


main()
