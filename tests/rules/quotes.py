# SPDX-License-Identifier: Apache-2.0
"""What the README shows of an example is what the tests compile and run.

A block of README.md that follows `<!-- quote: FILE -->` equals FILE between its quote marks.
"""
import re

from sources import finish, text

faults = []
blocks = re.findall(r"<!-- quote: (\S+) -->\n```\w*\n(.*?)```\n", text("README.md"), re.DOTALL)
for name, shown in blocks:
    quoted = re.search(r"/\* quote: begin \*/\n(.*?)/\* quote: end \*/", text(name), re.DOTALL)
    if not quoted:
        faults.append(f"{name}: no quote marks")
    elif quoted.group(1) != shown:
        faults.append(f"README.md: the block from {name} differs from the file; copy it anew")
finish(faults + ([] if blocks else ["README.md quotes no example"]))
