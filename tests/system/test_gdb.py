"""tools/gdb/strobe.py, in the real gdb, on a kernel that hangs with interrupts off: it
writes the rings' contents, byte for byte."""
import json
import re
import struct
import subprocess

import pytest

from machine import PATIENCE, ROOT
from monitor import by_tools

# The next sync() loops with interrupts off; NMI samples fill the rings, until {samples}
# more are taken.
HANG = """
python complaint("strobe-sessions")
break sys_sync
continue
delete
set var *(unsigned short *)$pc = 0xfeeb
set var $eflags = $eflags & ~0x200
printf "hangs at %#x\\n", $pc
"""
# (By ^C: a breakpoint in the taking of samples would make each so long that the next tick
# comes due in it.)
SAMPLES = """
python
import os, signal, threading
def taken():
    session = gdb.parse_and_eval("sampled").dereference()
    return sum(int(session["cpu"][cpu]["taken"][mode]["low"])
               for cpu in range({smp}) for mode in range(4))
enough = taken() + {samples}
while taken() < enough:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    gdb.execute("continue")
end
strobe-sessions
strobe-rings {folder}/stream
"""
# The same rings, with gdb's commands.
RING = """
printf "ring %d %u %u %u\\n", {cpu}, $r.size, $r.head, $r.tail
dump binary memory {folder}/ring{cpu} $r.bytes ($r.bytes+$r.size)
"""
COMPLAINTS = """
python
complaint("strobe-rings")
complaint("strobe-rings {folder}/x 7")
complaint("strobe-rings {folder}/none/x")
end
kill
"""
HEAD = struct.Struct("<HHHHQ")
SAMPLE, TASK, TIMES = 1, 2, 5


def debug(folder, command, samples, smp):
    """Runs a command in a machine until it hangs; returns gdb's output."""
    script = SAMPLES + "".join(
        f"set $r = sampled->cpu[{cpu}].ring" + RING.replace("{cpu}", str(cpu))
        for cpu in range(smp)) + COMPLAINTS
    return when_it_hangs(folder, command, script, smp, samples=samples)


def when_it_hangs(folder, command, script, smp, **names):
    """Runs gdb's commands when the machine hangs; returns gdb's output."""
    return by_tools(folder, command,
                    (HANG + script).format(folder=folder, smp=smp, **names), smp=smp)


def records(data):
    at = 0
    while at < len(data):
        kind, size, cpu, _, _ = HEAD.unpack_from(data, at)
        yield kind, cpu, data[at:at + size]
        at += size
    assert at == len(data)


def rings(folder, said):
    """The unread bytes of each CPU's ring, from gdb's output."""
    found = []
    for cpu, size, head, tail in re.findall(r"^ring (\d+) (\d+) (\d+) (\d+)$",
                                            said, re.MULTILINE):
        with open(f"{folder}/ring{cpu}", "rb") as file:
            data = file.read()
        size, head, tail = int(size), int(head), int(tail)
        assert len(data) == size
        found.append(bytes(data[i % size] for i in range(tail, head)))
    return found


# A system-wide profiler, stopped so that it does not read the rings from the other CPU;
# and one of a task, whose ring was read before, is full and wraps around.
CASES = {
    "system": (2, 300, "sprofile -s nmi-pit sh -c 'lua -e \"for i = 1, 1e6 do "
               "end\"; kill -STOP $PPID; sync'"),
    "task": (1, 150, "profile -s nmi-pit -F 100 -m 1 sh -c 'i=0; "
             "while [ $i -lt 60000 ]; do i=$((i+1)); done; sync'"),
}


@pytest.mark.parametrize("case", CASES)
def test_rings_of_a_hung_kernel(case, tmp_path):
    smp, samples, command = CASES[case]
    said = debug(tmp_path, command, samples, smp)
    assert "has the kernel not begun yet" in said, said
    hang = int(re.search(r"^hangs at (\w+)$", said, re.MULTILINE)[1], 16)
    with open(tmp_path / "stream", "rb") as file:
        data = file.read()
    magic, asked, info = struct.unpack_from("<8sII", data)
    assert magic == b"strob2\r\n"
    stream = data[172 + asked + info:]
    expected = rings(tmp_path, said)
    assert len(expected) == smp, said
    assert stream.endswith(b"".join(expected)), said

    # The records before them name the programs, and have their times.
    before = stream[:len(stream) - sum(map(len, expected))]
    assert {kind for kind, _, _ in records(before)} <= {TASK, TIMES}
    paths = {record[64:].split(b"\0")[0] for kind, _, record in records(before)
             if kind == TASK}
    assert b"/bin/busybox" in paths and b"/sbin/init" in paths, paths

    # gdb's list has the same numbers; and the CPU hangs at the expected place.
    counts = [sum(kind == SAMPLE for kind, _, _ in records(ring))
              for ring in expected]
    listed = re.findall(r"^ +(\d+) +\d+ +\d+ +(\d+) +(\d+) +\d+$", said,
                        re.MULTILINE)
    assert listed == [(str(i), str(n), str(len(ring))) for i, (n, ring)
                      in enumerate(zip(counts, expected))], said
    assert sum(counts) > 90
    hung = max(last_pcs(ring).count(hang) for ring in expected)
    assert hung >= 40, said
    if case == "task":
        size, head, tail = map(int, re.search(
            r"^ring 0 (\d+) (\d+) (\d+)$", said, re.MULTILINE).groups())
        assert tail > 0 and head // size > tail // size, said

    check_converted(tmp_path, f"{tmp_path}/stream", sum(counts), hung)

    for text in ("strobe-rings FILE [SESSION]", "there is no session 7",
                 "No such file or directory"):
        assert f"complaint: {text}" in said or text in said, said


