"""Time on machines with other clocks: each counter selected once, each device missing
once; and the programs that show and set the time."""
import functools
import re

import pytest

from machine import batch, vm
from tiers import realtime

# Options for tools/vm, the selected counter, and the missing ones.
MACHINES = {
    "plain": ((), "tsc", ()),
    "hpet in use": (("--kargs", "clocksource=hpet"), "hpet", ()),
    "acpi_pm in use": (("--kargs", "clocksource=acpi_pm"), "acpi_pm", ()),
    "pit in use": (("--kargs", "clocksource=pit"), "pit", ()),
    "no HPET": (("--machine", "pc,hpet=off"), "tsc", ("hpet",)),
    "only the PIT": (("--machine", "pc,hpet=off", "--kargs", "acpi=off"),
                     "tsc", ("hpet", "acpi_pm")),
    "q35": (("--machine", "q35"), "tsc", ()),
    "no LFENCE": (("--cpu", "pentium3"), "tsc", ()),
}


SCRIPTS = {"facts": "sysinfo system.clock", "stress": "/test/clock_stress",
           "vdso": "/test/vdso", "clocks": "/test/clocks"}
# On several CPUs: what CPUs do to each other's clocks. (test_programs and the checked
# kernels have the plain machine.)
MEETING = {"stress": SCRIPTS["stress"]}


@functools.lru_cache(maxsize=None)
def results(machine, smp):
    return batch(SCRIPTS if smp == 1 else MEETING, *MACHINES[machine][0], smp=smp)


@pytest.mark.parametrize("smp, machine, program", [
    *((1, machine, program) for machine in MACHINES
      for program in ("stress", "vdso", "clocks")),
    *(pytest.param(4, machine, "stress", marks=[realtime()]) for machine in MACHINES
      if machine != "plain")])
def test_time_on(smp, machine, program):
    result = results(machine, smp)[program]
    assert result.status == 0, result
    assert "ok " in result.output and "FAILED" not in result.output, result


@pytest.mark.parametrize("machine", MACHINES)
def test_choice_on(machine):
    """sysinfo has the counters found, the selected one, and why not the others."""
    options, chosen, missing = MACHINES[machine]
    result = results(machine, 1)["facts"]
    rows = {row[0]: row for row in re.findall(
        r"^(\w+) +time source +(\d+) +(yes|no) +(yes|no) +(\d+) *(.*)$",
        result.output, re.MULTILINE)}
    assert set(rows) == {"tsc", "hpet", "acpi_pm", "pit"}, result
    for name, _, usable, in_use, _, why in rows.values():
        assert (usable == "no") == (name in missing), result
        assert (in_use == "yes") == (name == chosen), result
        assert name not in missing or why, result


def test_unknown_counter():
    result = vm("dmesg | grep clocksource", "--kargs", "clocksource=sundial")
    assert re.search(r"warning: clocksource=sundial .* tsc", result.output), result


def test_programs():
    """date, hwclock, adjtimex, time and uptime work, also in 2040."""
    result = vm("""
        date -s '2040-05-06 07:08:09'; date +%Y-%m-%d; hwclock | cut -c 1-10
        date -s '2026-01-02 03:04:05' >/dev/null; hwclock -w
        hwclock | grep -c 'Fri Jan  2 03:04'
        date -s @2208988800 >/dev/null; hwclock -r | grep -c 2040
        adjtimex -f 65536 | grep -c 'freq.adjust:  65536'
        adjtimex -t 10010 -q; adjtimex | grep tick
        uptime; { time sleep 0.1; } 2>&1 | grep real""")
    lines = result.output.splitlines()
    assert lines[:3] == ["Sun May  6 07:08:09 UTC 2040", "2040-05-06",
                         "Sun May  6"], result
    assert lines[3:7] == ["1", "1", "1",
                          "-t  tick:         10010 us"], result
    assert re.search(r" up \d+ min", lines[7]), result
    assert re.match(r"real\s+0m (0\.[1-9]|[1-9])", lines[8]), result
