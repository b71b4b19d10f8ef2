"""A position-independent program, with a new address at each start, is profiled like any
other: on the machine, in perf.data, by perf, and by tools/strobe and readers of its
exports. tests/guest/pie.c has its shares."""
import collections
import json
import os
import re
import subprocess

import pytest

from exports import callgrind, read_measured, run, strobe
from machine import PATIENCE, ROOT, vm
from shares import LOOPS, by_chance
from test_export_pprof import Pprof
from tiers import drawn

PIE = "/test/pie"
FILE = f"{ROOT}/build/guest/pie"
KERNEL = f"{ROOT}/build/kernel.elf"
AT_RANDOM = ("--kargs", "randomize_va_space=2")
KINDS = ("plain", "fork", "exec", "signal")
CODE = 0x1000  # file offset of its code


def own_addresses():
    """Addresses of the loops in the file: they are adjacent."""
    names = subprocess.run(["nm", FILE], capture_output=True, text=True,
                           check=True).stdout
    found = {name: int(address, 16) for address, _, name in
             map(str.split, names.splitlines()) if name in LOOPS}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def loops_range(origin):
    first, second, third = own_addresses().values()
    assert third - second == second - first
    return f"{first - origin:x}-{third - origin + second - first - 1:x}"


SCRIPT = f"""
cd /out
profile --json -o flat.data {PIE} 400 >flat.json
profile -g --json -o plain.data {PIE} 400 >plain.json
for kind in fork exec signal jit; do
    profile -C -g --json -o $kind.data {PIE} $kind 400 >$kind.json
done
profile -g=dwarf --json -o dwarf.data {PIE} 400 >dwarf.json
sprofile -g --json -o two.data sh -c "{PIE} 300 & {PIE} 300 & wait" >two.json
profile -C -g --json -o both.data sh -c "{PIE} 300 & {PIE} 300 & wait" >both.json
{PIE} 2000 >/dev/null & sleep 0.1
cat /proc/$!/maps >running.maps
sysinfo --json system.tasks.$! >running.task
profile -g --json -t $! -o running.data >running.json
profile diff --json flat.data plain.data >diff.json
profile -n 3 -r {loops_range(CODE)} {PIE} 400 >distances.txt
profile -n 3 -r {loops_range(0)} {PIE} exec 400 >addresses.txt
profile -n 1 {PIE} 400 >whole.txt
profile -r 1000-2000 {PIE} 2>wrong.txt
profile -g --json tester 20 >tester.json
profile {PIE} 100 >table.txt
sprofile {PIE} 100 >graph.txt
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pie")
    result = vm(SCRIPT, *AT_RANDOM, "--get", str(folder), smp=1)
    assert result.status == 0, result
    return folder


@pytest.fixture(scope="module")
def measured(out):
    return {name: read_measured(out, name)[0] for name in (
        "flat", *KINDS, "jit", "dwarf", "two", "both", "running")}


def text(out, name):
    return (out / name).read_text()


def perf(out, command, name, *arguments):
    done = subprocess.run(
        ["perf", "--no-pager", "--buildid-dir", f"{out}/cache", command, "-i",
         f"{out}/{name}.data", "-k", KERNEL, "--symfs", f"{ROOT}/build/root",
         *arguments], capture_output=True, text=True, cwd=out, timeout=PATIENCE,
        env={**os.environ, "HOME": str(out), "PERF_CONFIG": "/dev/null"})
    assert done.returncode == 0, done
    return done.stdout


def mappings(out, name):
    """(task, address, offset in the file) of each mapping of the program."""
    lines = perf(out, "script", name, "--show-mmap-events")
    return [(int(task), int(address, 16), int(offset, 16)) for task, address, offset
            in re.findall(r"MMAP2 (\d+)/\d+: \[0x(\w+)\(0x1000\) @ (\w+) .*"
                          f" {PIE}$", lines, re.MULTILINE)]


def are_right(found, loops=LOOPS):
    """The loops' samples are 2 : 1 : 1, within sampling error."""
    whole = sum(found.get(name, 0) for name in loops)
    return all(abs(found.get(name, 0) / whole - share) < by_chance(share, whole)
               for name, share in loops.items())


# --- on the machine -----------------------------------------------------------

@drawn
@pytest.mark.parametrize("name", ("flat", "plain", "exec", "signal", "dwarf",
                                  "two", "both", "running"))
def test_shares(measured, name):
    m = measured[name]
    found = m.of(PIE)
    kernel = sum(m.of("[kernel]").values())
    assert set(found) <= {*LOOPS, "start", "_start", "work", "interrupted"}, m.rows
    assert sum(found.values()) + kernel > 0.98 * m.json["taken"]  # vDSO, BusyBox
    # So many that the next check misses the wrong shares in less than 1 of 10^7 draws.
    assert sum(found.values()) > 500 and are_right(found), found
    wrong = {**found, "burn_a": found["burn_b"], "burn_b": found["burn_a"]}
    assert not are_right(wrong), found
    assert m.json["unknown"] == m.json["malformed"] == 0


