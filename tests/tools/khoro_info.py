# SPDX-License-Identifier: Apache-2.0
"""`khoro info`, and that the manual page's settings are those of the program.

usage: khoro_info.py KHORO PAGE        (KHORO_ACCEPT=1 writes the settings into the page)
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

KHORO, PAGE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
BEGIN = '.\\" settings: written by tests/tools/khoro_info.py\n'
END = '.\\" end of settings\n'


def info(*arguments, status=0, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("KHORO_")}
    done = subprocess.run([KHORO, "info", *arguments], text=True, capture_output=True, timeout=60,
                          env={**environment, **variables})
    assert done.returncode == status, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def settings(**variables):
    return {row["name"]: row for row in json.loads(info("--format", "json", **variables))["settings"]}


def page_section():
    text = ""
    for row in settings().values():
        if row["scope"] != "test":
            text += (f'.TP\n.B {row["name"]}\n{row["help"]}\nScope {row["scope"]}; {row["legal"]}; '
                     f'default {row["default"] or "empty"}.\n')
    return text.replace("-", "\\-").replace("`", "\\(ga")


class Info(unittest.TestCase):
    def test_the_text_shows_every_setting_and_what_the_build_can_do(self):
        text = info()
        for name in settings():
            self.assertIn(f"\n{name} ", text)
        self.assertRegex(text, r"khoro \d+\.\d+\.\d+\n")
        self.assertRegex(text, r"\ntransports +shm")
        self.assertRegex(text, r"\ndtypes +.*\bbf16\b")
        self.assertRegex(text, r"\nreductions +.*\bavg\b")

    def test_it_says_where_a_value_comes_from(self):
        found = settings(KHORO_SLOTS="3")
        self.assertEqual((found["KHORO_SLOTS"]["value"], found["KHORO_SLOTS"]["from"]),
                         ("3", "environment"))
        self.assertEqual(found["KHORO_LOG"]["from"], "default")
        self.assertEqual(found["KHORO_LOG"]["value"], found["KHORO_LOG"]["default"])

    def test_a_bad_value_is_named_with_what_is_legal(self):
        said = info(status=2, KHORO_SLOTS="3x")
        self.assertIn("KHORO_SLOTS is '3x', which is not a number from 1 to 64", said)

    def test_an_unknown_name_is_warned_of(self):
        done = subprocess.run([KHORO, "info"], text=True, capture_output=True, timeout=60,
                              env={**os.environ, "KHORO_SLOT": "3"})
        self.assertEqual(done.returncode, 0)
        self.assertIn("did you mean KHORO_SLOTS?", done.stderr)

    def test_the_manual_page_holds_the_settings_of_this_program(self):
        page = PAGE.read_text()
        begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
        if os.environ.get("KHORO_ACCEPT"):
            PAGE.write_text(page[:begin] + page_section() + page[end:])
            return
        self.assertEqual(page[begin:end], page_section(),
                         "run this test once with KHORO_ACCEPT=1")


if __name__ == "__main__":
    unittest.main()
