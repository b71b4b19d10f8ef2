"""Timers and clocks on machines that lack a device: the in-kernel tests of all existing
timers, and system.clock's report of them."""
import calendar
import json
import re
import subprocess
import sys

import pytest

from bochs import ENVIRONMENT, bochs, folds_hpet_lines
from machine import ROOT, vm
from tiers import realtime

# The RTC exists and counts; its interrupt goes to another line.
SILENT_RTC = ["--machine", "pc,hpet=off", "--qemu-args",
              "-global mc146818rtc.irq=5"]
# Name, options for tools/vm, kernel arguments, the timer that wakes sleepers.
MACHINES = [
    ("pc", [], "", "the LAPIC timer"),
    ("q35", ["--machine", "q35"], "", "the LAPIC timer"),
    ("no HPET", ["--machine", "pc,hpet=off"], "", "the LAPIC timer"),
    ("HPET by messages", ["--qemu-args", "-global hpet.msi=on"], "",
     "the LAPIC timer"),
    ("no ACPI tables", [], "acpi=off", "the LAPIC timer"),
    ("an old CPU", ["--cpu", "pentium3"], "", "the LAPIC timer"),
    ("a CPU without SSE", ["--cpu", "pentium2"], "", "the LAPIC timer"),
    ("no APIC", ["--cpu", "max,-apic"], "", "pit"),
    # The firmware's tables name an I/O APIC that does not exist.
    ("8259 beside LAPIC", ["--machine", "isapc", "--cpu", "pentium2"], "",
     "the LAPIC timer"),
    ("no APIC, PIT clock", ["--cpu", "max,-apic"], "clocksource=pit", "pit"),
    ("events by the HPET", [], "timer=hpet", "hpet0"),
    ("events by messages", ["--qemu-args", "-global hpet.msi=on"],
     "timer=hpet2", "hpet2"),
    ("events by the PIT", [], "timer=pit", "pit"),
    ("PIT clock", [], "clocksource=pit", "the LAPIC timer"),
    ("a silent RTC", SILENT_RTC, "", "the LAPIC timer"),
    ("all by the PIT", [], "timer=pit clocksource=pit", "pit"),
]
# Machines where, with several CPUs, one passes the events on to the others. (The tests
# of a PC with several CPUs are in test_programs and the checked kernels.)
SHARED = ("events by the HPET", "events by messages", "all by the PIT")


# Sends stray NMIs; where it does not run, there must be none.
STRAYS = "timer_starts_among_stray_nmis"


def kernel_tests(*files):
    names = ["devices_one_shot_fires_when_due", "devices_long_one_shot_is_split",
             "devices_early_interrupt_changes_nothing"]
    for file in files or ("test_timer.c", "test_pit_clock.c"):
        with open(f"{ROOT}/tests/kernel/{file}") as source:
            names += re.findall(r"KERNEL_TEST\((\w+)\)", source.read())
    return ",".join(name for name in names if name != STRAYS)


def all_passed(names, output):
    """(The kernel cuts off an argument of more than 511 characters.)"""
    return re.search(rf"^1\.\.{len(names.split(','))}\s", output, re.MULTILINE) and \
        re.search(r"^# \d+ passed, 0 failed", output, re.MULTILINE)


@pytest.mark.parametrize("options, kargs, events, smp", [
    pytest.param(options, kargs, events, smp, id=f"{smp}-{name}",
                 marks=[realtime()] if smp > 1 else [])
    for smp in (1, 4)
    for name, options, kargs, events in MACHINES if smp == 1 or name in SHARED])
def test_timers_on(options, kargs, events, smp):
    names = kernel_tests()
    run = vm(None, "--console", "--kargs", f"{kargs} test={names}", *options, smp=smp)
    assert run.status == 0 and all_passed(names, run.output), run
    assert re.search(f"clock: events .*by {events}[^0-9]", run.output), run
    assert "unexpected NMI" not in run.output, run


# By the HPET's line, and by its messages.
@realtime()
@pytest.mark.parametrize("options", ([], ["--qemu-args", "-global hpet.msi=on"]))
def test_start_among_strays(options):
    run = vm(None, "--console", "--kargs", f"test={STRAYS}", *options, smp=4)
    assert run.status == 0, run
    assert re.search("cpu0: [0-9]+ unexpected NMI", run.output), run


