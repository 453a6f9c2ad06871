# SPDX-License-Identifier: Apache-2.0
"""No two headers define types of one name in one namespace.

Each compiles alone, and the linker keeps one of their members: the program then does with one type what is
meant for the other.
"""
import re

from sources import files, finish, text

DEFINITION = re.compile(r"^(?:struct|class|enum class)(?: alignas\(\w+\))? (\w+)(?: final)?(?: : .*)?(?: \{|$)")
defined = {}
for path in files("src", suffixes=".h"):
    namespace = None
    for line in text(path).splitlines():
        if found := re.match(r"namespace ([\w:]+) \{", line):
            namespace = found[1]
        elif (found := DEFINITION.match(line)) and not line.endswith(";"):
            defined.setdefault(f"{namespace}::{found[1]}", []).append(str(path))
finish([f"{name}: defined in {' and in '.join(paths)}" for name, paths in sorted(defined.items())
        if len(set(paths)) > 1] + ([] if len(defined) > 200 else ["found hardly any type"]))
