"""One ISO boots under a BIOS, a 64-bit UEFI and a 32-bit UEFI, as a CD and as a disk."""
import os
import re
import subprocess

import pytest

from machine import ROOT, vm

ISO_BYTES_MAX = 8_000_000
COMMAND = """
profile -F 1000 --rows 3 sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'
exit 7"""


@pytest.mark.parametrize("firmware, medium", (
    ("bios", []), ("bios", ["--disk"]), ("uefi64", []), ("uefi32", ["--disk"])),
    ids=("bios-cd", "bios-disk", "uefi64-cd", "uefi32-disk"))
def test_to_the_shell_and_a_profile(firmware, medium):
    run = vm(COMMAND, "--firmware", firmware, *medium)
    assert run.status == 7 and not run.problem, run
    assert "booted by GRUB" in run.console and "warning:" not in run.console, run
    root = "RSDT" if firmware == "bios" else "XSDT"
    assert re.search(rf"acpi: {root} with \d+ tables", run.console), run
    assert "irq: LAPIC, I/O APIC" in run.console, run
    assert re.search(r"^Profile of /bin/sh", run.output, re.MULTILINE), run


def test_the_iso_is_small():
    assert os.path.getsize(f"{ROOT}/build/strobe.iso") < ISO_BYTES_MAX


def test_safe():
    """The menu's entry for machines whose tables are wrong."""
    run = vm("nproc; exit 3", "--firmware", "uefi64", "--kargs", "maxcpus=1 acpi=off",
             smp=2)
    assert (run.status, run.output) == (3, "1\n"), run
    assert "acpi: no tables" in run.console, run


def test_the_menu(tmp_path):
    """The image for people has three entries, and waits."""
    subprocess.run(["xorriso", "-osirrox", "on", "-indev", f"{ROOT}/build/strobe.iso",
                    "-extract", "/boot/grub/grub.cfg", tmp_path / "grub.cfg"],
                   check=True, capture_output=True)
    config = (tmp_path / "grub.cfg").read_text()
    assert re.findall(r'^menuentry "(.*)"', config, re.MULTILINE) == [
        "Strobe", "Strobe, serial console (COM1, 115200 baud)",
        "Strobe, safe: one CPU, no ACPI"]
    assert "set timeout=5" in config
