"""v86, where nothing is measured, so beside other machines: an alarm that does not come,
the ISO, the statuses."""
import re

from machine import vm
from tiers import realtime

CHANCE = 1e-3  # as in test_v86.py


@realtime(CHANCE)
def test_the_alarm_that_never_comes():
    """The RTC's alarm should watch the timer of the sleeps; it is replaced."""
    run = vm("sleep 34; dmesg | grep alarm; grep rtc /proc/interrupts; "
             "stats --errors --json", "--machine", "v86", smp=1)
    assert run.status == 0, run
    assert "clock: rtc's alarm, which watches the event timer, does not come" in \
        run.output, run
    assert int(re.search(r"(\d+) +IO-APIC +rtc", run.output)[1]) > 5, run
    assert '"timers, replaced", "count": 1' in run.output, run


@realtime(CHANCE)
def test_the_iso_and_the_statuses():
    run = vm("uname -s; cat /proc/cmdline; exit 3", "--machine", "v86", "--iso",
             "--kargs", "quiet", smp=1)
    assert (run.status, run.output.split("\n")[0]) == (3, "Strobe"), run
    assert "quiet" in run.output, run
    run = vm(None, "--machine", "v86", "--console", "--kargs", "init=/nosuch", smp=1)
    assert run.status == 125 and "KERNEL PANIC" in run.output, run
    run = vm("reboot -f; sleep 60", "--machine", "v86", smp=1)
    assert run.status == 125 and "was reset" in run.errors, run
