# SPDX-License-Identifier: Apache-2.0
"""The code is formatted as .clang-format says, by version 14: other versions differ."""
import re
import shutil
import subprocess
import sys

from sources import CODE, ROOT, files

found = None
for name in ("clang-format-14", "clang-format"):
    if shutil.which(name):
        said = subprocess.run([name, "--version"], text=True, capture_output=True).stdout
        if re.search(r"version 14\.", said):
            found = name
            break
if not found:
    print("clang-format 14 is not here (Debian: clang-format-14; PyPI: clang-format==14.0.6)")
    sys.exit(77)
paths = [str(path) for path in files(suffixes=CODE)]
print(f"{len(paths)} files; to mend: {found} -i FILE")
sys.exit(subprocess.run([found, "--dry-run", "-Werror", *paths], cwd=ROOT).returncode)
