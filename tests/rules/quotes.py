# SPDX-License-Identifier: Apache-2.0
"""What a page shows of a program or a project is what the tests build and run.

A block that follows `<!-- quote: FILE PART -->` equals what stands in FILE, a path from the root,
between the lines `quote: begin PART` and `quote: end`; PART may be left out.
"""
import re

from sources import files, finish, text

MARK = re.compile(r"<!-- quote: (\S+)( [\w-]+)? -->\n```\w*\n(.*?)```\n", re.DOTALL)


def part_of(name, part):
    """The lines between the marks, or None."""
    found = re.search(rf"quote: begin{re.escape(part)}(?: \*/)?\n(.*?)[^\w\n]*quote: end", text(name),
                      re.DOTALL)
    return found and found.group(1)


faults = []
readme = 0
for page in files(suffixes=(".md",)):
    shown = text(page)
    blocks = MARK.findall(shown)
    readme += len(blocks) if str(page) == "README.md" else 0
    if len(blocks) != shown.count("<!-- quote: "):
        faults.append(f"{page}: a quote mark without a block behind it")
    for name, part, block in blocks:
        quoted = part_of(name, part)
        if quoted is None:
            faults.append(f"{page}: {name} has no marks for the quote{part}")
        elif quoted != block:
            faults.append(f"{page}: the block from {name} differs from the file; copy it anew")
finish(faults + ([] if readme else ["README.md quotes no example"]))
