"""selftest and hwreport: what they say of machines of different parts, and of one with
a wrong clock."""
import re
import struct
import subprocess
import time

import pytest

from machine import PATIENCE, ROOT, batch, vm
from monitor import Monitored, debugged
from selftest_rows import rows
from tiers import side_by_side

TEST_KERNEL = f"{ROOT}/build/kernel-test.elf"
SECTIONS = [
    "Strobe", "CPUs", "model-specific registers", "memory types: MTRRs, PAT",
    "memory map of the loader", "memory", "ACPI", "PCI", "interrupts: routes",
    "interrupts: counts", "clocks and timers", "clocks against each other",
    "USB devices", "disks", "network card", "sample sources", "accounts", "errors", "selftest", "kernel log"]
REPORT = """
hwreport -o /tmp/report || exit 3
head -n -1 /tmp/report | sha256sum | cut -c -64 >&2
cat /tmp/report"""
AS_USER = "su user -c 'hwreport --no-selftest; sysinfo hardware.msrs'"


def sections(result):
    """{title: text} of a report, whose digest was checked."""
    text, last = result.output.rstrip("\n").rsplit("\n", 1)
    assert last == f"SHA-256 {result.errors.split()[-1]}", result
    parts = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)
    assert parts[1::2] == SECTIONS, result
    return dict(zip(parts[1::2], parts[2::2]))


def only(results, verdict):
    return {name for name, (found, _) in results.items() if found == verdict}


@pytest.fixture(scope="module")
def pc():
    """The clock is made wrong last."""
    return batch({
        "selftest": "selftest", "report": REPORT, "user": AS_USER,
        "usage": "selftest x; echo $?; hwreport -o /nowhere/x; echo $?; "
        "hwreport --no-selftest -o /tmp/r | wc -l",
        "wrong": "echo wrong-clock >/dev/plant; selftest -w"},
        "--kernel", TEST_KERNEL, smp=1)


def test_all_is_well_on_a_pc(pc):
    run = pc["selftest"]
    found = rows(run.output)
    assert run.status == 0 and not only(found, "WRONG"), run
    assert only(found, "not there") == {"TSCs agree", "source pmc", "source nmi-ipi"}, run
    for name in ("CPUs", "FPU", "sleeps", "time", "clock hpet", "clock acpi_pm", "RTC",
                 "timer lapic", "timer pit", "source nmi-hpet", "source rtc",
                 "accounts", "errors"):
        assert found[name][0] == "ok", run
    assert re.search(r"^\d+ ok, 3 not there, 0 wrong$", run.output, re.MULTILINE), run


def test_a_wrong_clock_is_found(pc):
    run = pc["wrong"]
    found = rows(run.output)
    assert run.status == 1 and set(found) == {"clock acpi_pm"}, run
    assert re.fullmatch(r"-990\d ppm \(\+- 0\) by the TSC: no other clock agrees",
                        found["clock acpi_pm"][1]), run
    assert run.output.endswith(", 1 wrong\n"), run


def test_the_report_of_a_pc(pc):
    run = pc["report"]
    assert run.status == 0, run
    part = sections(run)
    assert "  00000000.0: 0000000d 68747541 444d4163 69746e65\n" in part["CPUs"], run
    assert re.search(r"^features: fpu .* lahf", part["CPUs"], re.MULTILINE), run
    assert "  IA32_APIC_BASE\n" in part["model-specific registers"], run
    assert "PAT: WB WC UC- UC WB WC UC- UC\n" in part["memory types: MTRRs, PAT"], run
    assert re.search(r"^000000100000-0000[0-9a-f]{8} .* usable$",
                     part["memory map of the loader"], re.MULTILINE), run
    for table in ("RSDT", "FACP", "DSDT", "APIC", "HPET"):
        assert re.search(rf"^{table}  at 0x[0-9a-f]+, \d+ bytes", part["ACPI"],
                         re.MULTILINE), run
    # The FADT's first line, in full.
    assert "    000: 46 41 43 50 74 00 00 00 01 " in part["ACPI"], run
    assert "\\_S5: types 0 and 0\nPM1a control: port 0x604\n" in part["ACPI"], run
    assert "power management timer: port 0x608\n" in part["ACPI"], run
    assert "00:01.0 8086:7000 class 060100 revision 00\n" in part["PCI"], run
    assert "    BAR 0: memory 0xfd000000, prefetchable\n" in part["PCI"], run
    assert "ISA 0: GSI 2, active high, edge\n" in part["interrupts: routes"], run
    assert "LINT1 0 NMI," in part["interrupts: routes"], run
    assert re.search(r"^hpet +[+-]\d+\.\d ppm by the TSC", part["clocks against each "
                     "other"], re.MULTILINE), run
    assert not only(rows(part["selftest"]), "WRONG"), run
    assert part["selftest"].rstrip().endswith("status 0"), run
    assert "booted by qemu" in part["kernel log"], run


