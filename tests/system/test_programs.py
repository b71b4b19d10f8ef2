"""The guest programs of tests/guest, in one boot: on one CPU in virtual time, those with
interacting threads on 8 CPUs in real time; and the in-kernel tests on several machines
(tools/build/test runs those on one CPU; kernels with checkers have two and four)."""
import functools
import re

import pytest

from checkers import MEETINGS, PROGRAMS
from machine import batch, vm
from tiers import realtime, side_by_side

WHERE = [(1, PROGRAMS), (8, MEETINGS)]


@functools.lru_cache(maxsize=None)
def results(smp):
    programs = dict(WHERE)[smp]
    return batch({name: f"/test/{name}" for name in programs}, smp=smp)


@pytest.mark.parametrize("smp, program", [
    pytest.param(smp, program, marks=[realtime()] if smp > 1 else [])
    for smp, programs in WHERE for program in programs])
def test_program(program, smp):
    result = results(smp)[program]
    assert result.status == 0, result
    assert "ok " in result.output and "FAILED" not in result.output, result


# On 2 CPUs: test_clang.
@pytest.mark.parametrize("smp", (side_by_side(8),))
def test_in_kernel(smp):
    result = vm(None, "--console", "--kargs", "test=all", smp=smp)
    assert result.status == 0, result
    assert re.search(r"^# \d+ passed, 0 failed", result.output, re.MULTILINE)


# In-kernel tests skip what the machine lacks, and report it.
@pytest.mark.parametrize("options, lacks", [
    (["--kargs", "timer=pit"], "the clock's events come from another timer"),
    (["--kargs", "clocksource=pit"], "the timer, or its interrupt line, is in use"),
    (["--kargs", "acpi=off"], "no other timecounter runs by itself"),
    (["--machine", "isapc", "--cpu", "pentium2"], "the firmware names none"),
    (["--cpu", "max,-apic"], "no local APIC")], ids=str)
def test_in_kernel_on(options, lacks):
    result = vm(None, "--console", "--kargs", "test=all", *options)
    assert result.status == 0, result
    assert re.search(r"^# \d+ passed, 0 failed", result.output, re.MULTILINE), result
    assert f"# SKIP {lacks}" in result.output, result


# A source is usable or not, both when requested and in the list.
@pytest.mark.parametrize("user", ("timer=pit", "clocksource=pit"))
def test_a_source_whose_line_is_in_use(user):
    result = vm("profile --list; sprofile -s nmi-hpet usleep 1000", "--kargs", user)
    why = "the timer, or its interrupt line, is in use"
    assert re.search(rf"^nmi-hpet +300 +no .*{why}$", result.output, re.MULTILINE), result
    assert f"sprofile: nmi-hpet: {why}" in result.errors, result


def test_from_the_iso():
    """The ISO boots by GRUB and Multiboot2, as on a PC."""
    result = vm("echo started; /test/process; uname -s; exit 5", "--iso")
    assert result.status == 5, result
    assert result.output.startswith("started\nok "), result
    assert result.output.endswith("Strobe\n"), result


def test_debian_busybox():
    """Debian's BusyBox, built for Linux with glibc, runs."""
    result = vm("""set -e
        alias b=/usr/lib/debian/busybox
        /usr/lib/debian/busybox sh -c '
            for i in 1 2 3; do echo $i; done | sort -r | tr "\\n" " "
            echo; ls -l /etc/passwd | wc -l; echo abc | md5sum
            ps | grep -c busybox; (sleep 0.1; echo late) & wait
            seq 1000 | gzip | gunzip | tail -n 1'""")
    assert result.status == 0, result
    lines = result.output.splitlines()
    assert lines[:3] == ["3 2 1 ", "1", "0bee89b07a248e27c83fc3d5951213c1  -"]
    assert lines[4:] == ["late", "1000"], result
