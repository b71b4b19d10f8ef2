"""Faults of the machine: each gives an error, a counted loss or a panic that names it
(docs/reliability.md)."""
import json
import re
import signal

import pytest

from checkers import FINE_CLOCK, options
from machine import vm
from monitor import Monitored
from statistic import TICKS
from tiers import realtime

SPURIOUS = "spurious_vectors_sent,spurious_vectors_raised,spurious_exceptions"


def errors(text):
    """{error: count} of stats --errors --json."""
    return {row["name"]: row["count"] for row in json.loads(text)}


@pytest.mark.parametrize("options,skipped", (
    (("--cpu", "max,-apic"), 1),  # only the 8259: vectors cannot be sent
    (("--machine", "isapc", "--cpu", "pentium2"), 0),  # through the LAPIC
    ((), 0)), ids=("8259", "8259-lapic", "ioapic"))
def test_no_driver_expects_an_interrupt(options, skipped):
    """An unexpected interrupt of any vector, sent or raised, is counted."""
    run = vm(None, "--console", *options, "--kargs", f"test={SPURIOUS}")
    passed = f"# {3 - skipped} passed, 0 failed, {skipped} skipped"
    assert run.status == 0 and passed in run.output, run


def test_nothing_happens_unasked():
    """Without faults all counters are 0, even while it profiles."""
    run = vm("profile -o /dev/null tester >/dev/null 2>&1; stats --errors --json")
    assert run.status == 0 and set(errors(run.output).values()) == {0}, run


def test_an_nmi_from_outside():
    with Monitored("echo at''work >/dev/kmsg; while ! dmesg | grep -q"
                   " 'unexpected NMI'; do usleep 9999; done;"
                   " stats --errors --json") as machine:
        machine.wait_for("atwork")
        machine.ask("nmi")
        result = machine.result()
    assert result.status == 0, result
    assert errors(result.output)["unexpected NMIs"] == 1, result


def test_a_profiler_that_stops_reading():
    """Unread rings fill; lost samples are counted."""
    run = vm("profile --json -F 16000 -s lapic sh -c 'kill -STOP $PPID; i=0;"
             " while [ $i -lt 20000 ]; do i=$((i+1)); done; kill -CONT $PPID'"
             " && stats --audit >&2")
    assert run.status == 0, run
    r = json.loads(run.output)
    assert 0 < r["lost"] < r["taken"], r
    came = sum(r[column] for column in TICKS if column != "others")
    assert abs(came - r["expected"]) < 0.01 * r["taken"], (came, r)


# 30 s of virtual time fill the host's pipe and the terminal, whose writer blocks
# until it is killed. The log continues without the serial line. An NMI tells that the
# host has stopped to read: 30 s may be less than it takes to.
BLOCKED = """
echo at''work >/dev/kmsg
while ! dmesg | grep -q 'unexpected NMI'; do usleep 9999; done
yes >/dev/ttyS0 & p=$!
sleep 30
i=0; while [ $i -lt 300 ]; do echo "line $i, not shown" >/dev/kmsg; i=$((i+1)); done
kill -9 $p; wait $p; echo $?
stats --audit >/dev/null; echo $?
dmesg | tail -n 1
stats --errors --json
"""


def test_a_serial_line_that_blocks():
    """The machine runs to its end although the host does not read the console."""
    with Monitored(BLOCKED) as machine:
        machine.wait_for("atwork")
        machine.child.send_signal(signal.SIGSTOP)
        machine.ask("nmi")
        while machine.end.recv(4096):
            pass  # until QEMU ends
        machine.child.send_signal(signal.SIGCONT)
        result = machine.result()
    assert result.status == 0, result
    killed, audit, line, counted = result.output.split("\n", 3)
    assert (killed, audit) == ("137", "0") and "line 299, not shown" in line, result
    assert "line 299" not in result.console, result
    assert errors(counted)["console output, lost"] > 300, result


# --- fault= (kernel/debug/fault.h)

SHOW = "echo ===; stats --errors --json; stats --audit >&2"


