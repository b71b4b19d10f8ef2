"""kgmon: a histogram of the kernel and its calls, as gprof of binutils reads them."""
import re
import shutil
import subprocess

import pytest

from machine import KERNEL, ROOT, batch, vm
from monitor import by_tools

# N bytes, and three lines of statistics, to /dev/null: N + 3 calls of `discard`.
COPY = "dd if=/dev/zero of=/dev/null bs=1 count={} 2>/dev/null"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kgmon")
    result = vm("kgmon -b -F 4000 && kgmon -p /out/first && "
                f"{COPY.format(500)} && kgmon -h -p /out/second && "
                f"{COPY.format(500)} && kgmon -p /out/stopped -r && "
                "kgmon -s && kgmon -p /out/empty -b && "
                f"{COPY.format(3000)} && kgmon -s && {COPY.format(300)} && "
                "kgmon -p /out/again -e",
                "--get", str(folder), "--icount", "3", smp=2)
    assert result.status == 0, result
    return folder, result.output


def gprof(path, *options):
    done = subprocess.run(["gprof", "-b", *options, f"{ROOT}/build/kernel.elf",
                           str(path)], capture_output=True, text=True,
                          check=True)
    assert not done.stderr, done.stderr
    return done.stdout


def calls(path):
    """{function: calls}, of gprof's flat profile."""
    rows = re.findall(r"^ *[0-9.]+ +[0-9.]+ +[0-9.]+ +(\d+) .*?(\w\S*)$",
                      gprof(path, "-p"), re.MULTILINE)
    return {name: int(n) for n, name in rows}


def test_calls_of_gprof_are_calls(files):
    folder, _ = files
    first, second, stopped = (calls(folder / name) for name in
                              ("first", "second", "stopped"))
    assert second["sys_write"] - first.get("sys_write", 0) >= 500
    assert second["discard"] == 503 + first.get("discard", 0)
    assert stopped["discard"] == second["discard"]


def test_reset_and_going_on(files):
    folder, output = files
    assert "discard" not in calls(folder / "empty")
    assert calls(folder / "again")["discard"] == 3003 + 303
    empty, running = (output.index(state) for state in ("kgmon: stopped", "kgmon: running"))
    assert empty < running
    assert re.search(r"Samples: 0 in the kernel, .*\nCalls: .*; 0 of \d+ arcs used",
                     output[empty:running]), output
    assert re.search(r"Samples: [1-9]\d* in the kernel, [1-9]", output[running:]), output


def test_status_counts_until_now():
    """What a running one shows is all but the next command's, of 2 ms."""
    done = vm(f"kgmon -b -F 4000; {COPY.format(3000)}; kgmon -s; kgmon -h; kgmon -s; "
              "kgmon -e", "--icount", "3", smp=1)
    running, stopped = (int(kernel) + int(programs) for kernel, programs in re.findall(
        r"^Samples: (\d+) in the kernel, (\d+) in programs", done.output, re.MULTILINE))
    assert stopped > 80 and stopped - 16 <= running <= stopped, done


def test_callers_of_gprof(files):
    folder, _ = files
    graph = gprof(folder / "again", "-q")
    entry = next(part for part in graph.split("-" * 47)
                 if re.search(r"^\[\d+\].* discard ", part, re.MULTILINE))
    caller = re.search(r" (\d+)/(\d+) +sys_write ", entry)
    assert caller.groups() == ("3300", "3306")


def test_histogram_has_time(files):
    folder, output = files
    flat = gprof(folder / "second", "-p")
    assert "Each sample counts as 0.00025 seconds" in flat
    seconds = re.findall(r"^ *[0-9.]+ +([0-9.]+) ", flat, re.MULTILINE)
    assert float(seconds[-1]) > 0
    assert re.search(r"Samples: \d+ in the kernel, .* 0 lost; source \S+ at "
                     r"4000 Hz", output)


