"""Power-off, reset and halt, each by the way that the machine has. QEMU reports by QMP
what happened: without tools/vm's exit device, which is not on a PC."""
import json
import re
import socket

import pexpect
import pytest

from machine import ANSWER_PATIENCE, KERNEL, PATIENCE, PROMPT, ROOT, vm

VIRTUAL = ["-icount", "shift=3,sleep=off", "-rtc", "base=2026-01-01,clock=vm"]
# A machine without ACPI hardware but with hardware-reduced ACPI's registers in memory.
MICROVM = "microvm,acpi=on,pit=on,pic=on,rtc=on,isa-serial=on"


class Events:
    """QEMU's events, by QMP."""

    def __init__(self, path):
        self.end = socket.socket(socket.AF_UNIX)
        self.end.settimeout(PATIENCE)
        self.end.connect(path)
        self.file = self.end.makefile("rw")
        self.file.write('{"execute": "qmp_capabilities"}\n')
        self.file.flush()
        self.next("return")  # before that QEMU sends no events

    def next(self, key):
        """The next message that has this key."""
        for line in self.file:
            message = json.loads(line)
            if key in message:
                return message
        raise AssertionError(f"QEMU ended without a message with {key}")

    def wait_for(self, name):
        while (message := self.next("event"))["event"] != name:
            pass
        return message["data"]


class Machine:
    def __init__(self, folder, machine, kargs="", smp=1):
        path = f"{folder}/qmp"
        self.child = pexpect.spawn(
            "qemu-system-i386",
            ["-machine", machine, "-accel", "tcg", "-cpu", "max", "-smp", str(smp),
             "-m", "128", "-nodefaults", "-display", "none", "-serial", "stdio",
             "-no-reboot", "-no-shutdown", *VIRTUAL,
             "-qmp", f"unix:{path},server=on,wait=off",
             "-kernel", KERNEL, "-initrd", f"{ROOT}/build/initrd",
             "-append", f"randomize_va_space=0 {kargs}"],
            timeout=ANSWER_PATIENCE, encoding="utf-8", codec_errors="replace")
        self.child.delaybeforesend = None
        self.child.expect_exact(PROMPT)
        self.events = Events(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.close(force=True)

    def says(self, text):
        self.child.expect_exact(text)


@pytest.mark.parametrize("machine, kargs, smp, command, said, reason", (
    ("pc", "", 2, "poweroff", ["off by ACPI, port 0x604"], "guest-shutdown"),
    (MICROVM, "", 1, "poweroff", ["off by ACPI, memory 0xfea0"], "guest-shutdown"),
    ("pc", "", 1, "reboot", ["ACPI: no: the firmware has no ACPI reset register",
                             "reset by the keyboard controller"], "guest-reset"),
    ("q35", "", 1, "reboot", ["reset by ACPI, port 0xcf9"], "guest-reset"),
    (MICROVM, "reboot=kbd", 1, "reboot",
     ["the keyboard controller: no: it does not answer", "reset by ACPI, memory 0xfea0"],
     "guest-reset"),
    ("q35", "acpi=off reboot=pci", 1, "reboot",
     ["reset by the chipset, port 0xcf9"], "guest-reset"),
    ("isapc", "reboot=pci", 1, "reboot",
     ["the chipset, port 0xcf9: no: the machine has no PCI", "ACPI: no",
      "reset by the keyboard controller"], "guest-reset"),
    ("pc", "reboot=triple", 1, "reboot", ["reset by a triple fault"], "guest-reset")),
    ids=("off-pc", "off-reduced", "reset-pc", "reset-q35", "reset-reduced",
         "reset-chipset", "reset-isapc", "reset-triple"))
def test_stop(tmp_path, machine, kargs, smp, command, said, reason):
    with Machine(tmp_path, machine, kargs, smp) as m:
        m.child.send(f"{command}\r")
        for text in said:
            m.says(text)
        assert m.events.wait_for("SHUTDOWN") == {"guest": True, "reason": reason}
        # Nothing before it was tried in vain.
        assert "no effect" not in m.child.before


def test_a_machine_that_cannot_switch_itself_off(tmp_path):
    with Machine(tmp_path, "q35", "acpi=off") as m:
        m.child.send("poweroff\r")
        m.says("off by ACPI: no: the firmware has no ACPI tables for it (FADT)")
        m.says("The machine can be switched off now.")


def test_halt(tmp_path):
    with Machine(tmp_path, "q35") as m:
        m.child.send("halt\r")
        m.says("The machine is halted.")


WAKES = """
i=0; while [ $i -lt 20 ]; do i=$((i+1)); taskset 1 true; taskset 2 true; done; sleep 0.1
grep rescheduling /proc/interrupts; stats --audit; dmesg | grep idle=
profile stat --json true; sprofile --json sleep 0.1"""


@pytest.mark.parametrize("way, wakes_by_interrupt", (("poll", False), ("mwait", True)))
def test_idle(way, wakes_by_interrupt):
    """A store wakes a CPU that polls, as it would in MWAIT, which QEMU's CPUID does not
    describe: then CPUs halt, and need an interrupt. Either way the accounts are exact."""
    run = vm(WAKES, "--kargs", f"idle={way}", smp=2)
    counts = re.search(r"225: +(\d+) +(\d+) +LAPIC +rescheduling", run.output)
    assert (sum(map(int, counts.groups())) > 0) == wakes_by_interrupt, run
    differences = re.findall(r"^ *\d+ +all +(\d+) +(\d+) +(-?\d+)", run.output,
                             re.MULTILINE)
    assert len(differences) == 2, run
    assert all(a == b and d == "0" for a, b, d in differences), run
    used = "hlt" if way == "mwait" else way
    assert run.output.count(f'"idle": "{used}"') == 2, run
    assert ("CPUID leaf 5 reports no range" in run.output) == (way == "mwait"), run
