# SPDX-License-Identifier: Apache-2.0
"""A library exports what khoro.h declares and no more, under version KHORO_1, and needs little; nor
does its archive define more.

usage: symbols.py LIBRARY ARCHIVE
"""
import re
import subprocess
import sys

from sources import files, finish, text

NEEDED = r"(libc\.so\.6|ld-linux.*\.so\.\d|libm\.so\.6|libstdc\+\+\.so\.6|libgcc_s\.so\.1)"


def output(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


library, archive = sys.argv[1:]
exported = set()
faults = []
for line in output("nm", "-D", "--defined-only", library).splitlines():
    kind, symbol = line.split()[-2:]
    name, _, version = symbol.partition("@@")
    if name == "KHORO_1" and kind == "A":
        continue
    exported.add(name)
    if not name.startswith("khoro") or version != "KHORO_1":
        faults.append(f"exported: {symbol}")

declared = set()
for path in files("include", suffixes=".h"):
    declared |= set(re.findall(r"KHORO_API[^;(]*?(khoro\w+)\(", text(path)))
faults += [f"declared but not exported: {name}" for name in sorted(declared - exported)]
faults += [f"exported but not declared: {name}" for name in sorted(exported - declared)]

defined = {line.split()[-1] for line in output("nm", "-g", "--defined-only", archive).splitlines()
           if len(line.split()) == 3}
faults += [f"in the archive: {name}" for name in sorted(defined ^ declared)]

dynamic = output("readelf", "-d", library)
for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
    if not re.fullmatch(NEEDED, name):
        faults.append(f"needs {name}")
if not re.search(r"\(SONAME\).*\[libkhoro\.so\.1\]", dynamic):
    faults.append("its soname is not libkhoro.so.1")
finish(faults + ([] if declared else ["no function found in include/"]))