def test_a_photograph_of_the_digest(tmp_path):
    """Beside the report's name: a QR code, where standard output is a terminal. Then the
    machine waits for ever, as an idle one's time passes faster than a busy host asks."""
    script = """hwreport --no-selftest -o /tmp/r >/dev/tty0; tail -n 1 /tmp/r >/dev/console
        mkfifo /tmp/x; cat /tmp/x"""
    shot, found = tmp_path / "shot.ppm", ""
    with Monitored(script, smp=1) as machine:
        line = "^SHA-256 [0-9a-f]{64}$"  # not a part of it, as far as it has come
        digest = re.search(line, machine.wait_for(line), re.MULTILINE)[0]
        deadline = time.monotonic() + PATIENCE
        while not found:
            assert time.monotonic() < deadline
            machine.ask(f"screendump {shot}")
            found = subprocess.run(["zbarimg", "-q", shot], capture_output=True,
                                   text=True).stdout
    assert found == f"QR-Code:{digest}\n"


def test_what_only_root_may_read(pc):
    run = pc["user"]
    for title in ("model-specific registers", "ACPI", "PCI", "kernel log"):
        text = run.output.split(f"=== {title}\n")[1]
        assert text.startswith(("not there: only root may read it\n",
                                "not there: Operation not permitted\n")), run
    assert "this is not for every user" in run.errors, run


def test_usage(pc):
    run = pc["usage"]
    assert run.output == "2\n1\n1\n", run
    assert "selftest takes no names" in run.errors, run
    assert "hwreport: /nowhere/x: No such file or directory" in run.errors, run


def test_a_machine_of_1995():
    """No PCI, no ACPI, no HPET, no I/O APIC: every section is there all the same."""
    run = vm(REPORT, "--machine", "isapc", "--cpu", "pentium2", smp=1)
    part = sections(run)
    assert part["PCI"] == "not there: no configuration mechanism 1\n\n", run
    assert part["ACPI"] == "not there: no ACPI tables\n\n", run
    assert "I/O APIC: not there: the 8259 is used\n" in part["interrupts: routes"], run
    found = rows(part["selftest"])
    assert not only(found, "WRONG"), run
    assert {"clock hpet", "clock acpi_pm", "timer hpet0", "source nmi-hpet",
            "source nmi-pit"} <= only(found, "not there"), run
    assert found["timer hpet0"][1] == "the firmware names none", run


@pytest.mark.parametrize("smp", (side_by_side(2),))
def test_more_cpus(smp):
    run = vm("selftest; hwreport --no-selftest", "--kargs", "quiet", smp=smp)
    found = rows(run.output.split("=== ")[0])
    assert found["CPUs"] == ("ok", "2, each runs threads"), run
    assert found["TSCs agree"][0] == "ok", run
    assert "CPU 1, what differs from CPU 0\n  00000001.0: " in run.output, run
    assert re.search(r"^CPU 1, APIC id 1: timer 0xe0 fixed,", run.output,
                     re.MULTILINE), run


# Multiboot 1's information (specification 0.6.96, 3.3): the first module, the initrd,
# starts and ends elsewhere.
MOVE_MODULE = """
hbreak *boot_main
continue
set $module = (int *)(0xc0000000 + *(int *)(0xc0000000 + $edx + 24))
set $module[1] = $module[1] - $module[0] + {at}
set $module[0] = {at}
delete
"""


def with_module_at(at, folder, *options):
    """A machine of 2 GiB whose loader has put the initrd at this address."""
    gdb, result = debugged(folder, "free", MOVE_MODULE.format(at=at), "--mem", "2048",
                           "--no-tests", *options)
    assert gdb.returncode == 0, gdb
    return result


def test_modules_above_the_direct_map(tmp_path):
    """It ends at 768 MiB. The module's memory is given back wherever it was."""
    used = {}
    for at in 0x20000000, 0x50000123, 0x2ffff000:
        copy = f"-device loader,file={ROOT}/build/initrd,addr={at},force-raw=on"
        result = with_module_at(at, tmp_path, "--qemu-args", copy)
        assert result.status == 0, result
        line, = re.findall(r"initrd: initrd: \d+ files, .*", result.console)
        assert ("not in the direct map" in line) == (at != 0x20000000), result
        used[at] = int(re.search(r"^Mem: +\d+ +(\d+)", result.output, re.MULTILINE)[1])
    low = used.pop(0x20000000)
    assert all(abs(high - low) < 1000 for high in used.values()), (low, used)  # KiB


