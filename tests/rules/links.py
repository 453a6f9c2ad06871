# SPDX-License-Identifier: Apache-2.0
"""What a page links to is there."""
import re

from sources import ROOT, files, finish, text

faults = []
links = 0
for page in files(suffixes=(".md",)):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text(page)):
        links += 1
        if not (ROOT / page.parent / target).exists():
            faults.append(f"{page}: nothing at '{target}'")
finish(faults + ([] if links else ["no link found: the test looks in the wrong place"]))
