"""One ISO boots under a BIOS, a 64-bit UEFI and a 32-bit UEFI, as a CD and as a disk,
with its console on the framebuffer."""
import os
import re
import subprocess
import time

import pytest

from machine import PATIENCE, ROOT, SHIFT, VM, vm
from monitor import Monitored, by_gdb, free_port
from screenshot import CURSOR_LINES, GREY, HEIGHT, WIDTH, YELLOW, Shot
from tiers import realtime

ISO_BYTES_MAX = 8_000_000
COMMAND = """
profile -F 1000 --rows 3 sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'
exit 7"""


@pytest.mark.parametrize("firmware, medium", (
    ("bios", []), ("bios", ["--disk"]), ("uefi64", []),
    ("uefi32", ["--disk", "--cut-memory", "4M 5M"])),
    ids=("bios-cd", "bios-disk", "uefi64-cd", "uefi32-disk-moved"))
def test_to_the_shell_and_a_profile(firmware, medium, monkeypatch):
    """The CDs are compressed, as the ISO for people is. The kernel is elsewhere if the memory
    is not free for which it is linked."""
    if not medium:
        monkeypatch.setenv("PRESET", "0")
    run = vm(COMMAND, "--firmware", firmware, *medium)
    assert run.status == 7 and not run.problem, run
    assert "booted by GRUB" in run.console and "warning:" not in run.console, run
    assert ("kernel image at" in run.console) == ("--cut-memory" in medium), run
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
    """The image for people has five entries, and waits."""
    subprocess.run(["xorriso", "-osirrox", "on", "-indev", f"{ROOT}/build/strobe.iso",
                    "-extract", "/boot/grub/grub.cfg", tmp_path / "grub.cfg"],
                   check=True, capture_output=True)
    config = (tmp_path / "grub.cfg").read_text()
    assert re.findall(r'^menuentry "(.*)"', config, re.MULTILINE) == [
        "Strobe", "Strobe, serial console",
        "Strobe, safe: one CPU, no ACPI", "Strobe, network by DHCP", "Memory test"]
    assert re.search(r'"Strobe, network by DHCP" {\n    multiboot2 \S+ .*\bnet=dhcp$', config,
                     re.MULTILINE)
    assert "set timeout=5" in config


@realtime()
@pytest.mark.parametrize("firmware, bits", (("bios", 32), ("uefi64", 64)))
def test_the_memory_test(firmware, bits):
    """Its two programs; the bottom line names them. (QEMU's machine with a BIOS has a CPU
    of 32 bits.)"""
    with Monitored("true", "--firmware", firmware, "--menu", "Memory test",
                   smp=1) as machine:
        machine.wait_for("Status: Testing")
        machine.wait_for(rf"(?s)Memtest86\+.*<ESC> Exit.*x{bits}\b")


# Text of all kinds on tty0; the cursor is behind "end". Then it waits for ever: an idle
# machine's virtual time passes faster than a busy host asks.
TYPED = r"""seq 100 >/dev/tty0; printf '\033[2J\033[H\033[1;33mYellow\033[0m and grey\n' >/dev/tty0
printf '╔═╗\n\033[1;200HX\033[5;1Hend' >/dev/tty0
stty -F /dev/tty0 -echo; sleep 1; echo typed >/dev/console
mkfifo /tmp/x; cat /tmp/x"""


def dump(folder, *options, scale=1, before=""):
    """A dump of tty0 after TYPED, and the console's text."""
    with Monitored(before + TYPED, *options, smp=1) as machine:
        machine.wait_for("typed")
        machine.ask(f"screendump {folder}/shot.ppm")
        return Shot(f"{folder}/shot.ppm", scale), machine.console()


def test_a_framebuffer_shows_the_text(tmp_path):
    shot, _ = dump(tmp_path, "--firmware", "uefi64")
    lines = shot.lines()
    assert lines[0] == f"{'Yellow and grey':{shot.width // WIDTH - 1}}X", lines
    assert (lines[1], lines[4]) == ("╔═╗", "end\0"), lines  # the cursor is no glyph
    assert all(not line for line in lines[5:]), lines
    assert shot.cell(0, 0) == (ord("Y"), YELLOW)
    assert shot.cell(0, 11) == (ord("g"), GREY)
    cursor = shot.dots(4, 3)
    assert [y for y in range(HEIGHT) if cursor[y] == [GREY] * WIDTH] == \
        list(CURSOR_LINES)