@drawn
def test_child(measured):
    """A child has its parent's addresses; half of burn_c's samples are its own."""
    found = measured["fork"].of(PIE)
    assert are_right(found, {"burn_a": 0.4, "burn_b": 0.2, "burn_c": 0.4}), found
    calls = measured["fork"].calls()
    whole = sum(found.values())
    assert abs(calls["child"] / whole - 0.2) < by_chance(0.2, whole), calls


@pytest.mark.parametrize("name", ("plain", "exec", "signal", "dwarf", "both",
                                  "running"))
def test_chains(measured, name):
    """Each function has all its callers, also through functions without frame pointers
    (by call frame information) and through a signal handler."""
    m = measured[name]
    found, calls = m.of(PIE), collections.Counter()
    for called, samples in m.calls().items():
        calls[called.removesuffix(f" [{PIE}]")] += samples
    for loop in LOOPS:
        assert calls[loop] >= found[loop], calls
    above = {"signal": ("handler", "interrupted")}.get(name, ())
    loops = sum(found[loop] for loop in LOOPS)
    for caller in ("work", "start", *above):
        assert calls[caller] >= loops, (caller, calls)
    # (Except for the shell that starts both.)
    assert name == "both" or m.json["cut"] == 0, m.json


def test_code_that_it_made(measured):
    """Generated code has no file offset; its names are by addresses in memory."""
    m = measured["jit"]
    rows = [r for r in m.rows if r.symbol == "spin"]
    assert len(rows) == 1 and rows[0].self > 90, m.rows
    assert m.calls()["made"] >= rows[0].self, m.calls()


def test_what_runs_already(out, measured):
    """A running program's address in system.tasks is that of /proc/PID/maps."""
    assert measured["running"].of(PIE)
    code = re.search(r"^(\w+)-\w+ r-xp (\w+) .*" + PIE, text(out, "running.maps"),
                     re.MULTILINE)
    address, offset = int(code[1], 16), int(code[2], 16)
    task = json.loads(text(out, "running.task"))
    assert task[0]["load_bias"] == address - CODE
    assert [m[1:] for m in mappings(out, "running")] == [(address, offset)]


def test_addresses_are_the_files(out, measured):
    """Reported addresses are the file's, as in objdump."""
    own = own_addresses()
    reported = {row["symbol"]: row["address"] for row in measured["flat"].json["rows"]
            if row["image"] == PIE}
    assert own.items() <= reported.items()
    shown = re.findall(r"^ *0x(\w+) .*(burn_.)$", text(out, "table.txt"),
                       re.MULTILINE)
    assert {name: int(at, 16) for at, name in shown} == {
        name: own[name] for name in LOOPS}
    assert len(re.findall(r"^ +pie burn_. \*+ +\d", text(out, "graph.txt"),
                          re.MULTILINE)) == 3


def test_diff_on_the_machine(out):
    rows = {row["name"]: row for row in json.loads(text(out, "diff.json"))["rows"]}
    for name in LOOPS:
        row = rows[f"{name} [{PIE}]"]
        assert row["before"] > 0 and row["after"] > 0


@drawn
@pytest.mark.parametrize("name,origin", (("distances", CODE), ("addresses", 0)))
def test_bins(out, name, origin):
    """A range is by addresses in the file or distances; it moves at an exec."""
    rows = [(int(start, 16), int(percent)) for start, percent in
            re.findall(r"^(\w+)-\w+ \((\d+)%\)", text(out, f"{name}.txt"),
                       re.MULTILINE)]
    own = own_addresses()
    assert [start + origin for start, _ in rows] == list(own.values())
    for (_, percent), loop in zip(rows, own):
        assert abs(percent - 100 * LOOPS[loop]) <= \
            100 * by_chance(LOOPS[loop], 500) + 1


def test_bins_of_all_its_code(out):
    assert re.search(r"^0000-0FFF \(100%\)", text(out, "whole.txt"), re.MULTILINE)
    assert "has code from 1000 to 1FFF, or 0 to FFF" in text(out, "wrong.txt")


@drawn
def test_fixed_program(out):
    """Programs with fixed addresses are profiled as before."""
    r = json.loads(text(out, "tester.json"))
    found = {row["symbol"]: row["samples"] for row in r["rows"]}
    assert are_right(found), found


# --- the recording ------------------------------------------------------------