def test_a_module_where_no_memory_is(tmp_path):
    result = with_module_at(0xe0000000, tmp_path)
    assert result.status == 125, result
    assert "boot module initrd lies at 0xe0000000, where there is no memory" in \
        result.console, result


# The fields of ACPI's table SPCR behind its header: an I/O port with the interrupt and
# the code of the rate.
def spcr(port, irq, rate):
    return struct.pack("<B3xBBBBQBBIB21x", 0, 1, 8, 0, 1, port, 1, irq, 0, rate)


def test_the_firmwares_serial_port(tmp_path):
    """COM3 by SPCR: it has the log from its start, and is the console."""
    (tmp_path / "spcr").write_bytes(spcr(0x3e8, 5, 4))
    result = vm(
        "echo typed >/dev/console; exit 4", "--kargs", "console=spcr", "--qemu-args",
        f"-acpitable sig=SPCR,rev=2,data={tmp_path}/spcr -chardev"
        f" file,id=com3,path={tmp_path}/out -device"
        " isa-serial,chardev=com3,iobase=0x3e8,irq=5,index=2")
    out = (tmp_path / "out").read_text(errors="replace").replace("\r", "")
    assert result.status == 4, result
    assert out.startswith("[    0.000000] Strobe version"), (out, result)
    said = "console=spcr: ttyS0 is at port 0x3e8, 19200 baud, interrupt 5"
    assert out.count("Strobe version") == out.count(said) == 1, (out, result)
    assert "\ntyped\n" in out and said not in result.console, (out, result)


def test_a_serial_port_that_is_named(tmp_path):
    """COM3, which is in no table: it has the log from its start, and is the console."""
    result = vm(
        "echo typed >/dev/console; exit 4", "--kargs", "console=0x3e8,19200", "--qemu-args",
        f"-chardev file,id=com3,path={tmp_path}/out -device"
        " isa-serial,chardev=com3,iobase=0x3e8,irq=4,index=2")
    out = (tmp_path / "out").read_text(errors="replace").replace("\r", "")
    said = "console=0x3e8,19200: ttyS0 is at port 0x3e8, 19200 baud, interrupt 4"
    assert result.status == 4, result
    assert out.startswith("[    0.000000] Strobe version"), (out, result)
    assert out.count(said) == 1 and "\ntyped\n" in out, (out, result)
    assert "Strobe version" not in result.console, result


@pytest.mark.parametrize("value", ("0x2e8", "0x3e8,9600x"))
def test_no_serial_port_of_that_name(value):
    result = vm("true", "--kargs", f"console={value}")
    assert f"console={value}: no such console, using ttyS0" in result.console, result


def test_no_serial_port_of_the_firmware(tmp_path):
    (tmp_path / "spcr").write_bytes(spcr(0x3e8, 5, 4))
    table = f"-acpitable sig=SPCR,rev=2,data={tmp_path}/spcr"
    for options, said in (
            ([], "no use of ACPI's table SPCR: there is none"),
            (["--qemu-args", table], "no 16550 answers at port 0x3e8")):
        result = vm("true", "--kargs", "console=spcr", *options)
        assert result.status == 0, result
        assert f"console=spcr: {said}" in result.console, result


# The firmware's MTRR, which makes the framebuffer uncacheable, is cleared before Strobe
# chooses its own: as on a machine of 1997, where memory is cached by MTRRs, and all else
# is not.
FREE_MTRR = """
break mtrr_choose
continue
delete
set var m->at[0].mask = 0
"""


def test_the_framebuffer_is_combined_by_mtrrs(tmp_path):
    """Of 3 MiB: 2 and 1, on each CPU; no other range."""
    run = debugged(tmp_path, "for cpu in 1 2; do taskset $cpu sysinfo hardware.mtrrs; done",
                   FREE_MTRR, "--cpu", "pentium2,-pat", "--video", "1024x768x32", smp=2)[1]
    assert run.status == 0, run
    assert "framebuffer: write-combining by MTRR\n" in run.console, run
    ranges = re.findall(r"^range (\d): base 0x(\w+), mask 0x(\w+), (\w+)$", run.output,
                        re.MULTILINE)
    base = int(ranges[0][1], 16)
    assert ranges == 2 * [
        ("0", f"{base:x}", "fffe00000", "WC"),
        ("1", f"{base + 0x200000:x}", "ffff00000", "WC")], run
    assert run.output.count("framebuffer: write-combining by MTRR\n") == 2, run
