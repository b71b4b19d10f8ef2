"""The matrix of machines (machines.py): each boots, its clocks and timers prove themselves,
its accounts balance, and a profile has the samples that it should have."""
import re

import pytest

from bochs import bochs
from machine import LONG_PATIENCE, ROOT, use_clock, vm
from machines import MACHINES
from selftest_rows import rows
from test_uefi import dump

pytestmark = pytest.mark.machines
COMMAND = """nproc
echo === clock; sysinfo system.clock
echo === selftest; selftest; echo status $?
echo === accounts; stats --audit && echo balanced
echo === profile
sprofile -F 1000 --rows 3 sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'
echo status $?"""
TABLE = f"{ROOT}/build/machines"  # what `make test-machines` prints
NEAR = 0.05  # random intervals: the number of ticks in a time varies


def check_cpus(machine, first, console):
    """All of them, or the log says how many are left out."""
    expected = machine.cpus or machine.smp
    left_out = len(re.findall(r"cpu: APIC id \d+ is left out", console))
    assert int(first) + left_out == expected, (first, left_out)


def check_clock(machine, text):
    chosen, = re.findall(r"^(\w+) +time source +\d+ +yes +yes ", text, re.MULTILINE)
    assert chosen == machine.clock, text


def check_selftest(machine, text):
    found = rows(text)
    wrong = {name for name, (result, _) in found.items() if result == "WRONG"}
    lacks = {name for name, (result, _) in found.items() if result == "not there"}
    assert len(found) > 10 and wrong - machine.doubtful == machine.wrong, text
    assert machine.lacks <= lacks, (machine.lacks - lacks, text)
    assert f"status {int(bool(wrong))}\n" in text, text


def check_profile(machine, text):
    """Of the whole machine: each expected sample was taken, or is counted as lost, missed or
    one of sprofile itself.
    (In real time a busy host makes ticks late. In the profile of one program a late one could
    come, and be counted, when another runs.)"""
    source, = re.findall(r"^Source: +(\S+) at \d+ Hz", text, re.MULTILINE)
    assert source == machine.source, text
    expected, taken, lost, unknown = map(int, re.search(
        r"^Samples: (\d+) expected, (\d+) taken, (\d+) lost, (\d+) unknown",
        text, re.MULTILINE).groups())
    missed, outside, in_sampling = map(int, re.search(
        r"^Ticks: +(\d+) missed.*; (\d+) outside the target(?:; (\d+) due in sampling)?$",
        text, re.MULTILINE).groups("0"))
    assert expected > 20 and taken > 10 and lost == unknown == 0, text
    assert machine.real_time or missed == 0, text
    assert abs(expected - taken - missed - outside - in_sampling) <= max(10, NEAR * expected), text
    assert "Wrong:" not in text and "\nstatus 0\n" in text, text


@pytest.fixture(scope="module")
def table():
    """The rows of the table, of those machines on which all is as expected."""
    lines = [f"{'machine':26} CPUs  clock  source    samples  missed  selftest\n"]
    yield lines
    with open(TABLE, "w") as file:
        file.writelines(lines)


def line_of(machine, cpus, selftest, profile):
    source, taken, missed = re.search(
        r"^Source: +(\S+)(?:.|\n)* (\d+) taken,(?:.|\n)* (\d+) missed", profile,
        re.MULTILINE).groups()
    result, = re.findall(r"^\d+ ok, \d+ not there, \d+ wrong$", selftest, re.MULTILINE)
    return f"{machine.name:26} {cpus:>4}  {machine.clock:5}  {source:8}  {taken:>7}  " \
        f"{missed:>6}  {result}\n"


def run(machine):
    if machine.bochs is not None:
        return bochs(COMMAND, smp=machine.smp, **machine.bochs)
    use_clock(virtual=not machine.real_time)
    return vm(COMMAND, *machine.options, smp=machine.smp, timeout=LONG_PATIENCE)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_machine(machine, tmp_path, table):
    result = run(machine)
    first, *parts = re.split(r"^=== (?:\w+)\n", result.output, flags=re.MULTILINE)
    assert len(parts) == 4, result
    clock, selftest, accounts, profile = parts
    cpus = first.split()[-1]
    check_cpus(machine, cpus, result.console or result.output)
    check_clock(machine, clock)
    check_selftest(machine, selftest)
    assert "\nbalanced\n" in accounts, result
    check_profile(machine, profile)
    for text in machine.said:
        assert text in result.console, result
    if machine.screen:
        shot, _ = dump(tmp_path, *machine.options)
        assert shot.line(0).startswith("Yellow and grey"), shot.lines()
        assert (shot.line(1), shot.line(4)) == ("╔═╗", "end\0"), shot.lines()
    table.append(line_of(machine, cpus, selftest, profile))
