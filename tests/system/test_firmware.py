"""Firmware of our own making: ACPI tables and memory maps that real machines have, and
that no emulator's firmware has. gdb puts them in the place of the firmware's."""
import re
import struct

import pytest

from bochs import bochs
from monitor import debugged
from selftest_rows import rows

# Real-mode memory, of which the kernel uses only the page at 0x8000.
TABLES, ROOM = 0x2000, 0x6000
LAPIC, IOAPIC, HPET, PM_TIMER = 0xfee00000, 0xfec00000, 0xfed00000, 0x608
IN_MEMORY, IN_PORTS = 0, 1

REPLACE_TABLES = f"""
break acpi_init
continue
delete
restore {{folder}}/tables binary {0xc0000000 + TABLES}
restore {{folder}}/rsdp binary &boot_info.rsdp_data
set var boot_info.rsdp_copied = 1
"""


def summed(data, at, size=None):
    """With the checksum of the first bytes at this offset."""
    total = sum(data[:size]) - data[at]
    return data[:at] + bytes([-total & 0xff]) + data[at + 1:]


def table(signature, body):
    """ACPI 6.4, 5.2.6."""
    header = struct.pack("<4sIBB6s8sIII", signature.encode(), 36 + len(body), 3, 0,
                         b"STROBE", b"TESTONLY", 1, 0, 1)
    return summed(header + body, 9)


def address(space, at, bits=32):
    """A generic address structure (5.2.3.2)."""
    return struct.pack("<BBBBQ", space, bits, 0, 0, at)


def madt(lapic, override=None, cpus=1):
    """The CPUs, an I/O APIC and the timer's line (5.2.12)."""
    entries = b"".join(struct.pack("<BBBBI", 0, 8, i, i, 1) for i in range(cpus))
    entries += struct.pack("<BBBBII", 1, 12, 0, 0, IOAPIC, 0)
    entries += struct.pack("<BBBBIH", 2, 10, 0, 0, 2, 0)
    if override is not None:
        entries += struct.pack("<BBHQ", 5, 12, 0, override)
    return table("APIC", struct.pack("<II", lapic, 1) + entries)


def fadt(dsdt, timer):
    """5.2.9; `timer` is a generic address."""
    body = bytearray(268 - 36)
    struct.pack_into("<H", body, 46 - 36, 9)  # SCI
    struct.pack_into("<I", body, 64 - 36, 0x604)  # PM1a control
    struct.pack_into("<I", body, 76 - 36, PM_TIMER)
    struct.pack_into("<BBBB", body, 88 - 36, 4, 2, 0, 4)  # lengths
    struct.pack_into("<Q", body, 140 - 36, dsdt)
    body[208 - 36:220 - 36] = timer
    return table("FACP", bytes(body))


def write_tables(folder, xsdt=None, entry=None, dsdt=None, hpet=HPET, lapic=LAPIC,
                 override=None, cpus=1, timer=address(IN_PORTS, PM_TIMER)):
    """Writes the tables, and the RSDP, which names an RSDT, too; an argument is what a
    table has in the place of the right address."""
    at, data = {}, b""

    def put(name, text):
        nonlocal data
        at[name] = TABLES + len(data)
        data += text + bytes(-len(text) % 16)
    put("dsdt", table("DSDT", b""))
    put("fadt", fadt(at["dsdt"] if dsdt is None else dsdt, timer))
    put("madt", madt(lapic, override, cpus))
    put("hpet", table("HPET", struct.pack("<I", 0x8086a201) + address(IN_MEMORY, hpet, 64) +
                      struct.pack("<BHB", 0, 100, 0)))
    listed = [at[name] for name in ("fadt", "madt", "hpet")]
    put("rsdt", table("RSDT", struct.pack("<3I", *listed)))
    listed += [] if entry is None else [entry]
    put("xsdt", table("XSDT", struct.pack(f"<{len(listed)}Q", *listed)))
    assert len(data) <= ROOM
    rsdp = struct.pack("<8sB6sBIIQB3x", b"RSD PTR ", 0, b"STROBE", 2, at["rsdt"], 36,
                       at["xsdt"] if xsdt is None else xsdt, 0)
    (folder / "tables").write_bytes(data)
    (folder / "rsdp").write_bytes(summed(summed(rsdp, 8, 20), 32))


