# SPDX-License-Identifier: Apache-2.0
"""An example ends well and prints lines that end like this.

usage: run.py LINE... -- COMMAND...
"""
import subprocess
import sys

end = sys.argv.index("--")
done = subprocess.run(sys.argv[end + 1:], text=True, capture_output=True, timeout=60)
print(done.stdout, done.stderr, sep="\n")
assert done.returncode == 0
for expected in sys.argv[1:end]:
    assert any(line.endswith(expected) for line in done.stdout.splitlines()), expected