def with_faults(faults, command, smp, clock=()):
    """The command's output, and the error counters."""
    run = vm(f"{command} && {{ {SHOW}; }}", *clock, *options("addresses"),
             "--kargs", f"fault={faults}", smp=smp)
    assert run.status == 0 and "hangs" not in run.console, run
    output, counted = run.output.split("===")
    assert errors(counted)["faults made"] > 0, run
    return output, errors(counted)


REPEATED = "reschedule interrupts, repeated"
# CPU 2 wakes a reader on CPU 3 until an interrupt is lost that CPU 3 waits for: the
# host decides how long each of the two runs in between.
WAKES = f"""mkfifo /tmp/wakes
taskset 8 sh -c 'while read x; do n=$x; done; echo $n' </tmp/wakes &
exec 3>/tmp/wakes
until stats --errors --json | grep -q '"{REPEATED}", "count": [1-9]'; do
    taskset 4 sh -c 'for i in 1 2 3 4 5 6 7 8; do usleep 20000; echo $i; done' >&3
done
echo end >&3; exec 3>&-; wait"""


@realtime()
@pytest.mark.parametrize("what,each,command,said", (
    ("calls of CPUs, sent again", 20, "/test/mm_threads && /test/threads", ""),
    (REPEATED, 4, WAKES, "end\n")), ids=("calls", "wakes"))
def test_lost_interrupts_between_cpus(what, each, command, said):
    """Lost interrupts of rendezvous, shootdowns and rescheduling are sent again."""
    output, counted = with_faults(f"ipi,{each}", command, smp=4)
    assert "FAILED" not in output and output.endswith(said), output
    assert counted[what] > 0, counted


@realtime()
@pytest.mark.parametrize("fault,smp", (
    ("timer-stops,15", 1), ("timer-stops,15", 2), ("timers-stop,20", 2)))
def test_a_timer_that_stops_is_replaced(fault, smp):
    """The watch by another timer, or by another CPU, finds it; sleeps end meanwhile. No
    CPU finds it where all CPUs' stop at once."""
    output, counted = with_faults(
        fault, "sleep 30; taskset 1 sleep 2; dmesg; echo @; "
        "read before idle </proc/uptime; taskset 1 sleep 2; taskset 1 sleep 2; "
        "read after idle </proc/uptime; echo $before $after; echo @; "
        "sysinfo system.clock", smp=smp, clock=FINE_CLOCK)
    log, times, clocks = output.split("@")
    assert "clock: the shots of lapic do not come: events of all CPUs by hpet0" in log
    before, after = map(float, times.split())
    assert 4 <= after - before < 4.5, times
    assert re.search("lapic +timer .* its shots ceased to come", clocks), clocks
    assert counted["timers, replaced"] == 1, counted
    assert counted["timer interrupts, lost or late"] >= 2, counted


@realtime()
@pytest.mark.parametrize("source", ("rtc", "nmi-rtc"))
def test_a_sampler_takes_the_last_timer(source):
    """The PIT is the events' own, and the HPET has its line: the watch's checks go with the
    sampler's interrupts, and nothing is said in the middle of a report."""
    output, counted = with_faults(
        "event-lost,9", f"sprofile -s {source} -F 64 sleep 30 >/dev/null; "
        "dmesg | grep -c 'no timer is free'; echo end", smp=1,
        clock=("--kargs", "timer=pit"))
    assert output == "0\nend\n", output
    assert counted["timer interrupts, lost or late"] > 0, counted


@realtime()
def test_a_report_without_samples_says_so_and_fails():
    """The source fell silent after its self-test."""
    for tool in "profile", "sprofile":
        output, _ = with_faults("timer-lost,1", f"{tool} -s nmi-pit --fixed "
                                "/test/shares 300 >report 2>errors; "
                                "echo $?; cat report errors", smp=1)
        assert output.startswith("1\n"), output
        assert re.search(r"Wrong:   0 of \d+ samples came", output), output
        assert re.search("nmi-pit: .*choose another source", output), output