def with_tables(folder, command, *options, smp=1, **places):
    write_tables(folder, **places)
    gdb, result = debugged(folder, command, REPLACE_TABLES.format(folder=folder), *options,
                           smp=smp)
    assert gdb.returncode == 0, gdb
    return result


COMMAND = "sysinfo system.clock; sysinfo hardware.acpi"


def test_these_tables_are_read(tmp_path):
    run = with_tables(tmp_path, COMMAND)
    assert run.status == 0, run
    assert "acpi: XSDT with 3 tables\n" in run.console, run
    assert "warning" not in run.console and "not mapped" not in run.console, run
    assert "power management timer: port 0x608\n" in run.output, run


# The first addresses that the CPU lacks: QEMU's for 32 bits have 36 bits; then what a
# register of ones is.
FAR = 1 << 36, 1 << 40, 0xfffffffffffff000


@pytest.mark.parametrize("far", FAR, ids=hex)
@pytest.mark.parametrize("options,end", (
    ((), 1 << 36), (("--cpu", "pentium3,-pae"), 1 << 32)), ids=("pae", "two-levels"))
def test_addresses_beyond_the_cpus(options, end, far, tmp_path):
    """The machine goes on without what is there."""
    run = with_tables(
        tmp_path, COMMAND, *options, entry=far, dsdt=far + 8, hpet=far + 0x10,
        override=far + 0x1000 & 0xfffffffffffff000, timer=address(IN_MEMORY, far + 0x20))
    assert run.status == 0, run
    for at in (far, far + 8, far + 0x10, far + 0x20):
        assert f"memory: what is at {at:#x} is not mapped: the CPU's page tables end at " \
               f"{end:#x}\n" in run.console, run
    assert f"acpi: the table at {far:#x} cannot be mapped: skipped\n" in run.console, run
    # The port that the FADT names, too.
    assert "power management timer: port 0x608\n" in run.output, run
    assert "irq: LAPIC, I/O APIC, 1 CPU\n" in run.console, run


@pytest.mark.parametrize("far", FAR, ids=hex)
def test_an_xsdt_beyond_the_cpus_addresses(far, tmp_path):
    run = with_tables(tmp_path, COMMAND, xsdt=far)
    assert run.status == 0, run
    assert f"acpi: the table at {far:#x} cannot be mapped: skipped\n" in run.console, run
    assert "acpi: RSDT with 3 tables\n" in run.console, run


@pytest.mark.parametrize("places", (
    {"lapic": 0xfee10000}, {"lapic": 0x1000}, {"override": 0xfe000000},
    {"override": 1 << 40}), ids=lambda places: "-".join(
        f"{name}-{at:x}" for name, at in places.items()))
def test_a_wrong_lapic_address(places, tmp_path):
    """IA32_APIC_BASE is right; the table is a warning."""
    run = with_tables(tmp_path, "true", **places)
    at, = places.values()
    assert run.status == 0, run
    assert f"warning: the firmware's tables have the local APICs at {at:#x}: used at " \
           f"{LAPIC:#x}, by IA32_APIC_BASE\n" in run.console, run
    assert "clock: events by the LAPIC timer" in run.console, run


@pytest.mark.parametrize("options,least,most", (
    (("--cpu", "max,-hypervisor"), 0.9, 1.5), ((), 10.5, 11.5)), ids=("real", "virtual"))
def test_a_cpu_that_does_not_answer(options, least, most, tmp_path):
    """A real one would within milliseconds; a virtual machine's host may be busy."""
    run = with_tables(tmp_path, "true", *options, cpus=2)
    at, = map(float, re.findall(r"^\[ *(\S+)\] smp: the CPU with APIC id 1 does not answer$",
                                run.console, re.MULTILINE))
    assert run.status == 0 and least <= at <= most, run  # of virtual time
    assert ("smp: waiting for 1 CPUs\n" in run.console) == (options == ()), run


