# SPDX-License-Identifier: Apache-2.0
"""How ranks meet and part, and what a user reads when something is wrong."""
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy
import pytest

import khoro
from support import LONG, on_processes, on_threads, outcomes


def test_the_launchers_ranks():
    done = on_processes(3, """
        import khoro, numpy
        with khoro.world({"KHORO_DEADLINE": "20s"}) as comm:
            print(comm, int(comm.allreduce(numpy.array([comm.rank + 1]))[0]))
        print(comm)
    """)
    for rank in range(3):
        assert f"<khoro.Communicator: rank {rank} of 3> 6" in done.stdout
        assert f"<khoro.Communicator: rank {rank} of 3, closed>" in done.stdout


def test_without_a_launcher():
    with pytest.raises(khoro.InvalidUsage, match="khoro run"):
        khoro.world()


def test_an_id():
    place = khoro.unique_id()
    assert isinstance(place, bytes) and len(place) == 128
    results = [None, None]

    def run(rank):
        with khoro.join(place, 2, rank, {"KHORO_INIT_DEADLINE": "20s"}) as comm:
            results[rank] = int(comm.allreduce(numpy.array([rank + 1]))[0])
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    [thread.start() for thread in threads]
    [thread.join(LONG) for thread in threads]
    assert results == [3, 3]
    with pytest.raises(khoro.InvalidArgument, match="128 bytes"):
        khoro.join(b"short", 2, 0)


def test_an_exchange_of_the_callers():
    barrier, given, results = threading.Barrier(2), {}, [None, None]

    def run(rank):
        def exchange(mine):
            given[rank] = mine
            barrier.wait(LONG)
            every = given[0] + given[1]
            barrier.wait(LONG)
            return every
        with khoro.over(exchange, 2, rank) as comm:
            results[rank] = int(comm.allreduce(numpy.array([rank + 1]))[0])
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    [thread.start() for thread in threads]
    [thread.join(LONG) for thread in threads]
    assert results == [3, 3]

    def broken(mine):
        raise KeyError("store")
    with pytest.raises(KeyError, match="store"):
        khoro.over(broken, 2, 0)
    with pytest.raises(ValueError, match="bytes"):
        khoro.over(lambda mine: b"", 2, 0)


def test_who_does_not_come_is_named():
    with pytest.raises(khoro.Timeout, match="rank 1"):
        khoro.join(khoro.unique_id(), 2, 0, {"KHORO_INIT_DEADLINE": "200ms"})


def test_a_setting_that_is_none():
    with pytest.raises(khoro.InvalidArgument, match="KHORO_DEADLINE"):
        khoro.join(khoro.unique_id(), 1, 0, {"KHORO_DEADLIN": "1s"})


def test_closed_twice_and_used_after():
    comm = khoro.threads(1)[0]
    comm.close()
    comm.close()
    with pytest.raises(khoro.InvalidUsage, match="closed"):
        comm.barrier()


def test_ranks_that_differ_are_told_of_both_calls():
    def body(comm):
        comm.allreduce(numpy.ones(3 if comm.rank == 0 else 4, "float32"))
        comm.barrier()
    for error in outcomes(3, body):
        assert isinstance(error, khoro.Mismatch)
        assert "3 x khoroFloat32" in str(error) and "4 x khoroFloat32" in str(error)


def test_a_rank_that_does_not_call_is_named():
    def body(comm):
        comm.set_deadline(0.3)
        if comm.rank == 0:
            comm.allreduce(numpy.ones(3, "float32"))
    errors = outcomes(2, body)
    assert isinstance(errors[0], khoro.Timeout) and isinstance(errors[0], TimeoutError)
    assert "rank 1" in str(errors[0]) and "allreduce" in str(errors[0])


def test_a_rank_that_dies_is_named():
    done = on_processes(2, """
        import khoro, numpy, os
        comm = khoro.world()
        for step in range(5):
            if comm.rank == 1 and step == 3:
                os._exit(1)
            try:
                comm.allreduce(numpy.ones(3))
            except khoro.PeerDied as error:
                assert step == 3, step
                print("survived:", error)
    """, check=False)
    assert "survived: " in done.stdout and "rank 1" in done.stdout


