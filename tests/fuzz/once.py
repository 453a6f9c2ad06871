# SPDX-License-Identifier: Apache-2.0
"""Runs a fuzzer over so many texts, always the same ones, made of a corpus that it leaves as it is.

usage: once.py FUZZER RUNS CORPUS...
"""
import subprocess
import sys
import tempfile

fuzzer, runs, *corpora = sys.argv[1:]
with tempfile.TemporaryDirectory() as found:
    sys.exit(subprocess.run([fuzzer, f"-runs={runs}", "-seed=1", "-max_len=4096", "-timeout=60",
                             "-verbosity=0", "-print_final_stats=1", found, *corpora]).returncode)
