# SPDX-License-Identifier: Apache-2.0
"""No file of code is longer than 500 lines, but the C face, which is one page for its readers; the
root meson.build stays under 100."""
from sources import CODE, files, finish, text

LIMITS = {"meson.build": 100, "include/khoro/khoro.h": 800}
faults = []
for path in files(suffixes=CODE + (".py", ".sh", "meson.build")):
    lines = text(path).count("\n")
    limit = LIMITS.get(str(path), 500)
    if lines > limit:
        faults.append(f"{path}: {lines} lines, more than {limit}: split it by idea")
finish(faults)
