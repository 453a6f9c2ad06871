# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone: public ones as C11 and C++20, private ones as C++20.

A compiler that is not there is left out, and so is what needs the headers of CUDA where there are none.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess

from sources import ROOT, files, finish, text

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
FOLDERS = {"public": ["include"], "private": ["src", "tests", "benchmarks", "tools"]}
INCLUDES = {"public": ["-Iinclude"],
            "private": [*(f"-I{folder}" for folder in ["include", *FOLDERS["private"]]),
                        "-fopenmp-simd", "-DFMT_HEADER_ONLY", '-DKHORO_GOLDEN_FOLDER=""',
                        '-DKHORO_TOPOLOGIES=""']}
OVER_CUDA = ("src/device/cuda/", "tests/device/fake_cuda/")
# Before all else but comments.
FIRST_INCLUDE = re.compile(r'(?://.*\n|\n)*#include "([^"]*)"')


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=FOLDERS)
    parser.add_argument("--cuda", metavar="FOLDER", help="the headers of CUDA")
    parser.add_argument("--built", metavar="FOLDER",
                        help="a build, which has compiled alone what its sources include before all else")
    parser.add_argument("compilers", nargs="+")
    return parser.parse_args()


options = arguments()
compilers = [name for name in options.compilers if shutil.which(name)]


def of_folder(path):
    """As an #include names it."""
    return path.relative_to(next(p for p in path.parents if len(p.parts) == 1))


def compiled_with_their_sources():
    """The names of headers that come first in a source of the build."""
    if not options.built:
        return set()
    folder = pathlib.Path(options.built)
    built = {(folder / each["file"]).resolve()
             for each in json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))}
    firsts = (FIRST_INCLUDE.match(text(path)) for path in files(*FOLDERS[options.kind], suffixes=".cpp")
              if (ROOT / path).resolve() in built)
    return {first.group(1) for first in firsts if first}


def commands():
    compiled = compiled_with_their_sources()
    for compiler in compilers:
        for path in files(*FOLDERS[options.kind], suffixes=".h"):
            of_c = str(path).startswith("tests/api/")  # shared by programs in C
            over_cuda = str(path).startswith(OVER_CUDA)
            if (over_cuda and not options.cuda) or str(of_folder(path)) in compiled:
                continue
            if not of_c:
                more = ["-isystem", options.cuda] if over_cuda else []
                yield path, [compiler, "-x", "c++", "-std=c++20", *INCLUDES[options.kind], *more]
            if of_c or options.kind == "public":
                yield path, [compiler, "-x", "c", "-std=c11", *INCLUDES[options.kind]]


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
