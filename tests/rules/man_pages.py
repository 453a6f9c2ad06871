# SPDX-License-Identifier: Apache-2.0
"""The man page of a program names every option that its --help prints.

usage: man_pages.py PAGE PROGRAM [SUBCOMMAND...]
"""
import re
import subprocess
import sys

from sources import finish

page = open(sys.argv[1], encoding="utf-8").read().replace("\\-", "-").replace("\\fB", " ")
shown = subprocess.run([*sys.argv[2:], "--help"], text=True, capture_output=True)
options = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*|-[A-Za-z]\b)", shown.stdout))
faults = [f"{sys.argv[1]}: says nothing of {option}" for option in sorted(options)
          if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", page)]
if shown.returncode or not options:
    faults.append(f"{' '.join(sys.argv[2:])} --help: exit {shown.returncode}, {shown.stdout}")
finish(faults)