# Another emulator: Bochs's devices, and a LAPIC with TSC-deadline mode, for clock
# events, and as one of the registry's timers. If Bochs's RTC disturbs the HPET's third
# comparator, it runs without the HPET, or without the tests that use one after the
# other.
@pytest.mark.parametrize("kargs", ("", "timer=hpet clocksource=pit"))
def test_timers_in_bochs(kargs):
    broken = folds_hpet_lines()
    names = kernel_tests("test_pit_clock.c") if broken and kargs else \
        kernel_tests()
    run = bochs(None, kargs=f"{kargs} test={names}", ips=20000000,
                hpet=not broken or "hpet" in kargs)
    assert all_passed(names, run.output), run


def test_bochs_takes_the_date_that_is_written():
    """Its mktime ignores tm_isdst, in the environment in which Bochs runs."""
    dates = [(year, month, 27, 4, 6, 9) for year in (1970, 2000, 2026, 2040, 2069)
             for month in range(1, 13)]
    script = f"import time; print(*(int(time.mktime((*date, 0, 0, dst))) " \
             f"for dst in (-1, 0, 1) for date in {dates}))"
    run = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT,
                         capture_output=True, text=True, check=True)
    assert run.stdout.split() == [str(calendar.timegm(d)) for d in dates] * 3


def test_tsc_deadline_in_bochs():
    run = bochs("dmesg; sysinfo system.clock", ips=20000000)
    assert "clock: events by the LAPIC's TSC deadline" in run.output, run
    assert re.search("lapic .*one-shot, tsc-deadline, ", run.output), run


@pytest.mark.parametrize("model, wrmsr, most", (
    ("corei7_haswell_4770", "0x10 0x500000000000", 0x500000000000 * 1.001),  # TSC_ADJUST
    ("corei7_sandy_bridge_2600k", "0x10 0x100", 1e12)))
def test_tscs_that_differ_are_set(model, wrmsr, most):
    """The boot CPU's was written by GRUB: before, a trace of 0.05 s took 109,944 s."""
    run = bochs("dmesg; trace record -o /tmp/t sleep 0.05; trace report /tmp/t | head -4; "
                "sysinfo system.clock", ips=20000000, model=model, wrmsr=wrmsr)
    off = re.search(r"TSCs of the other CPUs were set .* CPU 1 was off by (\d+) ", run.output)
    assert 1e6 < int(off[1]) < most, run
    seconds = re.search(r"^# \d+ events in ([\d.]+) s on 2 CPUs", run.output, re.MULTILINE)
    assert 0.05 <= float(seconds[1]) < 0.5, run
    assert "effects before their causes on other CPUs: 0\n" in run.output, run
    assert re.search(r"^tsc +time source +400 +yes +yes ", run.output, re.MULTILINE), run


TSC_ERROR = 100e-6  # of a measurement by the HPET: sysinfo system.clock
X2APIC = """
dmesg
stats --audit
for cpu in 1 2 4 8; do
    echo ===
    taskset $cpu profile --json sh -c 'i=0; while [ $i -lt 500 ]; do i=$((i+1)); done'
done"""


def test_x2apic_in_bochs():
    """Registers are MSRs; devices' interrupts go to the boot CPU, so NMIs for all CPUs
    are sent by one CPU to the others. None is missed: no two ticks are nearer than a tick's
    interrupt takes, 56 us on a CPU of 20 MIPS."""
    run = bochs(X2APIC, smp=4, ips=20000000, kargs="apic=x2apic",
                model="corei7_skylake_x")
    assert run.status == 0 and "irq: LAPIC in x2APIC mode" in run.output, run
    log, *reports = run.output.split("===")
    for report in reports:
        report = json.loads(report[:report.rindex("}") + 1])
        assert report["source"] == "nmi-ipi", report
        assert report["taken"] > 10 and not report["missed"], report
    assert len(reports) == 4 and "unexpected" not in log, run
    # CPUID's leaves 15H and 16H are those of a CPU with a real TSC.
    assert re.search(r"rate by CPUID, \d+ Hz, contradicts other clocks", log), run
    rate = float(re.search(r"time by the tsc, ([\d.]+) MHz", log)[1])
    assert abs(rate / 20 - 1) < TSC_ERROR, run


def clock_records(*options, kargs="", smp=2):
    run = vm("sysinfo system.clock", "--kargs", kargs, *options, smp=smp)
    assert run.status == 0, run
    records = [re.split(r"  +", line.strip(), maxsplit=6)
               for line in run.output.splitlines()[1:]]
    return {(r[0], r[1].split()[0]): " ".join(r[2:]) for r in records}


