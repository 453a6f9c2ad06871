# SPDX-License-Identifier: Apache-2.0
"""The digits are learned alike by one process and by 1, 2 and 4 ranks, under every launcher there is.

usage: digits_ddp.py KHORO EXAMPLE, by a Python that has khoro, torch and scikit-learn
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

KHORO, EXAMPLE = sys.argv[1:]
PATIENCE = 100
EPOCHS = "4"
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1"}


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
    for ranks in (1, 2, 4):
        said = learn("khoro run", [KHORO, "run", "--no-tag", "-n", str(ranks), "--", sys.executable],
                     ranks, *(["--compare"] if ranks == 2 else []))
        assert (ranks == 2) == bool(re.search(r"^gloo ", said, re.M))
    learn("torchrun", [sys.executable, "-m", "torch.distributed.run", "--standalone",
                       "--nproc-per-node", "2"], 2)
    mpiruns = [path for path in map(shutil.which, ("mpirun.openmpi", "mpirun.mpich")) if path]
    for mpirun in mpiruns:
        learn(mpirun, [mpirun, "-n", "2", sys.executable], 2)
    if not mpiruns:
        print("not tried: there is no mpirun")
    # A rank that learns other digits is found out.
    script = pathlib.Path(EXAMPLE).read_text().replace("share = batch[rank::size]",
                                                       "share = batch[:BATCH // size]")
    assert script != pathlib.Path(EXAMPLE).read_text()
    done = subprocess.run([KHORO, "run", "-n", "2", "--", sys.executable, "-c", script, "--epochs", "1"],
                          text=True, capture_output=True, timeout=PATIENCE, env=ENVIRONMENT)
    assert done.returncode == 1, done.stdout + done.stderr


main()
