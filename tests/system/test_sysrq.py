"""SysRq: a serial break or Alt+SysRq on the keyboard makes a hung machine report the
location of its CPUs."""
import re

import pytest

from monitor import Monitored, free_port, hang_in_sync
from tiers import realtime

BREAK = "chardev-send-break console"


def ask(*lines, until, command="echo at''work >/dev/kmsg; mkfifo /tmp/x; cat"
        " /tmp/x", smp=None, options=()):
    """The console's output from the first request on."""
    with Monitored(command, *options, smp=smp) as machine:
        before = len(machine.wait_for("atwork"))
        for line in lines:
            assert "rror" not in machine.ask(line)
        machine.wait_for(until)
        return machine.console()[before:]


@pytest.mark.parametrize("line", (BREAK, "sendkey alt-sysrq-l"))
@pytest.mark.parametrize("smp", (1, 3))
def test_where_the_cpus_are(line, smp):
    said = ask(line, until=rf"^CPU {smp - 1}: .*\n  account: .*\n  [0-9a-f]{{8}}",
               smp=smp)
    assert said.count("where the CPUs are") == 1, said
    for cpu in range(smp):
        part = said[said.index(f"CPU {cpu}: "):]
        # Usually idle, but the shell may not sleep yet.
        assert re.match(r"CPU \d: thread \d+ \(\S+\), task \d+ \(\S+\), "
                        r"(user|kernel) mode, interrupts (on|off), irq depth "
                        r"[01], preempt count \d\n  account: (idle|interrupt "
                        r"0x.*|the thread, .*)\n  [0-9a-f]{8}", part), said
    assert "does not answer" not in said, said


def test_tasks_and_memory():
    said = ask("sendkey alt-sysrq-t", "sendkey alt-sysrq-m",
               until="memory: .*buffers")
    assert re.search(r"^task 1 \(init\), of 0\n  thread 1 \(init\) waits for ",
                     said, re.MULTILINE), said
    assert re.search(r"^task \d+ \(cat\), of \d+\n  thread \d+ \(cat\) waits for"
                     " '", said, re.MULTILINE), said
    sizes = re.search(r"^memory: (\d+) KiB, free (\d+)(.*)$", said, re.MULTILINE)
    rest = sum(int(n) for n in re.findall(r" (\d+)", sizes[3]))
    assert int(sizes[1]) == int(sizes[2]) + rest, said


def test_other_letters_are_explained():
    said = ask("sendkey alt-sysrq-q", until="SysRq: l: ")
    assert "where the CPUs are (" not in said, said


def test_boot_again():
    with Monitored("echo at''work >/dev/kmsg; mkfifo /tmp/x; cat /tmp/x") as m:
        m.wait_for("atwork")
        m.ask("sendkey alt-sysrq-b")
        result = m.result()
    assert "SysRq: the machine starts again" in result.console, result
    assert "reset" in result.problem, result


@realtime()
def test_a_cpu_that_hangs_with_interrupts_off(tmp_path):
    """The other CPU takes the request, and reports the hung CPU's location."""
    port = free_port()
    with Monitored("taskset 2 sync", "--gdb", str(port), smp=2) as machine:
        hang_in_sync(tmp_path, port)
        machine.ask(BREAK)
        said = machine.wait_for(r"^CPU 1: .*\n(.+\n)* .* to_user")
    assert re.search(r"CPU 1: thread (\d+) \(sync\), task \1 \(sync\), kernel mode,"
                     r" interrupts off, irq depth 0, .*\n"
                     r"  account: the thread, kernel: files\n"
                     r"  [0-9a-f]{8} sys_sync\+0", said), said
