# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernel for every kind of GPU that is asked for, and embeds it.

usage: build_kernel.py NVCC SOURCE INCLUDE CODE ASSEMBLY TABLE DEPENDENCIES [KIND ...]

CODE gets the machine code of all kinds and, for those to come, PTX of the last one. ASSEMBLY gets a
source that puts it between two symbols. TABLE gets, and the build prints, what the kernel takes of
each kind: registers of a thread, bytes that are spilled, bytes of code.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WANTED = [80, 90, 100]
FLAGS = ["-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr",
         "-Werror", "all-warnings", "-Xptxas", "-v"]
nvcc, source, include, code, assembly, table, dependencies = sys.argv[1:8]
wanted = [int(kind) for kind in sys.argv[8:]] or WANTED


def run(*arguments):
    done = subprocess.run([nvcc, *arguments], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{nvcc} {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def kinds():
    known = {int(found) for found in re.findall(r"compute_(\d+)\b", run("--list-gpu-arch"))}
    return [kind for kind in wanted if kind in known] or [max(known)]


def row(said, kind, size):
    """What ptxas said of the kernel and of the functions that it calls."""
    part = said[said.index(f"'sm_{kind}'"):]
    part = part[:part.find("Compiling entry", 1) if "Compiling entry" in part[1:] else None]
    registers = max(map(int, re.findall(r"Used (\d+) registers", part)))
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill stores", part)))
    return f"{f'sm_{kind}':8}{registers:>10}{spilled:>15}{size:>15}"


asked = kinds()
targets = [f"-gencode=arch=compute_{kind},code=sm_{kind}" for kind in asked]
targets.append(f"-gencode=arch=compute_{asked[-1]},code=compute_{asked[-1]}")
with tempfile.TemporaryDirectory() as folder:
    said = run(*FLAGS, *targets, f"-I{include}", "--threads", str(os.cpu_count()), "-MD", "-MF",
               dependencies, "--keep", "--keep-dir", folder, "-fatbin", source, "-o", code)
    sizes = {kind: next(pathlib.Path(folder).glob(f"*_{kind}.cubin")).stat().st_size
             for kind in asked}
lines = [f"{'':8}{'registers':>10}{'bytes spilled':>15}{'bytes of code':>15}",
         *(row(said, kind, sizes[kind]) for kind in asked)]
pathlib.Path(table).write_text("\n".join(lines) + "\n")
print("\n".join(lines))
pathlib.Path(assembly).write_text(f"""/* SPDX-License-Identifier: Apache-2.0 */
.section .rodata
.balign 64
.globl kernel_code_begin
.hidden kernel_code_begin
kernel_code_begin:
.incbin "{os.path.abspath(code)}"
.globl kernel_code_end
.hidden kernel_code_end
kernel_code_end:
.section .note.GNU-stack,"",@progbits
""")