def wait_shown(machine, folder, want):
    """Until these are the lines; the cursor is not looked at."""
    deadline = time.monotonic() + PATIENCE
    lines = None
    while lines != want:
        assert time.monotonic() < deadline, lines
        machine.ask(f"screendump {folder}/shot.ppm")
        lines = [line.rstrip("\0") for line in Shot(f"{folder}/shot.ppm").lines()]


def test_earlier_lines(tmp_path):
    """Shift+PgUp, Shift+PgDn and keys on a screen of 30 lines. Line 71 of 100 and those
    before it have left the screen when it is cleared."""
    present = [f"{'Yellow and grey':79}X", "╔═╗", "", "", "end"] + 25 * [""]
    earlier = [*map(str, range(57, 72)), *present[:15]]
    with Monitored(TYPED, "--video", "640x480x15", smp=1) as machine:
        machine.wait_for("typed")
        wait_shown(machine, tmp_path, present)
        machine.ask("sendkey shift-pgup")
        wait_shown(machine, tmp_path, earlier)
        machine.ask("sendkey shift-pgup")
        wait_shown(machine, tmp_path, [*map(str, range(42, 72))])
        machine.ask("sendkey shift-pgdn")
        wait_shown(machine, tmp_path, earlier)
        machine.ask("sendkey x")  # which is not echoed
        wait_shown(machine, tmp_path, present)


# 50 pages on nothing, then on tty0, where each is drawn before the next one: how long the
# machine has run, and been idle, before and after.
PAGES = r"""ls -lR /bin /etc /dev | head -n 67 >/tmp/page
for out in null tty0; do
    begin=$(cat /proc/uptime)
    for page in $(seq 50); do cat /tmp/page; sleep 0.02; done >/dev/$out
    echo "50 pages on $out: $begin $(cat /proc/uptime)" >/dev/console
done
"""
INSTRUCTIONS_OF_PAGE = 1_500_000  # 2 ms at 0.75 a nanosecond


def instructions_of_page(console):
    busy = {}
    for out, *times in re.findall(r"50 pages on (\w+): ([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+)",
                                  console):
        up, idle, up_after, idle_after = map(float, times)
        busy[out] = up_after - up - (idle_after - idle)
    return (busy["tty0"] - busy["null"]) / 50 * 1e9 / 2 ** SHIFT


@pytest.mark.parametrize("mode, scale", (
    ("640x480x15", 1), ("800x600x16", 1), ("1024x768x24", 1), ("1920x1080x32", 1),
    ("2560x1600x16", 2)))
def test_graphics_modes(tmp_path, mode, scale):
    """Of any size and depth; large ones have larger characters. Scrolling is fast."""
    large = mode == "1920x1080x32"
    shot, console = dump(tmp_path, "--video", mode, scale=scale, before=PAGES * large)
    assert f"{shot.width}x{shot.height}" == mode.rsplit("x", 1)[0]
    assert shot.line(0).startswith("Yellow and grey")
    assert (shot.line(1), shot.line(4)) == ("╔═╗", "end\0")
    assert not large or instructions_of_page(console) < INSTRUCTIONS_OF_PAGE, console


def test_a_panic_is_on_the_framebuffer(tmp_path):
    port = free_port()
    machine = subprocess.Popen(
        [VM, "--smp", "1", "--video", "1024x768x32", "--gdb", str(port), "--console",
         "--kargs", "init=/nosuch"], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        gdb = by_gdb(tmp_path, port, f"""
hbreak machine_panic_exit
continue
monitor screendump {tmp_path}/shot.ppm
delete
""")
    finally:
        machine.terminate()
        machine.wait()
    assert os.path.exists(tmp_path / "shot.ppm"), gdb
    lines = Shot(tmp_path / "shot.ppm").lines()
    assert any(line.startswith("KERNEL PANIC: cannot start /nosuch: error 2")
               for line in lines), lines
    assert any("panic" in line for line in lines), lines
