"""SATA disks behind an AHCI controller: a partition that is named takes results home,
nothing else is written; errors of the disk, of the controller and of its tables."""
import hashlib
import re

import pytest

from checkers import NOTHING_LOST, options
from damage import cases, damaged
from disk_images import (BASIC_DATA, LINUX, SECTOR, check, clean, make_fat, make_gpt, mbr, mtools,
                         put, take, writers)
from machine import LONG_PATIENCE, PATIENCE, vm
from monitor import Monitored
from test_stick import read_profile, repair_profile
from tiers import realtime

# QEMU reads and writes the image in the host's time; the kernel's limits are seconds.
pytestmark = realtime()
FIRST, COUNT, OTHER = 2048, 2 * 66000, 2 * 66000 + 4096
SECTORS = 150000
# Waits for the disk; used as `disk && ...`.
DISK = """disk() { for i in $(seq 100); do grep -q ' /disk ' /proc/mounts && return
    sleep 0.1; done; echo no disk; return 1; }
"""
BALANCED = "stats --audit >/dev/null && echo balanced"


def make_disk(folder, name="disk"):
    """Two FAT file systems, of which the second one is in a partition of another type."""
    fat = make_fat(folder / f"{name}.fat", "-F", "32", "-s", "1")
    disk = make_gpt(folder / name, SECTORS,
                    [(BASIC_DATA, FIRST, COUNT), (LINUX, OTHER, 4096)])
    put(disk, FIRST, fat)
    return disk


def partition(disk, folder):
    return take(disk, FIRST, COUNT, folder / "partition")


def digest(file):
    with open(file, "rb") as data:
        return hashlib.sha256(data.read()).digest()


def rest_of(disk):
    """All but the first partition's contents."""
    with open(disk, "rb") as file:
        data = file.read()
    return hashlib.sha256(data[:FIRST * SECTOR] + data[(FIRST + COUNT) * SECTOR:]).hexdigest()


WRITER = DISK + """disk && grep disk /proc/mounts &&
sprofile -o /disk/p.data -- sh -c 'ls -R /proc >/dev/null; ls -R /proc >/dev/null' \
    >/dev/null && mkdir /disk/Folder && cp /bin/busybox "/disk/Folder/a program" &&
cmp /bin/busybox "/disk/Folder/a program" &&
for i in 1 2 3; do (seq 3000 >"/disk/numbers of $i"; seq 3001 6000 >>"/disk/numbers of $i") &
done; wait; rm "/disk/numbers of 3"; sync && echo synced
sysinfo system.disks
umount /disk && mkdir /tmp/ro && mount -t vfat -o ro sata0p1 /tmp/ro && grep /ro /proc/mounts
ls /tmp/ro/Folder; echo x >/tmp/ro/x; rm -r /tmp/ro/Folder; umount /tmp/ro
for name in sata0p2 sata0 sata0p9 sata7p1 none; do mount -t vfat $name /tmp/ro; done
/test/failalloc sata0p1 | grep -o '^ok a disk, without each'
""" + BALANCED


def test_results_go_home(tmp_path):
    disk = make_disk(tmp_path)
    before = rest_of(disk)
    run = vm(WRITER, "--sata-disk", disk, "--kargs", "disk=sata0p1", *options("addresses"),
             smp=4)
    assert run.status == 0 and run.output == """vfat /disk vfat rw 0 0
synced
name     bus      bytes  what                       state
sata0    ahci  76800000  QEMU HARDDISK              mounted
sata0p1  ahci  67584000  partition of the type FAT  
sata0p2  ahci   2097152  partition of another type  
vfat /tmp/ro vfat ro 0 0
a program
ok a disk, without each
balanced
""", run
    assert run.errors.count("Read-only file system") == 2, run
    assert re.findall(r"mounting (\S+) on /tmp/ro failed: (.*)", run.errors) == [
        *((name, "Invalid argument") for name in ("sata0p2", "sata0", "sata0p9")),
        *((name, "No such device or address") for name in ("sata7p1", "none"))], run
    for said in ("sata0p1: FAT32, clusters of 512 bytes",
                 "sata0p2: not mounted: the type of the partition is not FAT",
                 "sata0: not mounted: it has partitions: name one",
                 "sata0p9: not mounted: it has no such partition"):
        assert f"ahci: {said}\n" in run.console, run
    assert NOTHING_LOST in run.console, run
    assert rest_of(disk) == before
    volume = partition(disk, tmp_path)
    clean(volume)
    read_profile(volume, "p.data", tmp_path, "sprofile -o /disk/p.data -- sh -c ls -R /proc")
    numbers = mtools("mtype", volume, "::numbers of 2").stdout
    assert numbers.decode() == "".join(f"{n}\n" for n in range(1, 6001))


