"""Runs a command in Bochs: a PC whose CPUs run concurrently in virtual time, which
QEMU's do not (with -icount they take turns, without it the host schedules them).
Repeatable, whatever the host's load."""
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import tempfile
import time

from machine import LONG_PATIENCE, ROOT, VM, Result

CONFIG = """
cpu: count={smp}, model={model}, ips={ips}, ignore_bad_msrs=0
memory: guest=256, host=256
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.stdvga.bin
ata0-master: type=cdrom, path={folder}/strobe.iso, status=inserted
boot: cdrom
{pci}
com1: enabled=1, mode=file, dev={folder}/console
com2: enabled=1, mode=file, dev={folder}/link
clock: sync=none
sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy
speaker: enabled=0
display_library: rfb, options="timeout=0"
log: {folder}/log
panic: action=fatal
"""
WITHOUT_HPET = "pci: enabled=1, chipset=i440fx, advopts=nohpet"
OVER = "The machine can be switched off now."
# Bochs 2.7 turns the date that is written to its RTC into seconds by mktime, with a
# tm_isdst that it has not set. If what was on its stack is positive, the date is an
# hour less from the next second on; not in a zone whose daylight saving time is UTC.
ENVIRONMENT = {**os.environ, "TZ": "UTC0DST0,M3.1.0,M10.1.0"}


def tools_vm():
    loader = importlib.machinery.SourceFileLoader("tools_vm", VM)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("tools_vm", loader))
    loader.exec_module(module)
    return module


def folds_hpet_lines():
    """Whether this Bochs loses HPET interrupts. Bochs 3.1 stores the levels of the
    I/O APIC's lines 16 to 23 with those of ISA interrupts 8 to 15: if the RTC (8)
    is acknowledged while line 16 is high, as each edge leaves it, the next edge of
    line 16 is lost. No device uses lines 17 to 19."""
    said = subprocess.run(["bochs", "--help"], capture_output=True, text=True)
    return "Bochs x86 Emulator 3.1" in said.stdout + said.stderr


def make_iso(command, kargs, folder, wrmsr):
    vm = tools_vm()
    script = f"({command or ':'}) >/dev/console 2>&1; " \
             "echo status $? >/dev/console"
    options = vm.parse_arguments(["--kargs", kargs, "--", script])
    vm.write_overlay(options, f"{folder}/overlay.cpio")
    subprocess.run([f"{ROOT}/tools/build/iso", f"{folder}/strobe.iso",
                    options.kernel, f"quiet {kargs}",
                    f"{ROOT}/build/initrd", f"{folder}/overlay.cpio"], check=True,
                   env={**os.environ, "PRESET": "none", "MENU_SECONDS": "0",
                                   "WRMSR": wrmsr})


def console(folder):
    try:
        with open(f"{folder}/console", errors="replace") as file:
            return file.read().replace("\r", "")
    except FileNotFoundError:
        return ""


def bochs(command, smp=2, ips=10000000, timeout=LONG_PATIENCE, kargs="",
          hpet=True, model="corei7_sandy_bridge_2600k", wrmsr=""):
    """The Result of a shell command, or of `kargs` alone; `ips`: instructions of
    each CPU in a second of virtual time; `wrmsr`: what GRUB writes to the boot CPU."""
    if os.environ.get("REDRAW"):
        kargs += f" start_delay={2 * int(os.environ['REDRAW'])}"
    with tempfile.TemporaryDirectory(prefix="strobe-bochs-") as folder:
        make_iso(command, kargs, folder, wrmsr)
        with open(f"{folder}/bochsrc", "w") as file:
            file.write(CONFIG.format(smp=smp, ips=ips, folder=folder, model=model,
                                     pci="" if hpet else WITHOUT_HPET))
        with open(f"{folder}/debugger", "w") as file:
            file.write("c\n")
        start = time.monotonic()
        child = subprocess.Popen(
            ["bochs", "-q", "-f", f"{folder}/bochsrc",
             "-rc", f"{folder}/debugger"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        try:
            while child.poll() is None and OVER not in console(folder) and \
                    time.monotonic() - start < timeout:
                time.sleep(0.5)
        finally:
            child.kill()
            child.wait()
        text = console(folder)
        status = re.search(r"^status (\d+)$", text, re.MULTILINE)
        return Result(int(status[1]) if status else None, text,
                      seconds=time.monotonic() - start,
                      command=f"in Bochs: {command} {kargs}")
