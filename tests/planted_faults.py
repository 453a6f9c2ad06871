# SPDX-License-Identifier: Apache-2.0
"""Plants faults, and sees those tests fail that are there to find them, and no other.

usage: planted_faults.py FOLDER   (where the test programs were built)
"""
import os
import subprocess
import sys

PLANTS = {"a lost wake-up": {"KHORO_TEST_LOSE_WAKEUP": "1"},
          "a race": {"KHORO_TEST_PUBLISH_EARLY": "5"}}
LOST, RACE = PLANTS

# Program, test, and the plants that it is there to find. None of the others may make it fail, but a
# test that would wait a minute for each lost wake-up is not made to wait.
CASES = [
    ("test_base", "no wake-up is lost between threads that sleep on a futex", [LOST]),
    ("test_base", "no wake-up is lost between threads that sleep on a descriptor", [LOST]),
    ("test_transport", "every transport keeps what a channel promises", [RACE]),
    ("test_transport", "two ranks exchange messages in a virtual world*", [LOST, RACE]),
    ("test_transport", "a trace tells every event of both ends once and in order", []),
    ("test_communicator", "* plays with delays and a death end in right bits*", [LOST, RACE]),
]
NOT_MADE_TO_WAIT = {("every transport keeps what a channel promises", LOST)}


def play(folder, program, name, plant):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("KHORO_")}
    return subprocess.run([os.path.join(folder, program), name, "--abort"], text=True,
                          env={**clean, **PLANTS[plant]}, capture_output=True, timeout=300)


def faults(folder):
    for program, name, found in CASES:
        for plant in PLANTS:
            if (name, plant) in NOT_MADE_TO_WAIT:
                continue
            done = play(folder, program, name, plant)
            summary = done.stdout[-2000:] + done.stderr[-2000:]
            if done.returncode < 0 or "assertion" not in done.stdout:
                yield f"{program} '{name}' with {plant} came to no end: {summary}"
            elif (done.returncode != 0) != (plant in found):
                said = "fails" if done.returncode else "passes"
                yield f"{program} '{name}' {said} with {plant} planted: {summary}"
            else:
                print(f"{'found' if plant in found else 'no matter'}: {plant}: {name}")


if __name__ == "__main__":
    found = list(faults(sys.argv[1]))
    print("\n".join(found))
    sys.exit(bool(found))
