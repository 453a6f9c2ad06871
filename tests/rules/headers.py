# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone: public ones as C11 and C++20, private ones as C++20.

usage: headers.py public|private COMPILER...    (a compiler that is not there is left out)
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys

from sources import ROOT, files, finish

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
FOLDERS = {"public": ["include"], "private": ["src", "tests", "benchmarks", "tools"]}
INCLUDES = {"public": ["-Iinclude"],
            "private": [*(f"-I{folder}" for folder in ["include", *FOLDERS["private"]]),
                        "-fopenmp-simd", "-DFMT_HEADER_ONLY", '-DKHORO_GOLDEN_FOLDER=""',
                        '-DKHORO_TOPOLOGIES=""']}
kind, compilers = sys.argv[1], [name for name in sys.argv[2:] if shutil.which(name)]


def commands():
    for compiler in compilers:
        for path in files(*FOLDERS[kind], suffixes=".h"):
            of_c = str(path).startswith("tests/api/")  # shared by programs in C
            if not of_c:
                yield path, [compiler, "-x", "c++", "-std=c++20", *INCLUDES[kind]]
            if of_c or kind == "public":
                yield path, [compiler, "-x", "c", "-std=c11", *INCLUDES[kind]]


def compile_alone(job):
    path, command = job
    name = path.relative_to(next(p for p in path.parents if len(p.parts) == 1))
    source = f'#include "{name}"\nint main({"void" if "c" in command else ""}) {{ return 0; }}\n'
    result = subprocess.run([*command, *WARNINGS, "-"], input=source, text=True, cwd=ROOT,
                            capture_output=True)
    return f"{' '.join(command)} {path}:\n{result.stderr}" if result.returncode else None


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(compile_alone, commands()))
print(f"{len(results)} compiled with {', '.join(compilers)}")
finish([fault for fault in results if fault] + ([] if results else ["nothing to compile"]))
