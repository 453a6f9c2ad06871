# SPDX-License-Identifier: Apache-2.0
"""Fails if the compiler had too few registers for the kernel, for whatever GPUs it was built: it
would be slow there, and wants looking at. kernel_sizes.py KERNEL_SIZES_TXT"""
import pathlib
import sys

head, *rows = pathlib.Path(sys.argv[1]).read_text().splitlines()
print(head, *rows, sep="\n")
spilled = [row.split()[0] for row in rows if int(row.split()[2]) > 0]
sys.exit(f"registers were spilled for {', '.join(spilled)}" if spilled or not rows else 0)
