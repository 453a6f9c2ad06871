# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone: public ones as C11 and C++20, private ones as C++20.

usage: headers.py public|private [--cuda FOLDER] COMPILER...
A compiler that is not there is left out, and so is what needs the headers of CUDA where there are none.
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
OVER_CUDA = ("src/device/cuda/", "tests/device/fake_cuda/")
kind, arguments = sys.argv[1], sys.argv[2:]
cuda = arguments[:2] if arguments[:1] == ["--cuda"] else []
compilers = [name for name in arguments[len(cuda):] if shutil.which(name)]


def commands():
    for compiler in compilers:
        for path in files(*FOLDERS[kind], suffixes=".h"):
            of_c = str(path).startswith("tests/api/")  # shared by programs in C
            over_cuda = str(path).startswith(OVER_CUDA)
            if over_cuda and not cuda:
                continue
            if not of_c:
                more = ["-isystem", cuda[1]] if over_cuda else []
                yield path, [compiler, "-x", "c++", "-std=c++20", *INCLUDES[kind], *more]
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
