# SPDX-License-Identifier: Apache-2.0
"""The man page of a program documents the options that --help prints, and no others.

usage: man_pages.py PAGE PROGRAM

An option is documented in the head of an item: of the section OPTIONS for the program, of KHORO RUN
for its subcommand `run`, and so on for subcommands of subcommands.
"""
import pathlib
import re
import subprocess
import sys

from sources import finish

page, program = sys.argv[1:]
name = pathlib.Path(program).name
COMMON = {"-h", "--help"}  # of every subcommand, documented once


def documented():
    """By section, the options in the heads of items."""
    sections, section, head = {}, None, False
    for line in pathlib.Path(page).read_text(encoding="utf-8").splitlines():
        line = re.sub(r"\\f[A-Z]", " ", line).replace("\\-", "-")
        if line.startswith(".SH "):
            section = sections.setdefault(line[4:].strip('"'), set())
        elif head:
            section |= set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", line))
        head = line in (".TP", ".TQ")
    return sections


def look(words, sections):
    """Faults of the program or subcommand, and of the subcommands below it."""
    shown = subprocess.run([program, *words, "--help"], text=True, capture_output=True)
    called = " ".join([name, *words])
    if shown.returncode or "--help" not in shown.stdout:
        return [f"{called} --help: exit {shown.returncode}, {shown.stdout}"]
    options = set()
    for names in re.findall(r"^ +(-\S+)", shown.stdout, re.MULTILINE):
        options |= set(names.split(","))
    found = sections.get(called.upper() if words else "OPTIONS", set())
    if words:
        options -= COMMON
    faults = [f"{page}: says nothing of {called} {option}" for option in sorted(options - found)]
    faults += [f"{page}: {called} has no {option}" for option in sorted(found - options)]
    _, _, below = shown.stdout.partition("\nSubcommands:\n")
    for subcommand in re.findall(r"^  (\w+)", below, re.MULTILINE):
        faults += look([*words, subcommand], sections)
    return faults


finish(look([], documented()))
