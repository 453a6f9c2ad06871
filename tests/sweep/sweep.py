# SPDX-License-Identifier: Apache-2.0
"""Plays a sweep: calls of every kind on ranks of every kind, whose results are compared bit by bit.

Draws cases, plays them in one job for each way in which ranks live, and adds up what was played. A
case that goes wrong is shown as a line, which --case plays again.
"""
import argparse
import collections
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

GPUS = 4
# How a job of so many ranks is started.
LIVING = {"processes": lambda ranks: ["-n", ranks],
          "threads": lambda ranks: ["-n", 1, "--threads", ranks],
          "mixed": lambda ranks: ["-n", (ranks + 1) // 2, "--threads", 2]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("khoro", help="the program `khoro`")
    parser.add_argument("player", help="the program `sweep`")
    what = parser.add_argument_group("cases")
    what.add_argument("--pairs", action="store_true",
                      help="cases in which every pair of values occurs that can occur")
    what.add_argument("--points", type=int, default=0, metavar="N", help="as many random cases")
    what.add_argument("--seed", type=int, default=1, help="of all that is random (default 1)")
    what.add_argument("--only", action="append", default=[], metavar="AXIS=VALUE",
                      help="a value that all cases have, drawn or not")
    what.add_argument("--exhaustive", type=int, default=0, metavar="RANKS",
                      help="every case there is, up to so many ranks, instead")
    what.add_argument("--case", metavar="LINE", help="this case alone, as a line that was shown")
    return parser.parse_args()


def environment():
    """The settings of whoever runs this would win over those that the cases need; what is planted
    to be found stays. Of more ranks than GPUs some share one."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("KHORO_") or name.startswith("KHORO_TEST_")}
    return {**kept, "KHORO_VIRTUAL_GPUS": str(GPUS)}


class Sweep:
    def __init__(self, options, folder):
        self.options = options
        self.cases, self.tally = folder / "cases", folder / "tally"
        self.axes = {}  # the values of each
        self.impossible = {}  # pair: why
        self.played = collections.Counter()  # cases by (axis, value)
        self.pairs = set()
        self.skipped = collections.Counter()  # cases by why

    def only(self):
        return [word for each in self.options.only for word in ("--only", each)]

    def draw(self):
        pairs = ["--pairs"] if self.options.pairs else []
        done = subprocess.run([self.options.player, "draw", *pairs, *self.only(), "--cases", self.cases,
                               "--points", str(self.options.points),
                               "--seed", str(self.options.seed)],
                              check=True, text=True, stdout=subprocess.PIPE, env=environment())
        for kind, *words in (line.split("\t") for line in done.stdout.splitlines()):
            if kind == "axis":
                self.axes[words[0]] = words[1:]
            else:
                self.impossible[tuple(words[:4])] = words[4]
        if self.options.case:
            self.cases.write_text(self.options.case.strip() + "\n")

    def jobs(self):
        """(living, ranks) of each job that has something to play."""
        if self.options.exhaustive:
            return [(living, self.options.exhaustive) for living in LIVING]
        ranks = collections.Counter()
        for line in self.cases.read_text().splitlines():
            case = dict(word.partition("=")[::2] for word in line.split())
            if case.get("living") not in LIVING:
                sys.exit(f"sweep: no case: {line}")
            ranks[case["living"]] = max(ranks[case["living"]], int(case["ranks"]))
        return sorted(ranks.items())

    def play(self, living, ranks):
        """Whether all went well."""
        cases = ["--cases", self.cases]
        if self.options.exhaustive:
            cases = ["--exhaustive", self.options.exhaustive, "--seed", self.options.seed,
                     *self.only()]
        command = [self.options.khoro, "run", *LIVING[living](ranks), "--no-tag", "--",
                   self.options.player, "play", "--living", living, *cases, "--tally", self.tally]
        self.tally.unlink(missing_ok=True)
        since = time.monotonic()
        code = subprocess.run([str(word) for word in command], env=environment(),
                              stdin=subprocess.DEVNULL).returncode
        before = self.count()
        self.add_tally()
        print(f"{living}: {self.count() - before} cases in {time.monotonic() - since:.1f} s, "
              f"exit status {code}", flush=True)
        return code == 0

    def add_tally(self):
        lines = self.tally.read_text().splitlines() if self.tally.exists() else []
        for kind, *words in (line.split("\t") for line in lines):
            if kind == "value":
                self.played[words[0], words[1]] += int(words[2])
            elif kind == "pair":
                self.pairs.add(tuple(words))
            else:
                self.skipped[words[1]] += int(words[0])

    def count(self):
        return sum(self.played["living", living] for living in LIVING)

    def missing(self):
        """Pairs that should have been played and were not."""
        possible = ((a, x, b, y) for (a, xs), (b, ys) in itertools.combinations(self.axes.items(), 2)
                    for x in xs for y in ys)
        return [pair for pair in possible if pair not in self.pairs and pair not in self.impossible]

    def report(self):
        print("cases by axis and value:")
        for axis, values in self.axes.items():
            print(f"  {axis:<10}", *(f"{value} {self.played[axis, value]}" for value in values),
                  sep="  ")
        if self.options.pairs:
            self.report_pairs()
        for why, cases in sorted(self.skipped.items()):
            print(f"skipped {cases} combinations: {why}")
        print(f"{self.count()} cases played")

    def report_pairs(self):
        whys = collections.defaultdict(lambda: collections.defaultdict(list))
        for (axis, value, other_axis, other), why in self.impossible.items():
            whys[why][axis, value, other_axis].append(other)
        for why, pairs in sorted(whys.items()):
            count = sum(len(others) for others in pairs.values())
            print(f"skipped {count} pairs: {why}")
            for (axis, value, other_axis), others in sorted(pairs.items()):
                print(f"  {axis} {value} with {other_axis} {' '.join(sorted(others))}")
        for axis, value, other_axis, other in self.missing():
            print(f"missing: {axis} {value} with {other_axis} {other}")
        print(f"{len(self.pairs)} pairs of values played, {len(self.impossible)} skipped, "
              f"{len(self.missing())} missing")


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(options, pathlib.Path(folder))
        sweep.draw()
        print(f"seed {options.seed}", flush=True)
        # All of them, even where one has failed.
        well = all([sweep.play(living, ranks) for living, ranks in sweep.jobs()])
        sweep.report()
        if options.pairs and not options.only:
            well = well and not sweep.missing()
        sys.exit(not well or sweep.count() == 0)


if __name__ == "__main__":
    main()
