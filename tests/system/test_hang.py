"""A CPU that hangs is found by the others, and reported with its location."""
import re

import pytest

from machine import vm
from monitor import INTERRUPTS_OFF, Monitored, free_port, hang_in_sync
from tiers import realtime

REPORT = r"^where the CPUs are \(CPU {} hangs: for 10 s it has {}\):$"
# Interrupts off; interrupts on, preemption off, while a thread waits.
WAYS = {
    "deaf": (INTERRUPTS_OFF, "sync", "taken no interrupt"),
    "stuck": ("set var cpus[{cpu}]->preempt_count = 1",
              "(while :; do :; done) & sync", "not switched to a waiting thread"),
}


@realtime()
@pytest.mark.parametrize("cpu", (0, 1))
@pytest.mark.parametrize("way", WAYS)
def test_a_cpu_hangs(way, cpu, tmp_path):
    port = free_port()
    how, command, why = WAYS[way]
    with Monitored(f"taskset {1 << cpu} sh -c '{command}'", "--gdb", str(port),
                   smp=2) as machine:
        hang_in_sync(tmp_path, port, how.format(cpu=cpu))
        machine.wait_for(REPORT.format(cpu, why))
        said = machine.wait_for(rf"^CPU {cpu}: .*\n(.+\n)* .* sys_sync(.+\n)*"
                                " .* to_user")
    assert said.count("hangs") == 1, said
    assert re.search(rf"^CPU {cpu}: thread (\d+) \(sync\), task \1 \(sync\), "
                     "kernel mode", said, re.MULTILINE), said


# 13 s of virtual time each. Instructions of 128 ns.
def test_who_computes_does_not_hang():
    run = vm("for i in 1 2 3; do (n=0; while [ $n -lt 100000 ]; do n=$((n+1));"
             " done) & done; wait; cut -d. -f1 /proc/uptime; dmesg", "--icount",
             "7", smp=2)
    assert run.status == 0 and int(run.output.split()[0]) > 30, run
    assert "hangs" not in run.console, run


def test_an_idle_machine_does_not_hang():
    run = vm("sleep 100; cut -d. -f1 /proc/uptime", smp=3)
    assert run.status == 0 and int(run.output.split()[0]) > 99, run
    assert "hangs" not in run.console, run


@realtime()
def test_a_rendezvous_with_a_cpu_that_hangs(tmp_path):
    """A CPU that waits in a rendezvous for a hung one has interrupts off, so no CPU
    watches: it reports what it waits for itself. (The shell never waits for the hung
    CPU. Audits before the hang succeed.)"""
    port = free_port()
    with Monitored("taskset -p 1 $$; taskset 2 sync & while sleep 1; do"
                   " stats --audit; done", "--gdb", str(port), smp=2) as machine:
        hang_in_sync(tmp_path, port)
        machine.wait_for(r"^where the CPUs are \(CPU 0 has asked CPU 1 for meet "
                         r"for 10 s\):$")
        machine.wait_for(r"^CPU 1: .*\n(.+\n)* .* sys_sync(.+\n)* .* to_user")
        said = machine.wait_for(r"asked CPU 1 for meet for 20 s")
    assert re.search(r"^CPU 0: thread (\d+) \(stats\), .* interrupts off.*\n(.+\n)*"
                     r" .* stop_machine", said, re.MULTILINE), said