def test_errors_say_where_they_are_from_and_can_be_passed_on():
    for kind in (khoro.Error, khoro.Timeout, khoro.InvalidArgument, khoro.SystemFailure):
        passed = pickle.loads(pickle.dumps(kind("words")))
        assert type(passed) is kind and passed.result == kind.result
        assert traceback.format_exception_only(kind, passed) == [f"khoro.{kind.__name__}: words\n"]


def test_abort_frees_a_rank_that_waits():
    comms = khoro.threads(2)
    timer = threading.Timer(0.3, comms[0].abort)
    timer.start()
    with pytest.raises(khoro.Aborted):
        comms[0].barrier()
    assert isinstance(comms[1].error(), khoro.Aborted)
    for comm in comms:
        comm.close()


def test_revoked():
    comms = khoro.threads(2)
    comms[1].revoke()
    with pytest.raises(khoro.Revoked):
        comms[0].barrier()
    for comm in comms:
        comm.close()


WAITS = {
    "a call": "comm.allreduce(numpy.ones(3))",
    "a group": "\nwith khoro.group(): comm.barrier()",
    "work": "comm.barrier(wait=False).wait()",
    "a call behind work": "comm.barrier(wait=False); comm.barrier()",
    "a split": "comm.split(0)",
    "another's coming": "khoro.join(khoro.unique_id(), 2, 0)",
}


@pytest.mark.parametrize("wait", WAITS)
def test_control_c_ends(wait):
    source = f"""
import khoro, numpy, sys, time
comm, other = khoro.threads(2)
print("waits", flush=True)
try:
    {WAITS[wait].replace(chr(10), chr(10) + "    ")}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    comm.abort()
"""
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "waits\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - begin < 10  # a second is promised
        assert child.wait(LONG) == 0


def test_a_signal_that_raises_nothing_ends_nothing():
    done = on_processes(2, """
        import khoro, numpy, os, signal, threading, time
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
        comm = khoro.world()
        if comm.rank == 1:
            time.sleep(1)
        else:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert comm.allreduce(numpy.ones(1))[0] == 2
        if comm.rank == 0:
            assert seen == [1]
        print("went on")
    """)
    assert done.stdout.count("went on") == 2


def test_threads_of_python_run_meanwhile():
    def body(comm):
        if comm.rank == 1:
            time.sleep(0.3)
        comm.barrier()
        return time.monotonic()
    count = [0]
    stop = threading.Event()

    def work():
        while not stop.is_set():
            count[0] += 1
    thread = threading.Thread(target=work)
    thread.start()
    on_threads(2, body)
    stop.set()
    thread.join(LONG)
    assert count[0] > 1000


def test_a_program_that_ends_without_closing_leaves_in_order():
    done = on_processes(2, """
        import khoro, numpy
        comm = khoro.world()
        comm.allreduce(numpy.ones(3), wait=False)
        comm.barrier(wait=False).add_done_callback(lambda work: None)
    """)
    assert "died" not in done.stderr and "error" not in done.stderr


def test_threads_may_come_back_when_python_is_ending():
    for _ in range(10):
        done = on_processes(1, """
            import khoro, sys, threading, time, types

            class Slow:  # to clear
                def __init__(self):
                    self.functions = sum, range

                def __del__(self):
                    sum, range = self.functions
                    sum(range(5_000_000))
            sys.modules["late"] = types.ModuleType("late")
            sys.modules["late"].slow = Slow()

            def call():
                while True:
                    khoro.shared_array(4, "float32")
            for _ in range(8):
                threading.Thread(target=call, daemon=True).start()
            time.sleep(0.05)
        """)
        assert not done.stderr


def test_a_child_that_was_forked_is_told():
    done = on_processes(1, """
        import khoro, numpy, os
        comm = khoro.world()
        child = os.fork()
        if child == 0:
            try:
                comm.barrier()
            except khoro.InvalidUsage as error:
                assert "forked" in str(error)
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        comm.barrier()
    """)
    assert done.returncode == 0


def test_statistics():
    def body(comm):
        comm.allreduce(numpy.ones(1000))
        now = comm.statistics()
        assert now.collectives == 1 and now.transports == "shm" and now.held > 0
        assert now.held == (now.held_records + now.held_channels + now.held_partials
                            + now.held_messages + now.held_programs)
    on_threads(2, body)


def test_it_is_imported_at_once():
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", "import khoro"], text=True,
                          capture_output=True)
    assert done.returncode == 0
    assert "numpy" not in done.stderr  # it is needed by what makes arrays alone
    assert "asyncio" not in done.stderr
