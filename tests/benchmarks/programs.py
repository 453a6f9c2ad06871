# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark as a user does and reads what it prints.

usage: programs.py right|on_gpus|flipped|refuses|liar|impatient|few_threads PROGRAM KHORO
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

case, program, khoro = sys.argv[1:4]
name = pathlib.Path(program).name.removesuffix("_perf")

REDUCTIONS = {"all_reduce", "reduce", "reduce_scatter"}
WITH_ROOT = {"broadcast", "gather", "reduce", "scatter"}
# Those whose count is that of one rank's share of the size.
OF_SHARES = {"all_gather", "alltoall", "gather", "hypercube", "reduce_scatter", "scatter"}
# Units that a rank gives in alltoallv, for each number of ranks from 1 on.
UNITS = (1, 3, 5, 5, 5)
NEVER_IN_PLACE = {"barrier", "sendrecv"}
# Two GPUs whose CPUs are all that joins them.
APART = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="80"/></pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:81:00.0" class="0x030200"><gpu dev="1" sm="80"/></pci>
  </cpu>
</system>
"""
RANKS = (1, 2, 4, 8) if name == "hypercube" else (1, 2, 3, 4, 5)


def run(*options, launcher=(), threads=None, **environment):
    threads = [] if threads is None else ["-t", str(threads)]
    done = subprocess.run([*launcher, program, *threads, *options], text=True, capture_output=True, timeout=200,
                          stdin=subprocess.DEVNULL, env={**os.environ, **environment})
    print(done.args, environment, done.returncode, done.stdout, done.stderr, sep="\n")
    return done


def run_with_table(*options, **how):
    """Also returns what -J writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "table.json"
        done = run(*options, "-J", str(file), **how)
        return done, json.loads(file.read_text())


def launch(processes, threads=1):
    return [khoro, "run", "-n", str(processes), "--threads", str(threads), "--"]


def ways(ranks):
    """Ranks as threads of one process, as processes, and as both."""
    yield {"threads": ranks}
    yield {"launcher": launch(ranks)}
    if ranks == 4:
        yield {"threads": 2, "launcher": launch(2, 2)}


def rows(output):
    """The table's rows as lists of words; a launcher may have tagged the lines."""
    lines = [re.sub(r"^\[\d+\] ", "", line) for line in output.splitlines()]
    return [line.split() for line in lines if re.match(r"\s+\d", line)]


def halves(row):
    return [half for half in (row["out_of_place"], row["in_place"]) if half is not None]


def names_of(option):
    """What the option may be, but for `all`."""
    help = " ".join(run("--help").stdout.split())
    return re.search(rf"{option} [A-Z]+ (.*?) or all", help).group(1).split(", ")


def counts_in(ranks):
    """How many counts a size is made of."""
    if name == "alltoallv":
        return UNITS[ranks - 1]
    return ranks if name in OF_SHARES else 1