@pytest.mark.parametrize("model,smp", (("p3_katmai", 4), ("p4_willamette", 2)))
def test_cpus_before_and_since_the_pentium_4(model, smp):
    """CPUID reports no APIC id before it: as many packages of one core all the same."""
    run = bochs("selftest | grep ^CPU; sysinfo system.cpus", smp=smp, ips=20000000,
                model=model)
    assert run.status == 0, run
    found = rows(run.output)
    assert found["CPUs"] == ("ok", f"{smp}, each runs threads"), run
    titles, *cpus = [line.split() for line in run.output.splitlines()
                     if re.match(r"id +active| *\d+ +yes ", line)]
    places = [[int(cpu[titles.index(name)]) for name in ("apic_id", "package", "core", "thread")]
              for cpu in cpus]
    assert places == [[i, i, 0, 0] for i in range(smp)], run


# Multiboot 1's information (specification 0.6.96, 3.3): mmap_length and mmap_addr.
REPLACE_MAP = f"""
hbreak *boot_main
continue
restore {{folder}}/map binary {0xc0000000 + TABLES}
set $info = (int *)(0xc0000000 + $edx)
set $info[11] = {{length}}
set $info[12] = {TABLES}
delete
"""
USABLE, RESERVED = 1, 2
KIB, MIB = 1 << 10, 1 << 20


def with_map(folder, command, ranges, *options):
    """The ranges are (base, size, type)."""
    data = b"".join(struct.pack("<IQQI", 20, *one) for one in ranges)
    assert len(data) <= ROOM
    (folder / "map").write_bytes(data)
    gdb, result = debugged(folder, command, REPLACE_MAP.format(folder=folder, length=len(data)),
                           *options)
    assert gdb.returncode == 0, gdb
    return result


def in_pieces(holes, end=254 * MIB):
    """Memory with holes of a page from 64 MiB on; half of them are named, too."""
    start = 64 * MIB
    step = (end - start) // (holes + 1) // (4 * KIB) * (4 * KIB)
    yield 0, 639 * KIB, USABLE
    yield MIB, start - MIB, USABLE
    for i in range(holes):
        yield start + i * step, step - 4 * KIB, USABLE
        if i % 2:
            yield start + i * step + step - 4 * KIB, 4 * KIB, RESERVED
    yield start + holes * step, end - start - holes * step, USABLE


def mebibytes(run):
    return int(re.search(r"memory: (\d+) MiB, ", run.console)[1])


@pytest.mark.parametrize("holes", (0, 60, 206, 330))
def test_memory_in_pieces(holes, tmp_path):
    """A UEFI machine's map with 312 ranges has been seen."""
    ranges = list(in_pieces(holes))
    run = with_map(tmp_path, "sysinfo hardware.memory", ranges)
    assert run.status == 0 and "too many ranges" not in run.console, run
    usable = sum(size for _, size, kind in ranges if kind == USABLE)
    assert 0 <= usable / MIB - mebibytes(run) <= 1, run
    assert holes != 206 or len(ranges) == 312
    listed = re.findall(r"^([0-9a-f]{12})-([0-9a-f]{12}) +\d+ KiB  type (-?\d+): ",
                        run.output, re.MULTILINE)
    assert [(int(start, 16), int(end, 16) + 1 - int(start, 16), int(kind))
            for start, end, kind in listed if kind != "-1"] == ranges, run


def test_memory_in_too_many_pieces(tmp_path):
    """The log and the report say what is not used."""
    ranges = list(in_pieces(500))
    run = with_map(tmp_path, "sysinfo hardware.memory", ranges)
    lost, = map(int, re.findall(r"^.*warning: boot loader: its memory map has too many ranges: "
                                r"(\d+) KiB are not used$", run.console, re.MULTILINE))
    usable = sum(size for _, size, kind in ranges if kind == USABLE)
    assert run.status == 0 and 0 < lost < usable // KIB // 2, run
    assert abs(mebibytes(run) - (usable // KIB - lost) // KIB) <= 2, run
    assert f"Not used, as these are too many: {lost} KiB\n" in run.output, run
