# SPDX-License-Identifier: Apache-2.0
"""A layer includes only what its row in layers.txt names, and the table names every layer.

Tests know Catch2 by support/catch.h alone, which has one set of words for all of its releases.
"""
import re

from sources import CODE, ROOT, files, finish, text

rows = {}
for line in text("tests/rules/layers.txt").splitlines():
    if line and not line.startswith("#"):
        layer, _, allowed = line.partition(":")
        rows[layer] = set(allowed.split()) | {layer}

faults = []
includes = 0
for path in files("src", suffixes=CODE):
    layer = path.parts[1]
    if layer not in rows:
        faults.append(f"{path}: layers.txt has no row for the folder '{layer}'")
        continue
    for number, line in enumerate(text(path).splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if not found:
            continue
        includes += 1
        name = found.group(1)
        target = "public" if name.startswith("khoro/") else name.split("/")[0]
        quoted = '"' in line
        if quoted and target != "public" and not (ROOT / "src" / name).exists():
            faults.append(f"{path}:{number}: \"{name}\" is not rooted at src/")
        if (quoted or target == "public") and target not in rows[layer]:
            faults.append(f"{path}:{number}: {layer} may not include {target} ({name})")
for path in files("tests", suffixes=CODE):
    if path.name != "catch.h" and "<catch2/" in text(path).replace("__has_include(<catch2/", ""):
        faults.append(f"{path}: includes Catch2 other than by support/catch.h")
if includes == 0:
    faults.append("no include found in src/: the test looks in the wrong place")
finish(faults)