NOTHING = """until dmesg | grep -q 'sata3: FAT'; do sleep 0.1; done
sysinfo system.disks; grep vfat /proc/mounts; """ + BALANCED


def test_nothing_unless_asked(tmp_path):
    """Disks of all kinds beside each other: none is mounted, and none is written; those
    without a driver are named."""
    damaged = make_disk(tmp_path)
    with open(damaged, "r+b") as file:  # the first copy of its GPT
        file.seek(SECTOR + 16)
        file.write(b"ruin")
    empty = tmp_path / "empty"
    empty.write_bytes(bytes(1 << 20))
    overlapping = tmp_path / "overlapping"
    overlapping.write_bytes(mbr((0x0c, 8, 100), (0x83, 100, 200)) + bytes(1 << 20))
    whole = make_fat(tmp_path / "whole")
    files = (damaged, empty, overlapping, whole)
    before = [digest(file) for file in files]
    arguments = "-device ich9-ahci,id=sata -device ide-cd,bus=sata.5 -device megasas" \
        " -device nvme,serial=1,drive=nvme -drive if=none,id=nvme,driver=null-co,size=1M"
    for n, file in enumerate(files):
        arguments += f" -drive if=none,id=d{n},format=raw,file={file}" \
            f" -device ide-hd,bus=sata.{n},drive=d{n}"
    run = vm(NOTHING, "--qemu-args", arguments, *options("addresses"), smp=1)
    assert run.status == 0 and run.output == """\
name     bus      bytes  what                       state
sata0    ahci  76800000  QEMU HARDDISK              
sata0p1  ahci  67584000  partition of the type FAT  
sata0p2  ahci   2097152  partition of another type  
sata1    ahci   1048576  QEMU HARDDISK              
sata2    ahci   1049088  QEMU HARDDISK              
sata2p1  ahci     51200  partition of the type FAT  it overlaps another one
sata2p2  ahci    102400  partition of another type  it overlaps another one
sata3    ahci  67584000  QEMU HARDDISK              
sata5    ahci         0                             a CD drive, or another ATAPI device
balanced
""", run
    for said in ("ahci: sata0: the first copy of its GPT is damaged; the second is used",
                 "ahci: sata1: it has neither partitions nor a file system",
                 "disk: 1000:0060 at 00:04.0 is not used: it is in RAID mode: in the "
                 "firmware's setup choose AHCI",
                 "disk: 1b36:0010 at 00:05.0 is not used: there is no driver for NVMe"):
        assert f"{said}\n" in run.console, run
    assert NOTHING_LOST in run.console, run
    assert before == [digest(file) for file in files]


# Written from three sides until the disk fails.
FAILING = DISK + "disk\n" + writers("/disk") + """\
touch /tmp/gone; wait $profile; echo "profile: $?"; wait
cat /tmp/shell; grep zeros /tmp/dd; grep /disk /tmp/profile; ls /disk
""" + BALANCED


def test_fails_while_written(tmp_path):
    """QEMU takes the image away: each command fails from then on, and so does each writer."""
    disk = make_disk(tmp_path)
    with Monitored(FAILING, "--sata-disk", disk, "--kargs", "disk=sata0p1",
                   *options("addresses"), smp=4) as m:
        m.wait_for("ready$")
        m.ask("drive_del disk-image")
        run = m.result()
    assert run.status == 0 and re.fullmatch(r"""profile: 1
sh: write error: I/O error
sh: can't create later: I/O error
dd: .*'/disk/zeros': I/O error
profile: -o /disk/perf.data: some of it could not be written: .*
balanced
""", run.output), run
    # The first that failed: a read, a write or a flush.
    assert re.search("ahci: sata0: command 0x(25|35|ea), sector [0-9]+: it reports an error ",
                     run.console), run
    assert NOTHING_LOST in run.console and "given up" not in run.console, run
    repair_profile(partition(disk, tmp_path), "perf.data", tmp_path,
                   "profile -o /disk/perf.data")


