# SPDX-License-Identifier: Apache-2.0
"""Ranks for the tests: threads of this process, or processes under `khoro run`."""
import os
import subprocess
import sys
import textwrap
import threading

import khoro

TOOL = os.environ["TEST_TOOL"]  # the program khoro
LONG = 60  # turns a hang into a failure


def on_threads(size, body, deadline=20.0):
    """What body(communicator) returns on each of `size` ranks; raises what one raised first."""
    communicators = khoro.threads(size)
    results, errors = [None] * size, [None] * size

    def run(rank):
        try:
            communicators[rank].set_deadline(deadline)
            results[rank] = body(communicators[rank])
        except BaseException as error:
            errors[rank] = error
            if communicators[rank].error() is None:
                communicators[rank].abort()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "a rank hangs"
    for communicator in communicators:
        communicator.close()
    causes = [error for error in errors if error is not None]
    own = [error for error in causes if not isinstance(error, khoro.Aborted)]
    if causes:
        raise (own or causes)[0]
    return results


def outcomes(size, body, deadline=20.0):
    """As on_threads, but what a rank raised is returned in its place."""
    def kept(communicator):
        try:
            return body(communicator)
        except Exception as error:
            return error
    return on_threads(size, kept, deadline)


def on_processes(size, source, *options, environment=None, timeout=LONG, check=True):
    """Runs a program of Python on `size` processes; its output."""
    program = textwrap.dedent(source)
    return run_tool("run", "-n", str(size), *options, "--", sys.executable, "-c", program,
                    environment=environment, timeout=timeout, check=check)


def run_tool(*arguments, environment=None, timeout=LONG, check=True):
    done = subprocess.run([TOOL, *arguments], text=True, capture_output=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(environment or {})))
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done