@realtime()
def test_lost_nmis_of_the_sampler():
    """Lost NMIs are counted as missed at the next NMI."""
    output, _ = with_faults(
        "nmi,7", "echo --- && sprofile -s nmi-ipi -F 500 --json tester 5", smp=2,
        clock=("--icount", "1"))
    assert books(output)[0]["missed"] > 0, output


def books(output):
    """In sprofile's reports every due tick is in one column."""
    reports = [json.loads(text) for text in output.split("---")[1:]]
    for r in reports:
        accounted = sum(r[column] for column in TICKS)
        assert r["lost"] == 0 and r["taken"] > 0, r
        assert abs(accounted - r["expected"]) <= (4 + 0.01 * r["rate_hz"]) * r["cpus"], \
            r
    return reports


# The pinned loop has nearly all timers; the other CPU loses its own while it watches
# with a small probability.
@realtime(chance=3e-3)
def test_lost_timer_interrupts():
    """A CPU whose timer interrupts are lost is found by the other CPU."""
    output, counted = with_faults(
        "event-lost,400", "taskset 2 sh -c 'i=0; while [ $i -lt 900 ]; do"
        " usleep 1000; i=$((i+1)); done' && echo slept", smp=2)
    assert output == "slept\n", output
    assert counted["timer interrupts, lost or late"] > 0, counted


# No CPU can notice it: there is one CPU, or one timer has the events of all. With
# `-s rtc` a sampler uses the timer that otherwise watches them.
SLEEPS = "i=0; while [ $i -lt 300 ]; do usleep 1000; i=$((i+1)); done; echo slept"


@realtime()
@pytest.mark.parametrize("smp,timer,prefix", (
    (1, "lapic", ""), (1, "pit", ""), (2, "pit", ""), (2, "hpet", ""),
    (1, "lapic", "profile -s rtc -F 2 -o /tmp/p ")), ids=(
        "lone", "lone-pit", "pit", "hpet", "sampler"))
def test_lost_events_of_all_cpus(smp, timer, prefix):
    """A second timer notices lost events of all CPUs within 6 s."""
    output, counted = with_faults(
        f"event-lost,100 timer={timer}", f"{prefix}sh -c '{SLEEPS}' && cat"
        " /proc/uptime", smp=smp, clock=("--icount", "1"))
    slept, *_, uptime = output.splitlines()
    lost = counted["timer interrupts, lost or late"]
    assert slept == "slept" and lost > 2, (output, counted)
    assert float(uptime.split()[0]) < 2 + 6.1 * lost, (output, counted)


# Sources other than the timer of clock events (tested above and below).
SOURCES = ("rtc", "nmi-hpet", "nmi-pit", "nmi-rtc")
EACH = 9


@realtime()
@pytest.mark.parametrize("fault", ("timer-lost", "timer-double"))
def test_ticks_of_the_sampler(fault):
    """Exactly the lost ticks are missed, or are outside the target like the tick behind
    them; a doubled tick counts once: a ninth more would exceed the allowed difference. (On
    one CPU in virtual time: a busy host, or a CPU that waits for its turn, loses ticks,
    too.)"""
    output, _ = with_faults(f"{fault},{EACH}", " && ".join(
        f"echo --- && sprofile --fixed -s {s} -F 200 --json tester 200"
        for s in SOURCES), smp=1, clock=("--icount", "1"))
    reports = books(output)
    assert len(reports) == len(SOURCES)
    for r in reports:
        assert r["expected"] > 250, r
        lost = r["expected"] / EACH if fault == "timer-lost" else 0
        merged = r["expected"] - r["interrupts"]  # ticks without an interrupt
        assert abs(merged - lost) <= 2, (lost, r)
        assert merged - r["others"] - 2 <= r["missed"] <= merged + 2, r


@realtime()
def test_doubled_timer_interrupts():
    """With doubled timer interrupts nothing expires early or twice."""
    output, _ = with_faults("event-double,2", "/test/timers && /test/sleeps",
                            smp=2)
    assert "FAILED" not in output, output


@realtime()
def test_a_fault_that_does_not_exist():
    run = vm(None, "--console", *options("addresses"), "--kargs", "fault=ipi,0")
    assert run.status == 125 and "use KIND,N[,KIND,N...]" in run.output, run
