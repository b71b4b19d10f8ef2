"""Time on machines with other clocks: each counter selected once, each device missing
once; and the programs that show and set the time."""
import functools
import re
import subprocess

import pytest

from machine import PATIENCE, ROOT, batch, vm
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
    "only the RTC": (("--machine", "pc,hpet=off,pit=off", "--kargs", "acpi=off"),
                     "tsc", ("hpet", "acpi_pm", "pit")),
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


WRONG_RATE = """
    echo wrong-rate >/dev/plant
    sleep 21; sysinfo system.clock
    profile /bin/true | head -8; cprofile -1 true >/tmp/c; head -3 /tmp/c
    sensors record -o /tmp/s -d 0.1 /sensors/mm/free; sensors /tmp/s | head -2
    trace record -o /tmp/t -e sched/switch true 2>/dev/null; trace report /tmp/t | grep clock
    sprofile -q -o /tmp/p -s nmi-hpet --fixed -F 1000 --for 60 & usleep 300000
    sprofile -s nmi-hpet --fixed -F 1000 --for 1 | grep missed
    sleep 40; sysinfo system.clock; profile sleep 2 | head -8
    sprofile -s nmi-hpet --fixed -F 1000 --for 1 | grep missed
    sensors record -o /tmp/s -d 0.1 /sensors/mm/free; sensors /tmp/s | head -2
    dmesg | grep clock"""


def test_a_wrong_rate_is_corrected():
    """A TSC that was taken for 2.5 times slower than it is: the watch finds that, another
    counter tells the time, every report says that the rate is not known, and half a minute
    later it is: also to a source that samples all the while, whose ticks at fixed distances
    are computed from the TSC."""
    result = vm(WRONG_RATE, "--kernel", f"{ROOT}/build/kernel-test.elf")
    before, after = re.split(r"# clock: TSC, (?=400\.0|399\.9)", result.output, maxsplit=1)
    taken_for = re.search(r"^tsc .* (\d{9}) ", before, re.MULTILINE)
    assert abs(int(taken_for[1]) - 4e8) < 8e3, result  # 20 ppm
    assert before.count("\nClock:   TSC 0.400 GHz, rate assumed") == 3, result
    assert after.split("\n")[0].endswith(" MHz, rate assumed"), result
    rate = re.search(r"^tsc .* yes +yes +(\d+)  watched; measured again$", after, re.MULTILINE)
    assert abs(int(rate[1]) - 1e9) < 2e4, result
    assert re.search(r"^Profile of .* 2\.00\d s$", after, re.MULTILINE), result
    assert "rate assumed" not in after.split("\n", 1)[1], result
    missed = [int(n) for n in re.findall(r"^Ticks: +(\d+) missed", after, re.MULTILINE)]
    assert missed[0] > 1000 and missed[1:] == [0, 0], result
    assert [line.split("clock: ")[1].split(",")[0] for line in after.splitlines()
            if "clock: " in line][-4:] == [
                "the rate of the tsc is measured again", "time by the hpet",
                f"the rate of the tsc is {rate[1][:-6]}.{rate[1][-6:]} MHz +-1 ppm",
                "time by the tsc"], result


def clocks(machine, *stall):
    """What the machine says of its clocks when it starts on a host that stops it."""
    run = subprocess.run(
        [*stall, f"{ROOT}/tools/vm", "--smp", "1", *machine, "--", "sysinfo system.clock"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    assert run.returncode == 0, run
    return run.stdout


def rates(text):
    rows = dict(re.findall(r"^(tsc|lapic) .* yes +yes +(\d+) ", text, re.MULTILINE))
    assert set(rows) == {"tsc", "lapic"}, text
    return int(rows["tsc"]), int(rows["lapic"])


def stopped_for(milliseconds):
    return f"{ROOT}/tools/stall", "--regular", milliseconds, "1.5", "--for", "6"


# (With the PIT alone each stop is longer than it counts.)
@pytest.mark.parametrize("machine", [
    pytest.param(machine, marks=[realtime()]) for machine in (
        (), ("--machine", "pc,hpet=off"), ("--machine", "pc,hpet=off", "--kargs", "acpi=off"))])
def test_rates_on_a_host_that_stops_the_machine(machine):
    """For most of the time, and for longer than the PIT counts."""
    usual = rates(clocks(machine))
    for stop in "40", "60":
        stopped = rates(clocks(machine, *stopped_for(stop)))
        for rate, expected in zip(stopped, usual):
            assert abs(rate - expected) < expected / 1000, (stopped, usual)


@realtime()
def test_no_timer_but_the_lapic_on_a_host_that_stops_the_machine():
    """The machine starts. No counter has a known rate: the RTC's second measures the TSC, or
    its rate is assumed, and said to be; and the LAPIC timer is measured by the TSC."""
    tsc, lapic = rates(clocks(()))
    text = clocks(MACHINES["only the RTC"][0], *stopped_for("40"))
    stated, timer = rates(text)
    within, = re.findall(r"^tsc .* (?:by the rtc, \+-(\d+) ppm|rate assumed)$", text,
                         re.MULTILINE)
    assert not within or abs(stated - tsc) < tsc * int(within) / 1e6, (tsc, text)
    assert abs(timer / stated - lapic / tsc) < lapic / tsc / 100, (tsc, lapic, text)
