# SPDX-License-Identifier: Apache-2.0
"""The example on NumPy's arrays does what its comments say."""
import pathlib
import sys

from support import run_tool

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "numpy_calls.py"


def test_calls_on_arrays():
    said = run_tool("run", "-n", "3", "--", sys.executable, EXAMPLE).stdout.splitlines()
    for rank, left, pair in ((0, 2, "0 of 2"), (1, 0, "1 of 2"), (2, 1, "0 of 1")):
        tag = f"[{rank}] rank {rank}"
        assert f"{tag} of 3: [6. 6. 6.]" in said
        assert f"{tag}: [6. 6. 6.] [3. 3. 3.] (3, 2) [0. 1. 2. 3.]" in said
        assert f"{tag}: [1.0, 2.0, 3.0, 4.0]" in said
        assert f"{tag}: rank {left} is to the left" in said
        assert f"{tag}: rank {pair} among two" in said
