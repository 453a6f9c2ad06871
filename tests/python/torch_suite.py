# SPDX-License-Identifier: Apache-2.0
"""Runs the cases for backends that torch ships in its wheel, on Khoro or on Gloo.

usage: torch_suite.py [--backend khoro|gloo] [--ranks N] [--expected FILE] [--short] [CASE...]

Many of torch's cases are only for the backend named gloo, so Khoro takes that name here. Each line
of FILE names a case that fails, and why; one that passes nevertheless is an error, too. Ends with a
line that counts.
"""
import argparse
import logging
import os
import re
import sys
import time
import types
import unittest
import warnings


VARIANT = re.compile("_group$|full_group|profiler|cuda|gpu|nccl|ddp_.*_(err|uneven|hook)")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", choices=["khoro", "gloo"], default="khoro")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--expected", help="a file of lines 'case: reason'")
    parser.add_argument("--short", action="store_true",
                        help="leave out the same calls on a whole group, under the profiler, on GPUs")
    parser.add_argument("cases", nargs="*", help="names; all if there are none")
    return parser.parse_args()


def stand_in_for_gloo():
    """Has torch make groups of Khoro where it is asked for one of Gloo's."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    from khoro.torch import KhoroGroup

    class StandIn(KhoroGroup):
        def __init__(self, store, rank, size, timeout):
            super().__init__(store, rank, size, timeout, "gloo")
            self.options = types.SimpleNamespace()

    distributed_c10d.ProcessGroupGloo = dist.ProcessGroupGloo = StandIn


def load_cases(ranks, profiled):
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1")
    import torch.multiprocessing
    from torch.testing._internal.distributed import distributed_test

    if not profiled:  # torch lists whose calls its profiler shows with shapes
        distributed_test.PROFILING_SUPPORTED_BACKENDS.remove("gloo")
        distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.remove("gloo")

    class Cases(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            # torch has been imported, which takes most of the time of a process.
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    Cases.__qualname__, Cases.__module__ = "Cases", __name__
    return Cases


class Result(unittest.TextTestResult):
    """Says what came of each case in a line of its own, when it has ended."""

    def __init__(self, stream, descriptions, verbosity, expected):
        super().__init__(stream, descriptions, 0)
        self.expected, self.counts = expected, {}
        self.begin = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def tell(self, test, outcome, words=""):
        name = test._testMethodName
        reason = self.expected.get(name)
        if outcome == "failed" and reason:
            outcome, words = "expected", reason
        elif outcome == "passed" and reason:
            outcome, words = "unexpected", f"it was expected to fail: {reason}"
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        took = time.monotonic() - self.begin
        print(f"{outcome:10} {name} ({took:.1f} s){': ' + words if words else ''}", flush=True)

    def addSuccess(self, test):
        self.tell(test, "passed")

    def addSkip(self, test, reason):
        self.tell(test, "skipped", reason)

    def addError(self, test, error):
        self.tell(test, "failed", str(error[1])[-2000:])

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error:
            self.addError(test, error)


def read_expected(path):
    if not path:
        return {}
    lines = [line.split("#")[0].strip() for line in open(path, encoding="utf-8")]
    return dict(line.split(": ", 1) for line in lines if line)


def main():
    options = arguments()
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    if options.backend == "khoro":
        stand_in_for_gloo()
    cases = load_cases(options.ranks, options.backend == "gloo")
    names = options.cases or unittest.TestLoader().getTestCaseNames(cases)
    if options.short:
        names = [name for name in names if not VARIANT.search(name)]
    result = Result(unittest.runner._WritelnDecorator(sys.stderr), True, 0,
                    read_expected(options.expected) if options.backend == "khoro" else {})
    for name in names:
        unittest.TestSuite([cases(name)]).run(result)
    counts = {outcome: result.counts.get(outcome, 0)
              for outcome in ("passed", "failed", "unexpected", "expected", "skipped")}
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    sys.exit(1 if counts["failed"] or counts["unexpected"] or not counts["passed"] else 0)


if __name__ == "__main__":
    main()