def test_mappings(out):
    """The recording has its addresses in memory, new at each start."""
    runs = {name: mappings(out, name) for name in
            ("flat", "plain", "signal", "jit", "dwarf", "exec", "two", "both")}
    assert len(runs["flat"]) == 1 and runs["flat"][0][2] == 0x1000
    assert len(runs["two"]) == 2 and len({m[0] for m in runs["two"]}) == 2
    assert len(runs["exec"]) == 2
    # Of 2,048 addresses two of 11 are the same in 1 of 40 draws, six in none of 10^9.
    addresses = [m[1] for found in runs.values() for m in found]
    assert len(addresses) == 11 and len(set(addresses)) > 5, runs


@pytest.mark.parametrize("name", ("flat", *KINDS, "two", "both", "running"))
def test_perf_report(out, measured, name):
    """perf report has the samples of the machine's report for each function."""
    rows = perf(out, "report", name, "--stdio", "--no-children", "-g", "none", "-F",
                "sample,sym", "-t", ";")
    found = {line.split("[.]")[1].strip(): int(line.split(";")[0])
             for line in rows.splitlines() if "[.]" in line}
    assert found.items() >= measured[name].of(PIE).items()


def test_perf_chains(out, measured):
    chains = perf(out, "script", "signal", "-F", "ip,sym").split("\n\n")
    whole = [c for c in chains if re.search(
        r"burn_.*\n.*\bwork\n.*\bhandler\n(.*\n)?.*\binterrupted\n.*\bstart\n", c)]
    assert len(whole) == sum(row.total for row in measured["signal"].rows
                             if row.image == PIE and row.symbol in LOOPS)


def test_perf_annotate(out):
    lines = perf(out, "annotate", "flat", "--stdio", "-s", "burn_a")
    hit = re.findall(r"^ +(\d+\.\d+) :? *(\w+):.*(?:dec|sub|jne)", lines, re.MULTILINE)
    assert sum(float(percent) for percent, _ in hit) > 98, lines
    assert all(0 <= int(at, 16) - own_addresses()["burn_a"] < 16 for _, at in hit)


@pytest.mark.parametrize("name", ("flat", *KINDS, "two", "both", "running"))
def test_strobe_report(measured, name):
    lines = strobe("report", "--rows", 0, measured[name].file).stdout
    found = {row[1]: int(row[0]) for row in re.findall(
        r"^ *0x1\w{3} +(\d+) +[\d.]+% +(\w+)(?: \[.*)?$", lines, re.MULTILINE)}
    assert found == measured[name].of(PIE), lines


def test_strobe_lines_and_annotate(measured):
    lines = strobe("report", "--by", "line", measured["plain"].file).stdout
    assert re.search(r"tests/guest/pie.c:\d+", lines), lines
    lines = strobe("annotate", "-s", "burn_b", measured["plain"].file).stdout
    counted = re.findall(r"^ *(\d+) .*\b(?:dec|jne)\b", lines, re.MULTILINE)
    # One of 50,000 instructions differs.
    assert 0 <= measured["plain"].of(PIE)["burn_b"] - sum(map(int, counted)) <= 5


def test_strobe_diff(measured):
    lines = strobe("diff", measured["flat"].file, measured["plain"].file).stdout
    for name in LOOPS:
        row = re.search(rf"^([\d.]+) .*\b{name} \[{PIE}\]", lines, re.MULTILINE)
        assert float(row[1]) > 0, lines


def test_gprof(measured, tmp_path):
    for name in ("plain", "two"):  # at one address, and at two
        m = measured[name]
        path = m.export("gmon", tmp_path / "gmon.out")
        flat = run("gprof", "-b", "-p", FILE, path).stdout
        found = {row[1]: round(1000 * float(row[0])) for row in re.findall(
            r"^ +[\d.]+ +[\d.]+ +([\d.]+) .* (burn_.)$", flat, re.MULTILINE)}
        for loop in LOOPS:  # printed with two decimals, in seconds
            assert abs(found[loop] - m.of(PIE)[loop]) <= 5, flat


def test_exports(measured, tmp_path):
    """Each export has the same samples."""
    m = measured["two"]
    truth, time = m.of(PIE), m.time_of(PIE)
    folded = collections.Counter()
    for line in open(m.export("folded", tmp_path / "folded")):
        stack, ns = line.rsplit(" ", 1)
        folded[stack.split(";")[-1]] += int(ns)
    own, _ = callgrind(m.export("callgrind", tmp_path / "callgrind"), "no")
    pprof = collections.Counter()
    for chain, (count, _), _ in Pprof(m.export("pprof", tmp_path / "pb")).samples:
        pprof[chain[0][:2]] += count
    for name in LOOPS:
        assert folded[name] == time[name]
        assert own[name] == truth[name]
        assert pprof[PIE, name] == truth[name]
    for form in ("speedscope", "perfetto", "firefox", "html"):
        with open(m.export(form, tmp_path / form), "rb") as file:
            data = file.read()
        for name in LOOPS:
            assert name.encode() in data or data[:2] == b"\x1f\x8b", form
