"""The machines that Strobe is booted on by `make test-machines`: one row each.

`options` are those of tools/vm, or `bochs` names Bochs's (bochs.py). A row names what is
special: how many CPUs must run, the time source, the sample source that `profile` chooses,
and what selftest may say: `lacks`, rows that must be "not there", `wrong`, rows that must be
wrong; `doubtful` is v86's RTC, whose second comes up to 40 ms late (docs/hardware.md).
`screen`: the text on the framebuffer is compared, dot by dot."""
from dataclasses import dataclass, field

SANDY_BRIDGE = "corei7_sandy_bridge_2600k"


@dataclass(frozen=True)
class Machine:
    name: str
    options: tuple = ()
    bochs: dict = None
    smp: int = 1
    cpus: int = 0  # 0: all of them
    clock: str = "tsc"
    source: str = "nmi-hpet"
    lacks: frozenset = frozenset()
    wrong: frozenset = frozenset()
    doubtful: frozenset = frozenset()  # selftest may call them wrong, or not
    screen: bool = False
    said: tuple = ()  # of the log
    real: bool = field(default=False)  # in real time, as with several CPUs

    @property
    def real_time(self):
        return self.real or self.smp > 1


HPET = frozenset({"clock hpet", "timer hpet0", "source nmi-hpet"})
PIT = frozenset({"clock pit", "timer pit", "source nmi-pit"})
RTC = frozenset({"RTC", "clock tsc"})
ACPI_TIMER = frozenset({"clock acpi_pm"})


def qemu(name, *options, **special):
    return Machine(name, options, **special)


def arguments(text):
    return "--qemu-args", text


FIRMWARES = tuple(
    qemu(f"{machine}, {firmware}, {'disk' if medium else 'CD'}", "--machine", machine,
         "--firmware", firmware, *medium, said=("booted by GRUB",))
    for machine, firmware, medium in (
        ("pc", "bios", ()), ("pc", "bios", ("--disk",)), ("q35", "bios", ()),
        ("q35", "uefi64", ()), ("q35", "uefi64", ("--disk",)), ("q35", "uefi32", ()),
        ("q35", "uefi32", ("--disk",))))

CPU_MODELS = tuple(
    qemu(f"CPU {model}", "--cpu", model, lacks=frozenset(lacks), **special)
    for model, lacks, special in (
        ("pentium2", (), {}), ("pentium3", (), {}), ("qemu32", (), {}), ("coreduo", (), {}),
        ("core2duo", (), {}), ("Nehalem", (), {}), ("Haswell", (), {}),
        ("Skylake-Client", (), {}), ("Opteron_G1", (), {}), ("EPYC", (), {})))

NUMBERS = tuple(
    qemu(f"{smp} CPUs", smp=smp) for smp in (2, 3, 8, 32, 64)) + (
        qemu("q35, 64 CPUs", "--machine", "q35", smp=64),
        # QEMU 7.2 delivers no device's NMI behind the first hole (docs/hardware.md).
        qemu("12 CPUs, ids with holes", *arguments("-smp 12,sockets=2,dies=3,threads=2"),
             smp=12, source="nmi-ipi", wrong=frozenset({
                 "source rtc", "source nmi-rtc", "source nmi-pit", "source nmi-hpet"})))

MEMORY = tuple(
    qemu(f"{name} of memory", "--mem", mem, *options)
    for name, mem, options in (
        ("48 MiB", "48", ("--no-tests",)), ("1 GiB", "1024", ()), ("3 GiB", "3072", ()),
        ("6 GiB", "6144", ())))

TIMERS = (
    qemu("no HPET", *arguments("-machine hpet=off"), source="nmi-pit", lacks=HPET),
    qemu("no PIT", *arguments("-machine pit=off"), wrong=PIT),
    qemu("no ACPI", "--kargs", "acpi=off", source="nmi-pit", lacks=HPET | ACPI_TIMER),
    qemu("no local APIC", "--cpu", "max,-apic", source="clock", lacks=frozenset({"timer lapic"})),
    qemu("no TSC for the clock", "--kargs", "clocksource=hpet", clock="hpet"),
    qemu("events by the HPET", "--kargs", "timer=hpet", source="nmi-rtc"),
    qemu("isapc, Pentium II", "--machine", "isapc", "--cpu", "pentium2",
         lacks=HPET | ACPI_TIMER, source="lapic"),
    qemu("v86, ACPI", "--machine", "v86", real=True, source="lapic", lacks=HPET, doubtful=RTC,
         wrong=frozenset({"source nmi-pit", "source nmi-rtc"})),
    qemu("v86, no ACPI", "--machine", "v86,acpi=off", real=True, source="clock", doubtful=RTC,
         lacks=HPET | ACPI_TIMER),
)

DEVICES = (
    qemu("USB only", "--usb", "--machine", "q35"),
    qemu("a screen of UEFI", "--firmware", "uefi64", screen=True),
    qemu("a screen of 1024x768x24", "--video", "1024x768x24", screen=True),
    # SeaBIOS's MTRR makes all device memory uncacheable.
    qemu("a screen, no PAT", "--cpu", "pentium2,-pat", "--video", "1024x768x24", screen=True,
         said=("framebuffer: slow, not write-combining: an MTRR of the firmware",)),
)

# The firmware keeps the memory for which the kernel is linked, or some of it; or the page in
# which CPUs start. (A BIOS's GRUB then starts from a disk: tools/build/iso.)
MOVED = tuple(
    qemu(name, *options, "--cut-memory", cut, smp=smp, said=said)
    for name, cut, smp, options, said in (
        ("moved, BIOS", "4M 8M", 1, ("--disk", "--kargs", "kaslr=0"),
         ("kernel image at 0x800000, linked for 0x400000: its addresses hide 0 KiB",)),
        ("moved, no PAE", "5M 40M", 1, ("--disk", "--cpu", "pentium2,-pae", "--kargs", "kaslr=off"),
         ("kernel image at 0x2800000, linked for 0x400000: its addresses hide 1024 KiB",)),
        ("moved, 4 CPUs", "2M 5M", 4, ("--disk",), ("kernel image at ",)),
        ("moved, UEFI, 4 CPUs", "4M 8M", 4, ("--firmware", "uefi64"), ("kernel image at ",)),
        ("4 CPUs, no page at 32 KiB", "4K 600K", 4, ("--disk",),
         ("smp: the other CPUs start at ",))))

BOCHS = tuple(
    Machine(f"Bochs, {smp} CPU{'s' * (smp > 1)}", bochs={"model": SANDY_BRIDGE}, smp=smp,
            wrong=frozenset({"source pmc"}))
    for smp in (1, 4)) + (
        Machine("Bochs, Pentium III, 2 CPUs", bochs={"model": "p3_katmai", "ips": 20000000},
                smp=2, wrong=frozenset({"source pmc"})),)

MACHINES = FIRMWARES + CPU_MODELS + NUMBERS + MEMORY + TIMERS + DEVICES + MOVED + BOCHS