# QEMU cannot take a disk off its SATA port: the kernel sees none from some check on.
GONE = DISK + """disk; while cp /bin/busybox /disk/copy; do :; done 2>/tmp/cp; cat /tmp/cp
while [ -e /disk ]; do sleep 0.1; done; mkdir /tmp/there; mount -t vfat sata0p1 /tmp/there
sysinfo system.disks; """ + BALANCED


def test_pulled_out(tmp_path):
    disk = make_disk(tmp_path)
    run = vm(GONE, "--sata-disk", disk, "--kargs", "disk=sata0p1 fault=ahci-gone,4000",
             *options("addresses"), smp=1)
    assert run.status == 0 and re.fullmatch(r"""cp: .*: I/O error
name  bus  bytes  what  state
balanced
""", run.output), run
    assert "failed: No such device or address" in run.errors, run
    assert re.search("ahci: sata0: unplugged\n.*disk: /disk is unmounted: the disk has gone\n",
                     run.console), run
    assert NOTHING_LOST in run.console, run
    volume = partition(disk, tmp_path)
    check(volume, "-a")
    clean(volume)


ERRORS = DISK + """disk || exit; seq 20000 >/tmp/f
for i in 1 2 3 4 5 6; do cp /tmp/f /disk/$i 2>/dev/null || echo failed; done; sync
for i in 1 2 3 4 5 6; do cat /disk/$i >/dev/null || echo unreadable; done
echo more >>/disk/1; """ + BALANCED
# The table cannot be read, once: it is read again to mount the disk. A sector of the data
# cannot be written, once: cp writes the rest of its buffer again. Another one can never be
# read.
RULES = f"""[inject-error]
event = "read_aio"
iotype = "read"
sector = "0"
once = "on"

[inject-error]
event = "write_aio"
iotype = "write"
sector = "{FIRST + 2500}"
once = "on"

[inject-error]
event = "read_aio"
iotype = "read"
sector = "{FIRST + 3000}"
"""


def test_bad_sectors(tmp_path):
    disk = make_disk(tmp_path)
    rules = tmp_path / "rules"
    rules.write_text(RULES)
    run = vm(ERRORS, "--kargs", "disk=sata0p1", *options("addresses"), "--qemu-args",
             "-drive if=none,id=bad,format=raw,rerror=report,werror=report,"
             f"file=blkdebug:{rules}:{disk} -device ich9-ahci,id=sata "
             "-device ide-hd,bus=sata.0,drive=bad,cyls=100,heads=16,secs=63", smp=1)
    assert run.status == 0 and run.output == "unreadable\nbalanced\n", run
    found = re.findall(r"sata0: command (\w+), sector (\d+): it reports an error", run.console)
    assert "ahci: sata0: it cannot be read\n" in run.console, run
    for (command, first), sector in zip(found, (0, FIRST + 2500, FIRST + 3000, FIRST + 3000)):
        assert command == ("0x35" if sector == FIRST + 2500 else "0x25"), run
        assert int(first) <= sector < int(first) + 64, run
    assert len(found) >= 3, run
    assert NOTHING_LOST in run.console and "given up" not in run.console, run
    volume = partition(disk, tmp_path)
    check(volume, "-a")
    clean(volume)
    text = b"".join(b"%d\n" % n for n in range(1, 20001))
    assert mtools("mtype", volume, "::1").stdout == text + b"more\n"
    assert all(mtools("mtype", volume, f"::{n}").stdout == text for n in range(2, 7))


# Partitions between which nothing may be written.
EACH = 16  # the kernel uses no more of a disk
DISKS = 6  # ports of the controller
SMALL, GAP, GUARD = 256, 8, b"\xa5" * SECTOR
USE_DAMAGED = """until sysinfo system.disks | grep -q sata{last}p16; do sleep 0.1; done
mkdir /tmp/m; for disk in $(seq 0 {last}); do for i in $(seq 16); do
    mount -t vfat sata${{disk}}p$i /tmp/m || continue; echo >>/tmp/mounted
    cd /tmp/m; ls -lR; cat * */*; echo more >>text; cp text new; mkdir d; mv new d; rm -r d folder
    truncate -s 9000 text; cd /; umount /tmp/m || echo not unmounted >&3
done; done >/dev/null 2>&1 3>/tmp/problems; wc -l </tmp/mounted; cat /tmp/problems
""" + BALANCED


