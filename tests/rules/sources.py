# SPDX-License-Identifier: Apache-2.0
"""The files of the project, for the rule tests."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CODE = (".h", ".cpp", ".c", ".cu", ".cuh")


def files(*folders, suffixes=None):
    """Every file below `folders` of the project (all of it when none is named), build folders and
    what git ignores on a checkout left out."""
    for folder in folders or (".",):
        for path, directories, names in os.walk(ROOT / folder):
            directories[:] = [name for name in directories
                              if not name.startswith(("build", ".git", "__pycache__", "shared"))]
            for name in sorted(names):
                if suffixes is None or name.endswith(suffixes):
                    yield (pathlib.Path(path) / name).relative_to(ROOT)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def finish(faults):
    """Prints the faults; the test fails if there are any."""
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)
