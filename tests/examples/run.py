# SPDX-License-Identifier: Apache-2.0
"""An example ends well and prints a line.

usage: run.py LINE COMMAND...
"""
import subprocess
import sys

done = subprocess.run(sys.argv[2:], text=True, capture_output=True, timeout=60)
print(done.stdout, done.stderr, sep="\n")
assert done.returncode == 0
assert any(line.endswith(sys.argv[1]) for line in done.stdout.splitlines())
