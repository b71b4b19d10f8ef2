"""Machine checks are reported and stop the machine; they do not reset it."""
import re

import pytest

from monitor import Monitored, debugged

# In a program, and in the kernel's copies from user memory, where other exceptions
# are faults of the program.
BUSY = {
    "program": "echo at''work >/dev/kmsg; while :; do :; done",
    # All CPUs are halted.
    "nothing": "echo at''work >/dev/kmsg; mkfifo /tmp/x; cat /tmp/x",
    "copies": "echo at''work >/dev/kmsg; dd if=/dev/zero of=/dev/null bs=1M",
}
# Valid, uncorrected, enabled, misc and address valid, context corrupt:
# a read of memory channel 1.
STATUS = 0xBE00000000000091
IN_PROGRESS = 4


def inject(command, cpu, *options, broadcast="", smp=None):
    with Monitored(command, *options, smp=smp) as machine:
        machine.wait_for("atwork")
        answer = machine.ask(f"mce {broadcast} {cpu} 3 {STATUS:#x}"
                             f" {IN_PROGRESS:#x} 0x1234567890 0x85")
        assert "not support" not in answer, answer
        return machine.result()


SAID = ("bank 3, status be00000000000091: memory controller, channel 1: read"
        " (uncorrected, context corrupt), address 0x1234567890, misc 0x85\n")


@pytest.mark.parametrize("name", BUSY)
def test_machine_check(name):
    result = inject(BUSY[name], 0)
    assert result.status == 125, result
    assert f"machine check: CPU 0, {SAID}" in result.console, result
    assert "KERNEL PANIC: machine check: hardware error, see above; " \
        "the interrupted code cannot be resumed" in result.console, result
    assert "---[ end of panic ]---" in result.console, result


def test_a_panic_tells_the_last_events_of_a_flight():
    """Of each CPU, at most 8. There are none of a trace that is no flight."""
    flight = "trace record --flight 60 -o /tmp/f sh -c '" + BUSY["nothing"].replace(
        "at''work", 'at""work') + "'"
    result = inject(flight, 0, smp=2)
    report = result.console[result.console.index("KERNEL PANIC: "):]
    parts = re.split(r"^the last events on CPU \d, of a flight:\n", report, flags=re.MULTILINE)
    assert len(parts) == 3 and "---[ end of panic ]---" in parts[2], result
    events = [re.findall(r"^\[ *(\d+\.\d{9})\] thread (\d+): (\w+/\w+) (.*)$", part,
                         re.MULTILINE) for part in parts[1:]]
    assert max(map(len, events)) == 8 and len(parts[2].splitlines()) == len(events[1]) + 1
    for part in events:
        times = [float(event[0]) for event in part]
        assert times == sorted(times), result
    last = events[0][-1]
    assert last[2] == "trap/exception" and last[3].startswith("vector=18 pc="), result
    assert "the last events" not in inject(
        flight.replace("--flight 60", ""), 0, smp=2).console


@pytest.mark.parametrize("used", (4, 2))
def test_machine_check_of_all_cpus(used):
    """A broadcast machine check, as of real hardware, gives one report; each CPU records
    its own banks. CPUs that are not used take it, too: they do not reset the machine."""
    result = inject(BUSY["nothing"], 1, "--cpu",
                    "max,vendor=GenuineIntel,family=6,model=26",
                    "--kargs", f"maxcpus={used}", broadcast="-b", smp=4)
    assert result.status == 125, result
    assert f"machine check: CPU 1, {SAID}" in result.console, result
    assert result.console.count("KERNEL PANIC") == 1, result
    assert "has not stopped" not in result.console, result


# QEMU's CPUs have no thermal sensor: what one would do is done at two calls of sync. The
# CPU is said to have one; it sends itself the interrupt, as if called by sys_sync; and it
# reads a status of "hot now, and before".
HOT = """
hbreak arch_init_devices
continue
set var cpu_features.thermal = 1
delete
python
AT = int(gdb.parse_and_eval("(int)&'arch/i386/cpu/thermal.c'::interrupt")) & 0xffffffff
CODE = bytes(gdb.selected_inferior().read_memory(AT, 200))
for _ in range(2):
    for command in (
            "hbreak *sys_sync", "continue", "delete",
            "set $esp = $esp - 4", "set *(int *)$esp = (int)$pc", "set $eax = {vector}",
            "set $pc = lapic_send_self",
            f"hbreak *{{AT + CODE.index(bytes([0x0f, 0x32])) + 2:#x}}",  # behind rdmsr
            "continue", "set $eax = 3", "delete"):
        gdb.execute(command)
end
"""


def test_throttled_by_heat(tmp_path):
    """Counted each time, logged once a minute."""
    gdb, result = debugged(
        tmp_path, "sync; sync; stats --errors --json; grep thermal /proc/interrupts",
        HOT.format(vector=0xe5))
    assert (gdb.returncode, result.status) == (0, 0), (gdb, result)
    assert re.search(r'"CPUs throttled by heat", "count": 2,', result.output), result
    assert re.search(r"^ *229: +2 +LAPIC +thermal$", result.output, re.MULTILINE), result
    assert re.findall(r"throttled by heat.*", result.console) == \
        ["throttled by heat (1 times on all CPUs)"], result
