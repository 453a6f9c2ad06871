# SPDX-License-Identifier: Apache-2.0
"""Every file of code names its licence in its first lines."""
from sources import CODE, ROOT, files, finish

NAMED = CODE + (".py", ".sh", ".1", ".7", "meson.build", "meson_options.txt")
LINE = b"SPDX-License-Identifier: Apache-2.0"
checked = []
faults = []
for path in files():
    with open(ROOT / path, "rb") as file:
        head = file.read(200)
    if str(path).endswith(NAMED) or head.startswith(b"#!"):
        checked.append(path)
        if not any(LINE in line for line in head.split(b"\n")[:3]):
            faults.append(f"{path}: no line '{LINE.decode()}' among its first three")
finish(faults + ([] if checked else ["no file found"]))
