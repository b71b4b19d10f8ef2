"""The kernel at random addresses: starts differ, what it tells has kernel.elf's addresses,
and the tools follow it. Forced distances in virtual time repeat exactly."""
import re
import subprocess

import pytest

from machine import KERNEL, ROOT, vm
from monitor import by_tools
from tiers import realtime

TEST_KERNEL = f"{ROOT}/build/kernel-test.elf"
LARGE = 2 << 20  # a large page, with PAE
LARGEST = 381    # of 768 MiB; more is as much
# The panic of a kernel without a first program says how far it has moved.
NO_INIT = "init=/none"
COPY = "dd if=/dev/zero of=/dev/null bs=1 count=3000 2>/dev/null"
COMMAND = f"""cd /out
sysinfo kernel.symbols >symbols; sysinfo system.functions >functions
sysinfo system.protection | grep both; su user -c 'sysinfo kernel.symbols'
sprofile -g -F 4000 -o perf.data {COPY}
sprofile -F 4000 -o plain.data {COPY}
cprofile -o calls {COPY} >/dev/null 2>&1
trace record -F sys_read -o trace {COPY} >/dev/null 2>&1
trace report trace | grep -o "sys_read by .*" | sort | uniq -c
graph -F sys_read,zero_user {COPY} >graph
kgmon -b -F 4000 && {COPY} && kgmon -p gmon -e
stats --audit >/dev/null; echo balanced"""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def symbols():
    return {name: int(value, 16) for value, _, name in
            (line.split(maxsplit=2) for line in run("nm", KERNEL).splitlines())}


def distance(*options, smp=1):
    """How far a kernel has moved, by its panic."""
    result = vm(None, "--console", *options, "--kargs", NO_INIT, smp=smp)
    assert result.status == 125 and "cannot start /none" in result.console, result
    found = re.search(r"^moved by (0x\w+)", result.console, re.MULTILINE)
    pc, = re.findall(r"^  (\w+) init_thread\+", result.console, re.MULTILINE)
    start = symbols()["init_thread"]
    assert start < int(pc, 16) < start + 4096, result
    return int(found[1], 16) if found else 0, result.console


@realtime()
@pytest.mark.parametrize("cpu, source", (("max", "RDRAND"), ("pentium3", "TSC")))
def test_starts_differ(cpu, source):
    """Of at most eight: all are the same once in 10^15."""
    places = set()
    for _ in range(8):
        moved, console = distance("--cpu", cpu)
        assert f"kaslr: the kernel has one of 256 places, by {source}\n" in console
        assert moved % LARGE == 0 and 256 << 20 <= moved + (4 << 20) <= 766 << 20
        places.add(moved)
        if len(places) > 1:
            return
    assert False, places


def test_virtual_time_has_one_place():
    moved, console = distance("--icount", "3")
    assert moved == 0 and "kaslr: off\n" in console


def test_not_by_default_with_gdb_or_if_off(tmp_path):
    text = by_tools(tmp_path, "true", "break sys_sync\nhbreak kernel_main\ncontinue\n"
                    "printf \"stands at %#x\\n\", $pc\nkill\n", smp=1)
    assert f"stands at {symbols()['kernel_main']:#x}" in text, text


@pytest.mark.parametrize("number, pages", ((1, 1), (LARGEST, LARGEST), (999999999, LARGEST)))
def test_forced_distance(number, pages):
    assert distance("--kargs", f"kaslr={number}")[0] == pages * LARGE


def test_without_pae():
    assert distance("--cpu", "pentium2,-pae", "--kargs", "kaslr=3")[0] == 3 * 2 * LARGE


@pytest.mark.parametrize("smp, number", ((1, 0), (1, 1), (4, 1), (1, LARGEST), (4, LARGEST)))
def test_addresses_are_those_of_the_file(tmp_path, smp, number):
    result = vm(COMMAND, "--icount", "3", "--kargs", f"kaslr={number}", "--get",
                str(tmp_path), smp=smp)
    assert result.status == 0 and result.output.endswith("balanced\n"), result
    assert re.search(r"^kernel_both +0 ", result.output, re.MULTILINE), result
    assert "00000000 T (hidden)" in result.output, result
    # Several functions of one name: any of them.
    lines = {line for line in run("nm", KERNEL).splitlines() if line[0] == "c"}
    told = (tmp_path / "symbols").read_text().splitlines()
    assert len(told) > 2000
    places = {line.split()[0] for line in lines}
    assert all(line.split()[0] in places for line in told)
    nm = symbols()
    assert f"{nm['sys_read']:08x} T sys_read" in told
    assert re.search(rf"^{nm['sys_read']:08x} +\d+ +sys_read ",
                     (tmp_path / "functions").read_text(), re.MULTILINE)

    tool = f"{ROOT}/tools/strobe"
    for file in "perf.data", "plain.data":  # with chains, and without
        report = run(tool, "report", "--rows", "0", str(tmp_path / file))
        rows = re.findall(r"^ *0x(\w+) +\d+ +[\d.]+%  (\w+) \[kernel\]", report, re.MULTILINE)
        # (Of four CPUs that take turns most samples are idle.)
        assert rows and all(any(line.startswith(at) and line.endswith(f" {name}")
                                for line in lines) for at, name in rows), report
        assert "unknown]" not in report, report
    perf = run("perf", "report", "--stdio", "--no-children", "-g", "none", "-k", KERNEL, "-i",
               str(tmp_path / "perf.data"))
    assert re.search(r"\[kernel.kallsyms\] +\[k\] (trap_syscall|sched_start_cpu)", perf), perf
    report = run(tool, "report", "--rows", "0", str(tmp_path / "calls"))
    assert re.search(r"sys_read$", report, re.MULTILINE), report
    (calls, caller), = re.findall(r"^ +(\d+) sys_read by (0x\w+)$", result.output, re.MULTILINE)
    assert int(calls) >= 3000, result
    assert nm["trap_syscall"] < int(caller, 16) < nm["trap_syscall"] + 4096, result.output
    graph = (tmp_path / "graph").read_text()
    assert min(map(graph.count, ("  sys_read {", "  zero_user();"))) >= 2900, graph[-2000:]
    flat = run("gprof", "-b", "-p", KERNEL, str(tmp_path / "gmon"))
    assert re.search(r" +300\d +.* sys_read$", flat, re.MULTILINE), flat


@pytest.mark.parametrize("smp", (1, 4))
def test_gdb_follows(tmp_path, smp):
    """gdb waits before the kernel moves: at the next command its symbols have moved."""
    text = by_tools(tmp_path, "sync", f"""
hbreak *{symbols()['sys_sync'] + LARGEST * LARGE:#x}
continue
strobe-sessions
printf "%#x %d\\n", $pc, $pc == (unsigned)&sys_sync
backtrace
kill
""", "--kargs", f"kaslr={LARGEST}", smp=smp)
    assert f"{symbols()['sys_sync'] + LARGEST * LARGE:#x} 1\n" in text, text
    assert "There is no profile session." in text, text
    assert re.search(r"^#\d .* trap_syscall ", text, re.MULTILINE), text


@realtime()
@pytest.mark.parametrize("smp", (1, 4))
def test_a_hang_is_named(smp):
    """The places of a hung machine's CPUs, which tools/vm reads from their registers."""
    result = vm("sleep 1000", "--timeout", "20", "--kargs", f"kaslr={LARGEST}", smp=smp)
    assert result.status == 124 and result.errors.count("+0x") >= smp, result
    assert "in ring 0" not in result.errors, result