SENSORS = """
strobe-sensors
strobe-sensor /sensors/sched/switch.0 {folder}/switch
strobe-sensor /sensors/verner/frames {folder}/frames
strobe-sensor /sensors/verner/decode.cost {folder}/cost
python
complaint("strobe-sensor /sensors/none {folder}/x")
complaint("strobe-sensor /sensors/mm/fault {folder}/x")
complaint("strobe-sensor")
end
kill
"""


def test_sensors_of_a_hung_kernel(tmp_path):
    said = when_it_hangs(
        tmp_path, "tail -f /sensors/sched/switch.0 >/dev/null & "
        "/test/sensor_decoder 300 60 >out & until grep -q fork out; do "
        "usleep 10000; done; sync", SENSORS, 1)
    listed = dict(re.findall(r"^(/sensors/\S+): (.*), of task", said, re.MULTILINE))
    assert listed["/sensors/verner/frames"] == "list, open", said
    assert listed["/sensors/sched/switch.0"] == "ring, open", said
    assert listed["/sensors/mm/fault"] == ", off", said
    frames, cost, switches = (
        json.loads(strobe("sensors", "--json", f"{tmp_path}/{name}").stdout)
        for name in ("frames", "cost", "switch"))
    assert [e["number"] for e in frames["events"]] == list(range(44, 300)), frames
    assert cost["count"] == 300, cost
    records = switches["records"]
    numbers = [r["number"] for r in records]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), switches
    # Each record begins with the thread that the last one ended with.
    assert len(records) > 10 and all(
        a["fields"]["next"] == b["fields"]["prev"]
        for a, b in zip(records, records[1:])), switches
    for text in ("there is no sensor /sensors/none", "/sensors/mm/fault is off",
                 "strobe-sensor PATH FILE"):
        assert f"complaint: {text}" in said, said


TRACE = """
strobe-trace {folder}/trace
python
complaint("strobe-trace")
complaint("strobe-trace {folder}/none/x")
end
kill
"""


@pytest.mark.parametrize("how", ("--flight 60", "-b 16384"))
def test_trace_of_a_hung_kernel(how, tmp_path):
    """What its rings have, to the last event before it hangs."""
    said = when_it_hangs(
        tmp_path, f"trace record {how} -o /tmp/f sh -c 'usleep 1000; sync'", TRACE, 2)
    assert re.search(r"trace: \d+ bytes of events of a (flight of 60 s|trace), by task \d+$",
                     said, re.MULTILINE), said
    report = strobe("trace", "report", f"{tmp_path}/trace")
    assert report.returncode == 0 and "MISSING" not in report.stdout, report
    assert ("# flight: " in report.stdout) == ("flight" in how), report
    lines = report.stdout.splitlines()
    assert re.search(r" sync:\d+ +syscall/enter  sync$", lines[-1]), report
    assert any(" usleep:" in line for line in lines), report
    for text in ("strobe-trace FILE", "No such file or directory"):
        assert f"complaint: {text}" in said or text in said, said


def strobe(*arguments):
    return subprocess.run([f"{ROOT}/build/strobe", *arguments], text=True,
                          capture_output=True, timeout=PATIENCE)


def check_converted(folder, stream, samples, hung):
    """The perf.data has the same samples, and shows where the kernel hangs. Truncated and
    invalid files are reported."""
    done = strobe("convert", stream, "-o", f"{folder}/perf.data")
    assert done.returncode == 0, done
    done = strobe("report", f"{folder}/perf.data")
    assert re.search(r"^Source:  nmi-pit", done.stdout, re.MULTILINE), done
    rows = re.findall(r"^0x\w+ +(\d+) +[\d.]+%  (.*)$", done.stdout,
                      re.MULTILINE)
    found = {name.split(" ")[0]: int(count) for count, name in rows}
    assert found["sys_sync"] >= hung, done.stdout
    done = strobe("report", "--by", "cpu", f"{folder}/perf.data")
    assert sum(map(int, re.findall(r"^ *(\d+) +[\d.]+%  CPU", done.stdout,
                                   re.MULTILINE))) == samples, done.stdout

    done = subprocess.run(["perf", "report", "--stdio", "--no-children", "-k",
                           f"{ROOT}/build/kernel.elf", "-i",
                           f"{folder}/perf.data"], text=True,
                          capture_output=True, timeout=PATIENCE)
    assert re.search(r"% +\w+ +\[kernel.kallsyms\] +\[k\] sys_sync",
                     done.stdout), done

    with open(stream, "rb") as file:
        data = file.read()
    for size, text in ((0, "is not from strobe-rings"),
                       (171, "is not from strobe-rings"),
                       (200, "is not from strobe-rings"),
                       (len(data) - 1, "cut off")):
        with open(f"{folder}/cut", "wb") as file:
            file.write(data[:size])
        done = strobe("convert", f"{folder}/cut", "-o", f"{folder}/out")
        assert text in done.stderr, done
        assert done.returncode == (text != "cut off"), done


def last_pcs(ring):
    """The last 50 program counters (after struct sprofile_sample)."""
    return [struct.unpack_from("<I", record, 36)[0]
            for kind, _, record in records(ring) if kind == SAMPLE][-50:]
