# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone: public ones as C11 and C++20, private ones as C++20.

usage: headers.py public|private [--cuda FOLDER] [--built FOLDER] COMPILER...
A compiler that is not there is left out, and so is what needs the headers of CUDA where there are none.
What a source file of that build includes before all else was compiled alone with it.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess

from sources import ROOT, files, finish

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
FOLDERS = {"public": ["include"], "private": ["src", "tests", "benchmarks", "tools"]}
INCLUDES = {"public": ["-Iinclude"],
            "private": [*(f"-I{folder}" for folder in ["include", *FOLDERS["private"]]),
                        "-fopenmp-simd", "-DFMT_HEADER_ONLY", '-DKHORO_GOLDEN_FOLDER=""',
                        '-DKHORO_TOPOLOGIES=""']}
OVER_CUDA = ("src/device/cuda/", "tests/device/fake_cuda/")
FIRST_INCLUDE = re.compile(r'^#include ["<]([^">]*)', re.MULTILINE)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=FOLDERS)
    parser.add_argument("--cuda")
    parser.add_argument("--built")
    parser.add_argument("compilers", nargs="+")
    return parser.parse_args()


options = arguments()
kind = options.kind
compilers = [name for name in options.compilers if shutil.which(name)]


def of_folder(path):
    """As an #include names it."""
    return path.relative_to(next(p for p in path.parents if len(p.parts) == 1))


def compiled_with_their_sources():
    """The names of headers that come first in a source file of the build."""
    if not options.built:
        return set()
    with open(os.path.join(options.built, "compile_commands.json"), encoding="utf-8") as commands:
        built = {os.path.realpath(os.path.join(each["directory"], each["file"]))
                 for each in json.load(commands)}
    found = set()
    for path in sorted(built):
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as source:
            first = FIRST_INCLUDE.search(source.read())
        if first:
            found.add(first.group(1))
    return found


def commands():
    compiled = compiled_with_their_sources()
    for compiler in compilers:
        for path in files(*FOLDERS[kind], suffixes=".h"):
            of_c = str(path).startswith("tests/api/")  # shared by programs in C
            over_cuda = str(path).startswith(OVER_CUDA)
            if (over_cuda and not options.cuda) or str(of_folder(path)) in compiled:
                continue
            if not of_c:
                more = ["-isystem", options.cuda] if over_cuda else []
                yield path, [compiler, "-x", "c++", "-std=c++20", *INCLUDES[kind], *more]
            if of_c or kind == "public":
                yield path, [compiler, "-x", "c", "-std=c11", *INCLUDES[kind]]


def compile_alone(job):
    path, command = job
    source = f'#include "{of_folder(path)}"\nint main({"void" if "c" in command else ""}) {{ return 0; }}\n'
    result = subprocess.run([*command, *WARNINGS, "-"], input=source, text=True, cwd=ROOT,
                            capture_output=True)
    return f"{' '.join(command)} {path}:\n{result.stderr}" if result.returncode else None


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(compile_alone, commands()))
print(f"{len(results)} compiled with {', '.join(compilers)}")
finish([fault for fault in results if fault] + ([] if results else ["nothing to compile"]))