def test_what_is_there_is_listed():
    records = clock_records()
    for name in ("lapic", "hpet0", "hpet1", "hpet2", "rtc", "pit"):
        assert (name, "timer") in records
    assert "hpet3 " not in str(records)
    assert "for the clock's events" in records["lapic", "timer"]
    assert "nmi" in records["rtc", "timer"]


def test_what_is_not_there_is_said():
    records = clock_records("--machine", "pc,hpet=off")
    assert "the firmware names none" in records["hpet0", "timer"]
    records = clock_records("--cpu", "max,-apic", smp=1)
    assert "there is no local APIC" in records["lapic", "timer"]
    assert "for the clock's events" in records["pit", "timer"]
    assert "nmi" not in records["pit", "timer"]


def test_a_timer_that_never_interrupts_is_said():
    """A timer without interrupts is reported in the log, system.clock and by samplers."""
    run = vm("dmesg; sysinfo system.clock; profile -s rtc true", *SILENT_RTC)
    said = "its interrupts do not arrive"
    assert f"clock: the timer rtc is not used: {said}" in run.output, run
    assert re.search(f"rtc +timer +200 +no +no .*{said}", run.output), run
    assert f"rtc: {said}" in run.errors, run


def test_an_unknown_timer_is_said():
    run = vm("dmesg", "--kargs", "timer=sundial")
    assert "timer=sundial: no such timer" in run.output
    assert "events by the LAPIC timer" in run.output


def test_the_pit_clock_has_the_pit():
    records = clock_records(kargs="clocksource=pit")
    assert "for the clock" in records["pit", "timer"]


def test_the_rtc_keeps_what_is_set():
    run = vm("""date -s '2029-02-28 23:59:58' >/dev/null; sleep 2.2; date -u +%F
                hwclock -r -f /dev/rtc; date -s '2040-02-29 12:00' >/dev/null
                hwclock -r; date -s '2035-01-01' >/dev/null; hwclock -s
                date +%Y""")
    lines = run.output.splitlines()
    assert lines[0] == "2029-03-01", run
    assert lines[1].startswith("Thu Mar  1 00:0"), run
    assert lines[1].split()[4] == "2029", run
    assert lines[2].startswith("Wed Feb 29 12:0"), run
    assert lines[3] == "2035", run


# The timer that watches clock events, and its interrupts.
WATCH = r"""watch() { sysinfo system.clock | sed -n "s/ .*for the events' watch.*//p"; }
rtc() { sed -n 's/ *56: *\([0-9]*\) .*/\1/p' /proc/interrupts; }
"""


def test_the_watch_of_the_events_wakes_rarely():
    """In a minute: 12 alarms, the first at the start of a second."""
    run = vm(f"{WATCH} watch; rtc; sleep 60; rtc", "--icount", "0", smp=1)
    name, before, after = run.output.split()
    assert name == "rtc" and 11 <= int(after) - int(before) <= 13, run


def test_the_watch_of_the_events_gives_way():
    """A sampler takes the watch's timer; the watch then has another one, if any."""
    run = vm(f"""{WATCH}
        while_sampling() {{
            sprofile -s $1 -F 2 sleep 3 >/dev/null &
            until sysinfo system.profile.sessions | grep -q taking; do
                usleep 9999
            done
            echo $1 $(watch); wait $!
        }}
        for s in rtc nmi-rtc nmi-hpet nmi-pit lapic; do while_sampling $s; done
        dmesg | grep -c 'no timer is free'""", "--icount", "1", smp=1)
    assert run.output.splitlines() == [
        "rtc hpet0", "nmi-rtc hpet0", "nmi-hpet rtc", "nmi-pit rtc", "lapic rtc",
        "0"], run


def test_no_timer_for_the_watch_of_the_events():
    """Its checks go with the sampler's interrupts, and it continues later. (The PIT uses the
    HPET's line, and a sampler the RTC.)"""
    run = vm(f"""{WATCH} sprofile -s rtc tester 5 >/dev/null
        sprofile -s nmi-rtc tester 5 >/dev/null; watch
        dmesg | grep -c 'no timer is free to watch'""", "--icount", "1",
             "--kargs", "timer=pit", smp=2)
    assert run.output == "rtc\n0\n", run


def test_the_watch_of_the_events_where_cpus_watch_each_other():
    """All may lose their events at once."""
    run = vm(f"{WATCH} watch", smp=2)
    assert run.status == 0 and run.output == "rtc\n", run
