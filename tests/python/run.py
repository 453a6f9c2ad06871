# SPDX-License-Identifier: Apache-2.0
"""Runs tests of the package for Python in an environment that is made for them.

usage: run.py FOLDER TOOL REQUIREMENT... -- COMMAND...

FOLDER is where the package lies in the build folder, TOOL the program khoro. The environment, with
what the requirements name, is kept beside the package. Where they cannot be had the tests are
skipped.
"""
import fcntl
import os
import pathlib
import subprocess
import sys
import venv


def skip(why):
    print(why)
    sys.exit(77)


def environment(place, requirements):
    """The Python of an environment with the requirements; made once."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = place / "done"
        if not done.exists():
            try:
                venv.create(place, with_pip=True, clear=True)
            except (OSError, subprocess.CalledProcessError) as error:
                skip(f"no environment can be made (Debian: python3-venv): {error}")
            command = [place / "bin" / "python", "-m", "pip", "install", "-q", "--only-binary", ":all:",
                       "--disable-pip-version-check", *requirements]
            said = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL)
            if said.returncode:
                skip(f"pip cannot install {' '.join(requirements)}: {said.stderr.strip()[-400:]}")
            done.touch()
    return place / "bin" / "python"


def main():
    folder, tool, *rest = sys.argv[1:]
    requirements, command = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    if not (pathlib.Path(folder) / "khoro").exists():
        skip("the package was not built: -Dpython=enabled, and the headers of Python (python3-dev)")
    place = pathlib.Path(folder) / ("environment-" + "-".join(requirements).replace("=", ""))
    python = environment(place, requirements)
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    os.environ.update(PYTHONPATH=path, TEST_TOOL=tool, PYTHONDONTWRITEBYTECODE="1")
    os.execv(python, [str(python), *command])


main()