def check_sizes(table, ranks):
    """Sizes, counts and bandwidths are what nccl-tests make of them."""
    others = (ranks - 1) / ranks
    of_algorithm = others if name == "hypercube" else 1
    of_bus = {"all_reduce": 2 * others, "hypercube": 1, "alltoallv": 1 - 1 / counts_in(ranks)}.get(
        name, others if name in OF_SHARES else 1)
    widths = {}
    for row in table["results"]:
        elements = row["count"] * counts_in(ranks)
        if elements:
            assert row["size"] == elements * widths.setdefault(row["type"], row["size"] // elements)
        assert (row["in_place"] is None) == (name in NEVER_IN_PLACE)
        for half in halves(row):
            moved = half["alg_bw"] * half["time"] * 1e3
            assert math.isclose(moved, row["size"] * of_algorithm, rel_tol=1e-9, abs_tol=1e-9)
            assert math.isclose(half["bus_bw"], half["alg_bw"] * of_bus, rel_tol=1e-9)


def seen(table, key):
    return list(dict.fromkeys(row[key] for row in table["results"]))


def check_scan(table, ranks):
    """Every type and reduction comes, where the collective has them, and the largest size."""
    data = name != "barrier"
    assert seen(table, "type") == (names_of("--datatype") if data else ["none"])
    assert set(seen(table, "redop")) == set(names_of("--op") if name in REDUCTIONS else ["none"])
    floats = 2401 // 4 * data  # of the largest size
    floats = floats // counts_in(ranks) * counts_in(ranks)
    assert max(row["size"] for row in table["results"] if row["type"] in ("float", "none")) == 4 * floats


def right():
    for ranks in RANKS:
        for way in ways(ranks):
            table = check_run(ranks, way, "-d", "all", "-o", "all", "-r", str(ranks - 1))
            assert seen(table, "root") == [str(ranks - 1) if name in WITH_ROOT else "-1"]
            check_scan(table, ranks)
            if name in WITH_ROOT:
                table = check_run(ranks, way, "-r", "-1" if "launcher" in way else "all")
                assert seen(table, "root") == [str(root) for root in range(ranks)]
    check_other_ways()
    check_latency()
    check_limits()
    if name == "hypercube":
        done, table = run_with_table("-t", "3")
        assert done.returncode == 0 and table["results"] == [] and not rows(done.stdout)
        assert "3 is not a power of 2" in table["skipped"] and table["skipped"] in done.stdout


def check_run(ranks, way, *options):
    done, table = run_with_table("-b", "1", "-e", "2401", "-f", "49", "-n", "1", "-w", "0", *options,
                                 **way)
    assert done.returncode == 0
    check_text(done.stdout, table)
    check_sizes(table, ranks)
    assert len(table["config"]["devices"]) == table["ranks"] == ranks
    assert table["out_of_bounds"] == {"count": 0, "okay": "true"} and table["errors"] == []
    return table


def check_text(text, table):
    """The printed table is that of the JSON, and nothing is wrong."""
    shown = rows(text)
    assert shown and all(len(row) == 13 for row in shown)
    assert all(row[8] == "0" and row[12] == ("N/A" if name in NEVER_IN_PLACE else "0")
               for row in shown)
    assert [tuple(row[:5]) for row in shown] == [
        (str(row["size"]), str(row["count"]), row["type"], row["redop"], row["root"])
        for row in table["results"]]
    assert all(half["nwrong"] == 0 and half["wrong_ranks"] == [] and half["latency"] is None
               for row in table["results"] for half in halves(row))


def check_other_ways():
    """The other ways to call and to count, too."""
    grouped = "1" if name == "hypercube" else "3"
    scan = 1 if name == "barrier" else 4  # sizes
    done = run("-t", "2", "-b", "0", "-e", "4K", "-i", "1333", "-n", "2", "-m", grouped, "-z", "1",
               "-a", "3", "-N", "2", "-C", "1", "-S", "1", "-T", "60", "-c", "1", "-r", "1")
    assert done.returncode == 0 and len(rows(done.stdout)) == 2 * scan
    assert {row[4] for row in rows(done.stdout)} == {"1" if name in WITH_ROOT else "-1"}
    done = run("-t", "2", "-p", "1", "-b", "64", "-e", "64", "-n", "2")
    assert done.returncode == 0 and rows(done.stdout)[0][8] == "0"
    done = run("-t", "2", "-b", "64", "-e", "64", "-n", "2", "-c", "0")
    assert done.returncode == 0 and rows(done.stdout)[0][8] == "N/A"


def check_latency(*options, **environment):
    for ranks, calls in ((1, 2), (4, 7)):
        done, table = run_with_table("-t", str(ranks), "-b", "64", "-e", "128", "-i", "64", "-a", "3",
                                     "-n", str(calls), "-S", "1", "--latency", *options, **environment)
        assert done.returncode == 0
        shown = rows(done.stdout)
        assert len(shown) == (1 if name == "barrier" else 2)
        for row, line in zip(table["results"], shown):
            assert len(line) == 13 + 6 + 2  # the time stamp is two words
            for half in halves(row):
                p50, p99, most = (half["latency"][key] for key in ("p50", "p99", "max"))
                assert 0 < p50 <= p99 == most  # of fewer than 100 calls
                assert half["time"] <= most * (1 + 1e-9)
                if ranks == 1:
                    assert math.isclose(p50 + most, 2 * half["time"], rel_tol=1e-9)
            assert (line[16:19] == 3 * ["N/A"]) == (name in NEVER_IN_PLACE)


def check_limits():
    """Buffers of either kind, beside what memory allows."""
    for registered in ("0", "1"):
        done, table = run_with_table("-t", "2", "-b", "64K", "-e", "64K", "-n", "3", "-R", registered,
                                     "--limits")
        assert done.returncode == 0
        assert ("# Buffers: khoroMemAlloc, registered\n" in done.stdout) == (registered == "1")
        assert table["config"]["local_register"] == int(registered)
        for row, line in zip(table["results"], rows(done.stdout)):
            assert len(line) == 13 + 4
            assert all(half["nwrong"] == 0 and half["limit"] > 0 for half in halves(row))
            assert (line[15:] == 2 * ["N/A"]) == (name in NEVER_IN_PLACE)


def on_gpus():
    """Ranks on GPUs of their own and on shared ones, which reach each other or do not."""
    virtual = ["--device", "virtual"]
    with tempfile.TemporaryDirectory() as folder:
        apart = pathlib.Path(folder) / "apart.xml"
        apart.write_text(APART)
        few = ["-b", "64", "-e", "64", "-n", "3"]
        for machine, transport in (({}, "cuda_ipc"), ({"KHORO_TOPO_FILE": str(apart)}, "host")):
            done = run("-t", "2", *few, *virtual, KHORO_VIRTUAL_GPUS="2", KHORO_LOG="info", **machine)
            assert done.returncode == 0 and f": {transport} to rank 0" in done.stderr
            assert re.search(r"#  Rank  1 Group  0 .* device  1 \[0000:\w\w:00.0\] virtual GPU 1\n", done.stdout)
            for way in ({"threads": 1}, {"threads": 2}, {"launcher": launch(4)}):
                ranks = way.get("threads", 4)
                way = {**way, **machine, "KHORO_VIRTUAL_GPUS": "2"}
                table = check_run(ranks, way, *virtual, "-d", "all", "-o", "all", "-r", str(ranks - 1))
                check_scan(table, ranks)
                devices = [rank["device"] for rank in table["config"]["devices"]]
                assert devices == [rank % 2 for rank in range(ranks)]
                assert table["config"]["devices"][0]["device_info"].startswith("virtual GPU 0 at 0000:")
    for options in (["-z", "1"], ["-y", "1"], ["-C", "1"], [] if name == "hypercube" else ["-m", "3"]):
        done = run("-t", "2", *few, *virtual, *options, KHORO_VIRTUAL_GPUS="1")
        assert done.returncode == 0 and rows(done.stdout)[0][8] == "0"
    check_latency(*virtual, KHORO_VIRTUAL_GPUS="2")


def check_gpus_refused():
    done = run("-t", "2", "--device", "virtual", "-b", "8", "-e", "8")
    assert done.returncode == 1 and "KHORO_VIRTUAL_GPUS" in done.stderr and not rows(done.stdout)
    for options, words in ((["--device", "gpu"], "'gpu'"), (["-y", "0"], "-y 0"),
                           (["--device", "virtual", "-R", "1"], "-R 1"),
                           (["--device", "virtual", "--limits"], "--limits")):
        done = run(*options, KHORO_VIRTUAL_GPUS="1")
        assert done.returncode == 2 and words in done.stderr and not rows(done.stdout)
    for memory, options in (("virtual", []), ("host", ["--device", "virtual"])):
        done = run(*options, launcher=launch(2), KHORO_VIRTUAL_GPUS="1", KHORO_MEMORY=memory)
        assert done.returncode == 1 and "KHORO_MEMORY" in done.stderr and not rows(done.stdout)


def flipped():
    """A byte that is flipped on one rank ends the program with 1 and that rank's name."""
    for ranks in RANKS:
        for way in ways(ranks):
            options = ["-b", "1K", "-e", "1K", "-n", "1", "-w", "0", "-r", "all"]
            for rank in range(ranks):
                done, table = run_with_table(*options, KHORO_TEST_FLIP_BYTE=str(rank), **way)
                assert done.returncode == 1 and table["results"]
                found = [half for row in table["results"] for half in halves(row)]
                assert all(half["nwrong"] > 0 and half["wrong_ranks"] == [rank] for half in found)
                assert table["out_of_bounds"] == {"count": len(found), "okay": "false"}
                named = re.findall(r"# rank (\d+): ", done.stdout)
                assert named == [str(rank)] * len(found)
            done = run(*options, KHORO_TEST_FLIP_BYTE=str(ranks), **way)
            assert done.returncode == 0
    done = run("-t", "2", *options, "--device", "virtual", KHORO_TEST_FLIP_BYTE="1",
               KHORO_VIRTUAL_GPUS="2")
    assert done.returncode == 1 and set(re.findall(r"# rank (\d+): ", done.stdout)) == {"1"}


def refuses():
    for options, words in ((["-g", "2"], "-g"), (["-G", "1"], "graph"), (["-R", "2"], "local_register"),
                           (["-o", "mulsum"], "mulsum"), (["-d", "quad"], "quad"),
                           (["-o", "band", "-d", "half"], "integer"), (["-b", "x"], "'x'"),
                           (["-b", "2", "-e", "1"], "-b"), (["-n", "0"], "--iters"),
                           (["-i", "0"], "-i"), (["-r", "-2"], "'-2'"), (["-r", "x"], "'x'"),
                           (["--wrong"], "--wrong")):
        done = run(*options)
        assert done.returncode == 2 and words in done.stderr and not rows(done.stdout)
    done = run("-t", "2", "-J", "/nowhere/table.json", "-b", "8", "-e", "8")
    assert done.returncode == 1 and "/nowhere/table.json" in done.stderr
    done = run("-t", "2", "-e", "4000000G", "-n", "1")
    if name == "barrier":
        assert done.returncode == 0
    else:
        assert done.returncode == 1 and "-e" in done.stderr
    if name in WITH_ROOT:
        done = run("-t", "2", "-r", "2", "-b", "8", "-e", "8")
        assert done.returncode == 1 and "-r 2: " in done.stderr and not rows(done.stdout)
    check_gpus_refused()
    if name == "hypercube":
        done = run("-t", "2", "-m", "2", "-b", "8", "-e", "8")
        assert done.returncode == 2 and "-m 2: " in done.stderr and not rows(done.stdout)


def liar():
    done = run("-t", "3", "-b", "4", "-e", "64", "-f", "4", "-n", "2")
    assert done.returncode == 1
    assert [(row[8], row[12]) for row in rows(done.stdout)] == [("0", "0"), ("0", "0"), ("1", "1")]
    assert "rank 1: 1 wrong of 16 elements (float, out of place), first at 5" in done.stdout
    assert "rank 0:" not in done.stdout and "Out of bounds values : 2 FAILED" in done.stdout


def impatient():
    done = run("-t", "3", "-n", "1", "-c", "20")  # the late rank is late enough in one of them
    assert done.returncode == 1
    assert re.search(r"# rank \d: left \d of 3 barriers before every rank had come", done.stdout)


def few_threads():
    """Threads run out while ranks join, or when they shall run: words, and no rank that waits for
    the one that could not be started."""
    for alone, parallel, left in ((True, "0", 1), (True, "1", 1), (False, "0", 4), (False, "1", 1)):
        launcher = [] if alone else launch(2, 3)
        begin = time.monotonic()
        done = run("-t", "3", "-p", parallel, "-b", "8", "-e", "8", "-n", "1",
                   launcher=launcher, THREADS_LEFT=str(left))
        assert done.returncode == 1 and "cannot start thread" in done.stderr
        assert "terminate" not in done.stderr
        assert time.monotonic() - begin < 50  # the init deadline is 60 s


{"right": right, "on_gpus": on_gpus, "flipped": flipped, "refuses": refuses, "liar": liar, "impatient": impatient,
 "few_threads": few_threads}[case]()