def damaged_disk(path, whole, places, first):
    """Each partition is one case, from `first` on."""
    used = 24 * SECTOR
    disk = make_gpt(path, 40000, [(BASIC_DATA, at, SMALL) for at in places])
    with open(disk, "r+b") as file:
        for number, at in enumerate(places, first):
            data = damaged("fat", number, whole[:used]) + whole[used:]
            file.seek(at * SECTOR)
            file.write(data[:SMALL * SECTOR].ljust(SMALL * SECTOR, b"\0") + GUARD * GAP)
    return disk


@pytest.mark.parametrize("kernel", ("addresses", "plain") if cases(0) else ("addresses",))
def test_damaged_file_systems(tmp_path, kernel):
    """Mounted and written: nothing outside of them is; errors end in errors. With CASES on
    six disks at a time, and on the plain kernel, too."""
    fat = make_fat(tmp_path / "fat", "-F", "12", "-s", "1", kilobytes=SMALL // 2)
    (tmp_path / "text").write_text("text\n" * 1000)
    mtools("mmd", fat, "::folder")
    for place in "text", "folder/a long name of a file":
        mtools("mcopy", fat, tmp_path / "text", f"::{place}")
    whole = open(fat, "rb").read()
    places = [2048 + n * (SMALL + GAP) for n in range(EACH)]
    disks = DISKS if cases(0) else 1
    for first in range(0, cases(EACH), disks * EACH):
        files = [damaged_disk(tmp_path / f"disk{n}", whole, places, first + n * EACH)
                 for n in range(disks)]
        arguments = "-device ich9-ahci,id=sata" + "".join(
            f" -drive if=none,id=d{n},format=raw,file={file}"
            f" -device ide-hd,bus=sata.{n},drive=d{n}" for n, file in enumerate(files))
        run = vm(USE_DAMAGED.format(last=disks - 1), "--qemu-args", arguments,
                 *([] if kernel == "plain" else options(kernel)), smp=1,
                 timeout=LONG_PATIENCE if cases(0) else PATIENCE)
        assert run.status == 0 and re.fullmatch(r"\d+\nbalanced\n", run.output), (first, run)
        assert int(run.output.split()[0]) > disks * EACH / 10, (first, run)
        assert kernel == "plain" or NOTHING_LOST in run.console, (first, run)
        for disk in files:
            with open(disk, "rb") as file:
                for at in places:
                    file.seek((at + SMALL) * SECTOR)
                    assert file.read(GAP * SECTOR) == GUARD * GAP, (first, disk, at)


FAULTS = DISK + """disk; for i in $(seq 20); do seq 4000 >/disk/$i; done
cat /disk/* | wc -l; """ + BALANCED


def test_controller_faults(tmp_path):
    """Transfers that fail in the controller are repeated; so is one that was never begun,
    after 10 s and a reset of the port."""
    disk = make_disk(tmp_path)
    run = vm(FAULTS, "--sata-disk", disk, "--kargs",
             "disk=sata0p1 fault=ahci-fatal,15,ahci-lost,2503", *options("addresses"), smp=1)
    assert run.status == 0 and run.output == "80000\nbalanced\n", run
    assert run.console.count(": it does not answer (") == 1, run
    assert run.console.count(": the transfer has failed (") > 50, run
    assert NOTHING_LOST in run.console and "given up" not in run.console, run
    clean(partition(disk, tmp_path))


def test_no_disk_that_answers(tmp_path):
    """Each transfer fails: the disk is listed, with the reason."""
    disk = make_disk(tmp_path)
    run = vm("sleep 1; sysinfo system.disks; mkdir /disk; mount -t vfat sata0p1 /disk; "
             + BALANCED, "--sata-disk", disk, "--kargs", "disk=sata0p1 fault=ahci-fatal,1",
             *options("addresses"), smp=1)
    assert run.status == 0 and re.search(
        "^state +it does not say what it is .*\nbalanced\n", run.output, re.MULTILINE), run
    assert "ahci: sata0: not used: it does not say what it is\n" in run.console, run
