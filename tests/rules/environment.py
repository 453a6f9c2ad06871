# SPDX-License-Identifier: Apache-2.0
"""The environment is read in one file only: the settings table."""
import re

from sources import CODE, files, finish, text

HOME = "src/base/settings.cpp"
searched = list(files("src", "tools", "benchmarks", suffixes=CODE))
readers = [str(path) for path in searched
           if re.search(r"\b(secure_)?getenv\b", text(path))]
finish([f"{path}: getenv; a setting is a row of the table in {HOME}"
        for path in readers if path != HOME]
       + ([] if searched else ["no source found: the test looks in the wrong place"]))
