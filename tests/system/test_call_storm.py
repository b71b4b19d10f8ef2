"""Call tracing on 8 CPUs under load: cprofile and kgmon begin, read, reset, stop and end
traces at random, also by kill -9. No function stays patched, and the books balance."""
import json
import os
import random
import re
import subprocess

import pytest

from checkers import FINE_CLOCK, NOTHING_LOST, options
from machine import KERNEL, LONG_PATIENCE, vm

CPUS = 8
KERNEL_BASE = 0xc0000000
# Programs that begin and end, read, write and sleep, on all CPUs until a file appears.
LOAD = f"""
for cpu in $(seq {CPUS}); do
    while ! [ -e /tmp/over ]; do
        ls -l /etc >/tmp/load$cpu
        usleep 20000
    done &
done
loads=$(jobs -p)
"""
END = """
>/tmp/over
wait $loads
sleep 0.1
sysinfo system.text >/out/after
stats --audit >/out/audit || echo "the audit: $?"
"""
CHOICES = ("", "-F 'sched_*,kernel/mm/*'", "-Z 64", "-D 2", "-F '!lib/*' -D 30",
           "--entries 256", "--arcs")


def some_time(draw):
    return f"usleep {draw.randrange(20000)}"


def steps(draw, commands):
    """Random commands, some of which read or reset the trace as a whole."""
    lines = []
    for _ in range(draw.randrange(5)):
        lines += [some_time(draw), draw.choice(commands)]
    return lines + [some_time(draw)]


def of_cprofile(draw, number):
    lines = steps(draw, ["cprofile reset 2>/dev/null",
                         "cprofile get -g >/dev/null 2>&1"])
    get = f"until cprofile get --json >/out/{number}.json 2>/dev/null || " \
          "! kill -0 $tool; do usleep 3000; done"
    lines.insert(draw.randrange(len(lines) + 1), get)
    end = draw.choice(("kill -9 $tool", "kill -TERM $tool", "true"))
    return [f"cprofile -n 1 {draw.choice(CHOICES)} usleep 150000 >/dev/null & tool=$!",
            *lines, end, "wait $tool"]


def of_kgmon(draw, number):
    lines = steps(draw, ["kgmon -h", "kgmon -b", "kgmon -r", "kgmon -p /tmp/gmon.out",
                         "kgmon -s >/dev/null", "cprofile reset",
                         f"cprofile get --json >/out/{number}.json"])
    end = draw.choice(("kgmon -e", "kill -9 $(pidof kgmon)"))
    return [f"kgmon -b -F {draw.choice((300, 1000))} || echo 'kgmon: {number}'", *lines,
            end, "while pidof kgmon >/dev/null; do usleep 5000; done"]


def storm(seed, rounds):
    draw = random.Random(seed)
    lines = ["sysinfo system.text >/out/before", LOAD]
    for number in range(rounds):
        lines += draw.choice((of_cprofile, of_kgmon))(draw, number)
    # Whatever the others met, this one is read while it runs.
    lines.append("cprofile -n 1 sh -c 'cprofile get --json >/out/last.json' >/dev/null")
    return "\n".join(lines + [END])


def text_of(folder, kernel):
    """The kernel's code in the memory of the machine that has ended."""
    rows = [line.split() for line in subprocess.run(
        ["nm", kernel], text=True, capture_output=True, check=True).stdout.splitlines()]
    places = {row[-1]: int(row[0], 16) - KERNEL_BASE for row in rows}
    memory, = [name for name in os.listdir(folder) if name.isdigit()]
    with open(folder / memory, "rb") as file:
        file.seek(places["text_start"])
        return file.read(places["text_end"] - places["text_start"])


def check_sums(path):
    """Each CPU's nodes have the time of the trace, whatever else happens to it."""
    trace = json.loads(path.read_text())
    if "paths" not in trace:
        return False
    found = sum(node["own"] + node["tracing"] for node in trace["paths"])
    assert found == trace["elapsed"] * CPUS, path
    return True


@pytest.mark.parametrize("kernel, rounds", (("ordinary", 6), ("addresses", 2)))
def test_traces_begin_and_end_at_random(tmp_path, kernel, rounds):
    how = ("--icount", "3") if kernel == "ordinary" else \
        (*options(kernel), *FINE_CLOCK)
    path = KERNEL if kernel == "ordinary" else how[1]
    quiet, stormy = tmp_path / "quiet", tmp_path / "stormy"
    for folder in (quiet, stormy):
        folder.mkdir()
    result = vm("true", *how, "--keep-memory", str(quiet), smp=CPUS)
    assert result.status == 0, result
    result = vm(storm(20, rounds), *how, "--keep-memory", str(stormy), "--get",
                str(stormy), smp=CPUS, timeout=LONG_PATIENCE)
    assert result.status == 0 and not result.output, result
    assert text_of(stormy, path) == text_of(quiet, path)
    patched = [re.findall(r"^patched +(\d+)", (stormy / name).read_text(), re.MULTILINE)
               for name in ("before", "after")]
    assert patched[0] == patched[1] != [], patched
    if kernel != "ordinary":
        assert NOTHING_LOST in result.console, result
    for file in stormy.glob("[0-9]*.json"):
        if file.stat().st_size:
            check_sums(file)
    assert check_sums(stormy / "last.json")