@pytest.fixture(scope="module")
def results():
    return batch({
        "none": "kgmon; kgmon -h; echo $?; kgmon -p /tmp/x; echo $?; "
                "kgmon -r; echo $?; kgmon -e; echo $?",
        "pattern": "kgmon -b -f 'shed_*'; echo $?; kgmon",
        "usage": "kgmon -F 0 -b; echo $?; kgmon now; echo $?; "
                 "kgmon -b -S nothing; echo $?",
        "filtered": "kgmon -b -f 'sys_*,!sys_w*'; kgmon; kgmon -e",
        "full": "kgmon -b; kgmon -p /dev/full; echo $?; kgmon -e",
        "killed": "kgmon -b; sysinfo system.text; kill -9 $(pidof kgmon); "
                  "sleep 0.1; sysinfo system.text; kgmon; cprofile -n 1 -f true",
        "busy": "cprofile -F 'sched_*' sleep 1 >/dev/null & sleep 0.3; kgmon -b; "
                "echo $?; kgmon; wait",
        "ordinary": "kgmon -b; su user -c 'kgmon -h'; echo $?; kgmon; kgmon -e;"
                    "su user -c 'kgmon -b'; echo $?",
        "help": "kgmon --help",
    }, "--icount", "3", smp=2)


def test_not_running(results):
    result = results["none"]
    assert result.output == "kgmon: not running (-b begins)\n" + "1\n" * 4
    assert result.errors.count("not running: kgmon -b begins") == 4


def test_bad_options(results):
    assert "-f 'shed_*': no such function" in results["pattern"].errors
    assert "Near are:\n    sched_" in results["pattern"].errors
    assert results["pattern"].output == "1\nkgmon: not running (-b begins)\n"
    assert results["usage"].output == "2\n2\n1\n"
    assert "-F 0: not a number" in results["usage"].errors
    assert "no such sample source" in results["usage"].errors
    assert "-h, --halt" in results["help"].output


def test_filter(results):
    traced = int(re.search(r"of (\d+) functions",
                           results["filtered"].output)[1])
    assert 100 < traced < 400


def test_full_disk(results):
    assert results["full"].output == "1\n"
    assert "-p /dev/full: No space left" in results["full"].errors


def test_kill_restores_the_kernel(results):
    output = results["killed"].output
    before, after = re.findall(r"^patched +(\d+) ", output, re.MULTILINE)
    assert int(before) > 1000 > int(after)
    assert "kgmon: not running" in output and "Traced: " in output


def test_another_trace_is_said(results):
    assert "the calls: the kernel's calls are traced already" in \
        results["busy"].errors
    assert results["busy"].output == "1\nkgmon: not running (-b begins)\n"


def test_other_users(results):
    result = results["ordinary"]
    assert "another user has begun it" in result.errors
    assert "may profile its own tasks only" in result.errors
    assert "kgmon: running" in result.output


def tool(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_kernel_without_symbols_has_no_histogram(tmp_path):
    """The list is empty: there is nothing before its end to search."""
    kernel = shutil.copy(KERNEL, tmp_path)
    count = int(re.search(r"^(\w+) \w ksym_count$", tool("nm", kernel), re.MULTILINE)[1],
                16)
    parts = [[int(n, 16) for n in row.split()] for row in re.findall(
        r"^ *LOAD +(\w+ \w+ \w+ \w+)", tool("readelf", "-lW", kernel), re.MULTILINE)]
    (offset,) = (start + count - address for start, address, _, size in parts
                 if address <= count < address + size)
    with open(kernel, "r+b") as file:
        file.seek(offset)
        file.write(bytes(4))
    result = vm("sysinfo kernel.symbols | wc -c; kgmon -b; echo $?; pidof kgmon",
                "--kernel", kernel, smp=1)
    assert result.output == "0\n1\n", result
    assert result.errors == "kgmon: the kernel's symbols: it has none\n", result


GDB = """
break sys_sync
continue
python complaint("kgmon {folder}/none")
continue
kgmon {folder}/gmon.out
python complaint("kgmon {folder}/none/x")
kill
"""


def test_gdb_reads_the_calls_of_a_stopped_kernel(tmp_path):
    said = by_tools(tmp_path, f"sync; kgmon -b -F 1000; {COPY.format(700)}; sync",
                    GDB.format(folder=tmp_path), "--icount", "3", smp=2)
    assert "complaint: no calls are counted" in said, said
    assert "complaint: [Errno 2] No such file" in said
    assert calls(tmp_path / "gmon.out")["discard"] == 703, said
    assert re.search(r"gmon.out: \d+ calls in \d+ arcs", said)
