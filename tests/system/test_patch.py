"""Patching the kernel's code: what must be refused, and a CPU without NOPL. (The rest are
tests in the kernel: tests/kernel/test_patch.c, test_trace.c.)"""
import re
import subprocess

import pytest

from machine import ROOT, vm
from tiers import realtime

TEST_KERNEL = "--kernel", f"{ROOT}/build/kernel-test.elf"
RULES = f"{ROOT}/kernel/notrace.txt"


def test_a_wrong_old_byte_panics_with_both():
    """A site that does not have the expected bytes stops the machine."""
    result = vm(None, "--console", *TEST_KERNEL, "--kargs", "plant=text-mismatch")
    assert result.status == 125, result
    assert ("is 0f 1f 44 00 00, not e8 fb ff ff ff") in result.output, result


def notrace(rules, kernel="kernel.elf"):
    return subprocess.run(
        [f"{ROOT}/tools/build/notrace", rules, f"{ROOT}/build/{kernel}"],
        capture_output=True, text=True)


@pytest.mark.parametrize("rule, chain", [
    ("trap_nmi calls sys_getpid", "can be patched, .*: sys_getpid <- trap_nmi"),
    ("trap_nmi calls trap_syscall", "has a branch, .*: trap_syscall <- trap_nmi"),
    ("from irq_dispatch: a test", "does not say what it calls: .*irq_dispatch"),
])
def test_nmis_run_nothing_that_can_be_patched(rule, chain, tmp_path):
    """The build fails, and names the chain of calls."""
    rules = tmp_path / "rules"
    with open(RULES) as file:
        rules.write_text(f"{file.read()}\n{rule}\n")
    assert notrace(RULES).returncode == 0
    done = notrace(rules)
    assert done.returncode == 1
    assert any(re.search(chain, line)
               for line in done.stderr.splitlines()), done.stderr


def test_rules_are_checked(tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("trap_nmi may call anything\n")
    done = notrace(rules)
    assert done.returncode == 1 and "is no rule" in done.stderr


def test_a_cpu_without_nopl():
    """Its sites have another NOP, and are patched as well."""
    tests = ",".join(f"patch_{name}" for name in (
        "all_entries", "branches_have_users", "when_interrupted_anywhere"))
    result = vm(None, "--console", *TEST_KERNEL, "--cpu", "pentium3,vendor=CentaurHauls",
                "--kargs", f"test={tests}", smp=1)
    assert result.status == 0 and "# 3 passed, 0 failed" in result.output, result
    result = vm("sysinfo system.text", "--cpu", "pentium3,vendor=CentaurHauls", smp=1)
    assert result.status == 0, result


def test_system_text_counts():
    """A limit of CPU time listens to context switches, until its task has ended; the
    branch goes off a second later."""
    result = vm("sysinfo system.text; (ulimit -t 100; sysinfo system.text); "
                "sleep 1.2; sysinfo system.text")
    before, within, after = (
        {name: int(value) for name, value in re.findall(r"^(\w+) +(\d+)", part, re.M)}
        for part in result.output.split("Field")[1:])
    assert before["entries"] > 1000 and before["branches"] > 20, result
    assert before["patched"] == before["patches"] == after["patched"] == 0, result
    assert within["patched"] > 0 and within["patches"] == 1, result
    assert after["patches"] == 2 and after["longest"] > 0, result


# Patches for each trace of a point, while CPUs are in programs, faults,
# interrupts, NMIs at 20 kHz (as many of them as the host can give) and audits.
UNDER_LOAD = """
(while [ ! -e /tmp/over ]; do seq 300 | sort | wc -l; done) >/dev/null &
(while [ ! -e /tmp/over ]; do stats --audit; done) >/tmp/audits &
(while [ ! -e /tmp/over ]; do tester 1; done) >/dev/null &
sprofile -F 20000 sh -c 'n=0; while [ $n -lt 50 ]; do
    trace record -e task/exec -o /dev/null true; n=$((n + 1)); done' >/dev/null 2>/tmp/said ||
    grep -q "samples expected" /tmp/said || echo sprofile failed
touch /tmp/over; wait
awk '$5 ~ /^-?[0-9]+$/ && $5 != 0' /tmp/audits
sysinfo system.text
"""


@realtime()
def test_patches_under_load():
    result = vm(UNDER_LOAD, smp=4)
    text = dict(re.findall(r"^(\w+) +(\d+)", result.output, re.M))
    assert result.status == 0 and "failed" not in result.output, result
    assert int(text["patches"]) >= 200 and text["patched"] == "0", result
    assert result.output.startswith("Field"), result  # no difference
