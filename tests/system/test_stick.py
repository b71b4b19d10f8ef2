"""Sticks (USB mass storage with FAT): results are taken home, on the stick that the machine
was booted from, too, and a stick is pulled out while it is written."""
import os
import re
import struct
import subprocess
import time

import pytest

from checkers import NOTHING_LOST, options
from disk_images import BASIC_DATA, EFI_SYSTEM as EFI_SYSTEM_GUID, SECTOR
from disk_images import check, clean, make_fat, make_gpt, mtools, put, take, writers
from machine import ROOT, vm
from monitor import Monitored
from tiers import realtime

# QEMU reads and writes the image in the host's time; the kernel's limits are seconds.
pytestmark = realtime()
STROBE = f"{ROOT}/build/strobe"
# Waits for the stick; used as `stick && ...`.
STICK = """stick() { for i in $(seq 600); do grep -q ' /usb ' /proc/mounts && return
    sleep 0.1; done; echo no stick; return 1; }
"""


def read_profile(image, name, folder, command):
    """A profile that is on the stick is read by the host's tool."""
    mtools("mcopy", image, f"::{name}", folder / "p.data")
    report = subprocess.run([STROBE, "report", folder / "p.data"], text=True,
                            capture_output=True, check=True).stdout
    assert f"p.data of {command}" in report, report


def repair_profile(image, name, folder, command):
    """One that was cut off, on a file system that a checker has to mend."""
    check(image, "-a")
    clean(image)
    data = folder / "perf.data"
    mtools("mcopy", image, f"::{name}", data)
    done = subprocess.run([STROBE, "repair", data], capture_output=True, text=True)
    assert done.returncode == 0, done
    report = subprocess.run([STROBE, "report", data], capture_output=True, text=True)
    assert report.returncode == 0 and f"of {command}" in report.stdout, report


WRITER = STICK + """stick && cat "/usb/From the host, größer.txt" &&
sprofile -o /usb/p.data -- sh -c 'ls -R /proc >/dev/null; ls -R /proc >/dev/null' \
    >/dev/null && mkdir /usb/Folder && cp /bin/busybox "/usb/Folder/a program" &&
cmp /bin/busybox "/usb/Folder/a program" && mv /usb/p.data /usb/Folder/ &&
for i in 1 2 3 4; do (seq 3000 >"/usb/numbers of $i"; seq 3001 6000 >>"/usb/numbers of $i") &
done; wait
ls /usb; rm "/usb/numbers of 3"; sync && echo synced
/bin/busybox ls /usb/nothing; echo x >'/usb/a:b'
umount /usb && mount -t vfat none /usb && ls /usb/Folder
sysinfo system.usb | grep storage; stats --audit >/dev/null && echo balanced"""


@pytest.mark.parametrize("smp", (1, 4))
def test_results_go_home(tmp_path, smp):
    """With 4 CPUs the stick has a GPT, and before its partition UEFI's."""
    stick = image = make_fat(tmp_path / "stick", "-F", "32", "-s", "1")
    (tmp_path / "text").write_text("from the host\n")
    mtools("mcopy", image, tmp_path / "text", "::From the host, größer.txt")
    if smp == 4:
        stick = make_gpt(tmp_path / "gpt", 140000, [
            (EFI_SYSTEM_GUID, 40, 2008), (BASIC_DATA, 2048, 132000)])
        put(stick, 2048, image)
    run = vm(WRITER, "--usb-stick", stick, *options("addresses"), smp=smp)
    if smp == 4:
        take(stick, 2048, 132000, image)
    assert run.status == 0 and run.output == """from the host
Folder
From the host, größer.txt
numbers of 1
numbers of 2
numbers of 3
numbers of 4
synced
a program
p.data
kind          storage        keyboard, hub, storage, or not used
balanced
""", run
    assert NOTHING_LOST in run.console, run
    clean(image)
    read_profile(image, "Folder/p.data", tmp_path,
                 "sprofile -o /usb/p.data -- sh -c ls -R /proc")
    numbers = mtools("mtype", image, "::numbers of 2").stdout
    assert numbers.decode() == "".join(f"{n}\n" for n in range(1, 6001))


BOOT_WRITER = STICK + """stick && ls -A /usb && sprofile -o /usb/p.data -- ls -R /proc >/dev/null &&
mkdir /usb/Folder && ls -A /usb/Folder && cp /bin/busybox /usb/Folder &&
cmp /bin/busybox /usb/Folder/busybox && sync && dmesg | grep -o 'booted by GRUB'"""
FAT32_LBA, FAT16_LBA, EFI_SYSTEM = 0x0c, 0x0e, 0xef
MB = 10**6


def partitions(disk):
    """Type, first byte and bytes of each partition."""
    with open(disk, "rb") as file:
        table = file.read(512)
    assert table[510:] == b"\x55\xaa"
    for at in range(446, 510, 16):
        kind, _, first, count = struct.unpack_from("<B3sII", table, at + 4)
        if kind:
            yield kind, first * 512, count * 512


def full_stick(path, size):
    """It is full of something else, where a file system could be."""
    path.write_bytes(b"\xa5" * min(size, 32 << 20))
    os.truncate(path, size)
    return path


def write_and_boot(tmp_path, firmware, stick, *options):
    """Boots from it, and takes results home. Their place: type, first byte and bytes."""
    run = vm(BOOT_WRITER, "--firmware", firmware, "--disk", "--usb-stick", str(stick), *options,
             smp=1)
    assert (run.status, run.output) == (0, "booted by GRUB\n"), run
    (results, start, size), (efi, efi_start, efi_size) = partitions(stick)
    assert efi == EFI_SYSTEM and efi_start + efi_size <= start
    image = take(stick, start // SECTOR, size // SECTOR, tmp_path / "image")
    clean(image)
    assert mtools("mdir", f"{stick}@@{efi_start}", "::/efi/boot").returncode == 0
    read_profile(f"{stick}@@{start}", "p.data", tmp_path,
                 "sprofile -o /usb/p.data -- ls -R /proc")
    return run, results, start, size


@pytest.mark.parametrize("firmware", ("bios", "uefi64", "uefi32"))
def test_on_the_boot_stick(tmp_path, firmware):
    """The ISO is written to the stick as by dd."""
    stick = full_stick(tmp_path / "stick", 512 * MB)
    run, results, start, size = write_and_boot(tmp_path, firmware, stick)
    assert "usb: 1-4: FAT16, clusters of 16384 bytes\n" in run.console, run
    assert results == FAT16_LBA and start + size < 512 * MB


def test_too_small_for_dd(tmp_path):
    """UEFI boots from a table whose first partition ends behind the disk."""
    stick = full_stick(tmp_path / "stick", 96 * MB)
    run = vm("until dmesg | grep -q 'usb: 1-4: not'; do sleep 0.1; done; ls -d /usb; "
             "dmesg | grep -o 'booted by GRUB'", "--firmware", "uefi64", "--disk",
             "--usb-stick", str(stick), smp=1)
    assert (run.status, run.output) == (0, "booted by GRUB\n"), run
    assert "usb: 1-4: not mounted: it is larger than the disk\n" in run.console, run


@pytest.mark.parametrize("firmware,size,results,said", (
    ("bios", 90 * MB, FAT16_LBA, "FAT16, clusters of 16384"),
    ("uefi64", 96 * MB, FAT16_LBA, "FAT16, clusters of 16384"),
    ("uefi32", 4000 * MB, FAT32_LBA, "FAT32, clusters of 8192")))
def test_on_a_whole_stick(tmp_path, firmware, size, results, said):
    """tools/stick makes the partition as large as the stick."""
    stick = full_stick(tmp_path / "stick", size)
    run, *partition = write_and_boot(tmp_path, firmware, stick, "--fit")
    assert f"usb: 1-4: {said} bytes\n" in run.console, run
    assert partition[0] == results and sum(partition[1:]) == size // SECTOR * SECTOR


@pytest.mark.parametrize("size,clusters", ((2 << 30, 16), (40 << 30, 64), (3 << 40, 64)))
def test_large_sticks(tmp_path, size, clusters):
    """Without a machine: what they contain is right; mformat makes no more than 1 TiB."""
    stick = full_stick(tmp_path / "stick", size)
    subprocess.run([f"{ROOT}/tools/stick", stick], check=True)
    (results, start, bytes_), _ = partitions(stick)
    assert results == FAT32_LBA and bytes_ == min(size - start, 1 << 40)
    with open(stick, "rb") as file:
        file.seek(start)
        boot = file.read(SECTOR)
    assert boot[13] == clusters and boot[82:90] == b"FAT32   ", boot
    if size < 1 << 40:
        clean(take(stick, start // SECTOR, bytes_ // SECTOR, tmp_path / "image"))


def test_sticks_that_are_refused(tmp_path):
    """Nothing is written to them."""
    small, other = full_stick(tmp_path / "small", 70 * MB), tmp_path / "other"
    other.write_bytes(bytes(1 << 20))
    before = small.read_bytes()
    for why, *arguments in (
            (f"{small} is too small: the least is [0-9]+ MB", small),
            (f"{other} is not an image of Strobe", small, "--iso", other),
            ("/dev/null is neither a disk nor a file", "/dev/null"),
            (".*No such file or directory: .*nothing.*", tmp_path / "nothing")):
        done = subprocess.run([f"{ROOT}/tools/stick", *arguments], text=True,
                              capture_output=True)
        assert done.returncode == 1 and re.fullmatch(f"tools/stick: {why}\n", done.stderr), done
    assert small.read_bytes() == before


# Written from three sides until the stick is pulled out; then another one comes.
PULLED = STICK + "stick\n" + writers("/usb") + """\
while [ -e /usb ]; do sleep 0.1; done
touch /tmp/gone; wait $profile; echo "profile: $?"; wait
cat /tmp/shell; grep zeros /tmp/dd; grep /usb /tmp/profile; echo "machine goes on" >/dev/kmsg
stick && cp /bin/busybox /usb && cmp /bin/busybox /usb/busybox && echo second
stats --audit >/dev/null && echo balanced"""


@pytest.mark.parametrize("smp", (1, 4))
def test_pulled_out(tmp_path, smp):
    """While it is written from three sides: each of them gets an error."""
    first = make_fat(tmp_path / "first")
    second = make_fat(tmp_path / "second")
    with Monitored(PULLED, "--usb-stick", first, *options("addresses"), "--qemu-args",
                   f"-drive if=none,id=second,format=raw,file={second}", smp=smp) as m:
        m.wait_for("ready$")
        m.ask("device_del stick")
        m.wait_for("usb: 1-[0-9]+: unplugged$")
        m.wait_for("usb: /usb is unmounted: the stick has gone$")
        m.wait_for("machine goes on$")
        m.ask("device_add usb-storage,id=other,bus=usb.0,port=3,drive=second")
        m.wait_for("usb: the stick is at /usb$(.|\n)*usb: the stick is at /usb$")
        run = m.result()
    assert run.status == 0 and re.fullmatch(r"""profile: 1
sh: write error: I/O error
sh: can't create later: I/O error
dd: .*'/usb/zeros': .*
profile: -o /usb/perf.data: some of it could not be written: .*
second
balanced
""", run.output), run
    assert NOTHING_LOST in run.console, run
    clean(second)
    repair_profile(first, "perf.data", tmp_path, "profile -o /usb/perf.data")


# A stick goes while it is written, with a descriptor and a working directory on it, and comes
# back. What was held on to gives errors, on whatever is in the port then.
AGAIN = STICK + """appear() { until [ "$(dmesg | grep -c 'the stick is at /usb')" -ge $1 ]; do
    sleep 0.1; done; }
state() { sysinfo system.slabs | awk '{n += $(NF - 2)} END {print "objects", n}'
    sysinfo system.physmem | awk '/^buffer / {print $1, $2}'; }
hold() { cd /usb; exec 3>>/usb/held; echo first >&3; }
stick; seq 9000 >/usb/synced; sync
for n in 2 3 4 5 6; do
    hold; echo "ready $n" >/dev/kmsg
    while [ -e /usb ]; do echo unsynced >/usb/lost; done
    echo more >&3 && echo written to nothing; appear $n
    echo late >&3 && echo written to a stick that was lost
    cat synced && echo read from a stick that was lost
    seq 9000 | cmp - /usb/synced && echo round $n >>/usb/rounds && sync
    exec 3>&-; cd /; [ $n = 2 ] && state >/tmp/first
done 2>/tmp/errors
state >/tmp/last; cat /tmp/first /tmp/last; cat /usb/rounds
hold; echo "ready other" >/dev/kmsg; while [ -e /usb ]; do sleep 0.1; done; appear 7
echo late >&3; touch new; rm held; sync; sysinfo system.disks | grep -c usb;
cat /usb/*; cd /; exec 3>&-
umount /usb; stats --audit >/dev/null && echo balanced"""


@pytest.mark.parametrize("smp", (1, 4))
def test_comes_back(tmp_path, smp):
    """Pulled out while it is written, and plugged in again, five times: it is mounted, what
    was synced is there, nothing is kept of it. Then another one in its port: it is not
    written."""
    first, second = make_fat(tmp_path / "first"), make_fat(tmp_path / "second")
    (tmp_path / "text").write_text("of the second\n")
    mtools("mcopy", second, tmp_path / "text", "::text")
    before = open(second, "rb").read()
    with Monitored(AGAIN, "--usb-stick", first, *options("addresses"), smp=smp) as m:
        device = "stick"
        for n, image in enumerate([first] * 5 + [second], 2):
            m.wait_for(f"ready {'other' if image is second else n}$")
            m.ask(f"device_del {device}")
            device = f"stick{n}"
            m.wait_for(f"(usb: /usb is unmounted: the stick has gone$(.|\\n)*){{{n - 1}}}")
            m.ask(f"drive_add 0 if=none,id=image{n},format=raw,file={image}")
            order = f"device_add usb-storage,id={device},bus=usb.0,port=4,drive=image{n}"
            while "Error" in m.ask(order):  # QEMU has not closed the image yet
                time.sleep(0.05)
        run = m.result()
    found = re.fullmatch(r"""objects (\d+)
buffer (\d+)
objects (\d+)
buffer (\d+)
round 2
round 3
round 4
round 5
round 6
1
of the second
balanced
""", run.output)
    assert run.status == 0 and found, run
    assert run.errors.count("I/O error") == 3, run
    was, buffers, now, buffers_now = map(int, found.groups())
    assert now - was < 16 and buffers == buffers_now, run
    assert NOTHING_LOST in run.console, run
    assert open(second, "rb").read() == before
    check(first, "-a")
    clean(first)
    numbers = mtools("mtype", first, "::synced").stdout
    assert numbers.decode() == "".join(f"{n}\n" for n in range(1, 9001))


NO_ROOM = """until dmesg | grep -q "stick cannot be mounted"; do sleep 0.1; done
mkdir /usb; mount -t vfat none /usb && seq 20000 >/usb/file && cd /usb && cp file copy
echo x | dd of=file bs=1 seek=390000 2>/dev/null || echo no room
truncate -s 390000 file || echo no room; truncate -s 4G file || echo no room
stat -c %s file; seq 20000 | cmp - file; seq 60000 >fill || echo full
sprofile -o full.data -- ls -R /proc >/dev/null || echo full; rm full.data
mkdir folder || echo full; rm fill; mkdir folder; ls; cd /; sync
mkdir /tmp/other; mount -t vfat 1-4 /tmp/other; mount -t vfat none /tmp/other
sprofile -o /usb/p.data -- sh -c 'until [ -e /tmp/end ]; do sleep 0.1; done' >/dev/null &
until [ -e /usb/p.data ]; do sleep 0.1; done
umount /usb; umount -l /usb; mount -t vfat 1-4 /tmp/other; ls /usb; touch /tmp/end; wait
mount -t vfat 1-4 /tmp/other
profile --repair /tmp/other/p.data | grep -o "was whole"; umount /tmp/other
stats --audit >/dev/null && echo balanced"""


def test_no_memory_and_no_room(tmp_path):
    """There is no memory to mount the stick at first. Files stay as they are where others do
    not fit. It is mounted once only, unless nobody uses it any more."""
    image = make_fat(tmp_path / "stick", kilobytes=400)
    run = vm(NO_ROOM, "--usb-stick", image, "--kargs", "fail_alloc=2,fat_fs_mount",
             *options("addresses"), smp=1)
    assert run.status == 0 and run.output == """no room
no room
no room
108894
full
full
full
copy
file
folder
was whole
balanced
""", run
    assert re.findall("mounting (.*) on .*: (.*)", run.errors) == [
        ("1-4", "Resource busy"), ("none", "No such device or address"),
        ("1-4", "Resource busy")], run
    assert "can't unmount /usb: Resource busy" in run.errors, run
    assert "usb: the stick cannot be mounted: error 12\n" in run.console, run
    assert NOTHING_LOST in run.console, run
    clean(image)


def test_wrong_statuses(tmp_path):
    """Each 25th command fails, and the stick is reset; the file system survives. One that
    never answers rightly is given up."""
    image = make_fat(tmp_path / "stick")
    run = vm(STICK + """stick; seq 4000 >/tmp/f; n=0; for i in $(seq 30); do
        cp /tmp/f /usb/$i 2>/dev/null && cmp -s /tmp/f /usb/$i && n=$((n + 1)); done
        [ $n -lt 30 ] && echo failed; echo x >/usb/x || echo y >/usb/x; cat /usb/x
        stats --audit >/dev/null && echo balanced""", "--usb-stick", image,
             "--kargs", "fault=usb-status,25", *options("addresses"), smp=1)
    assert run.status == 0 and re.fullmatch("failed\n[xy]\nbalanced\n", run.output), run
    assert NOTHING_LOST in run.console and "given up" not in run.console, run
    check(image, "-a")
    clean(image)
    run = vm("sleep 2; sysinfo system.usb; stats --audit >/dev/null && echo balanced",
             "--usb-stick", image, "--kargs", "fault=usb-status,1",
             *options("addresses"), smp=1)
    assert run.status == 0 and run.output.endswith("balanced\n"), run
    assert "usb: 1-4: a stick that cannot be used: it is not a disk\n" in run.console, run
    assert NOTHING_LOST in run.console, run


UNREADABLE = """[inject-error]
event = "read_aio"
iotype = "read"
sector = "{}"
"""


def test_sticks_of_no_use(tmp_path):
    """Large sectors, no file system, a file system that says that it is larger than the
    stick, a stick that says that it is larger than it is, and one that is write-protected:
    each one is named, and the last one is read."""
    empty = tmp_path / "empty"
    empty.write_bytes(bytes(1 << 20))
    liar, locked = make_fat(tmp_path / "liar"), make_fat(tmp_path / "locked")
    os.truncate(liar, 1 << 20)
    short = make_fat(tmp_path / "short")
    end = os.path.getsize(short) // 512  # a part of a cluster may be behind the last one
    (tmp_path / "rules").write_text("".join(map(UNREADABLE.format, range(end - 8, end))))
    mtools("mcopy", locked, __file__, "::A test.py")
    files = (f"{empty},file.locking=off",) * 2 + (
        liar, f"blkdebug:{tmp_path}/rules:{short},rerror=report", f"{locked},readonly=on")
    arguments = "-device qemu-xhci,id=usb,p2=8,p3=0 -device usb-bot,id=bot,bus=usb.0,port=1 " \
        "-device scsi-hd,bus=bot.0,drive=d1,logical_block_size=4096," \
        "physical_block_size=4096"  # ports of USB 2: high speed
    for n, file in enumerate(files, 1):
        arguments += f" -drive if=none,id=d{n},format=raw,file={file}"
        if n > 1:
            arguments += f" -device usb-storage,bus=usb.0,port={n},drive=d{n}"
    run = vm(STICK + """stick; wc -l </usb/"A test.py"; grep -o '/usb vfat r[ow]' /proc/mounts
        echo x >/usb/new; rm /usb/*
        mkdir /usb/d; echo more >>"/usb/A test.py"; ls /usb
        stats --audit >/dev/null && echo balanced""",
             "--qemu-args", arguments, *options("addresses"), smp=1)
    lines = len(open(__file__, encoding="utf-8").readlines())
    assert run.status == 0 and run.output == \
        f"{lines}\n/usb vfat ro\nA test.py\nbalanced\n", run
    assert run.errors.count("Read-only file system") == 4, run
    for said in ("1-1: a stick that cannot be used: its sectors do not have 512 bytes",
                 "1-2: not mounted: it has neither partitions nor a file system",
                 "1-3: not mounted: its file system is larger than the disk",
                 "1-4: not mounted: its last sector cannot be read: is the disk smaller "
                 "than it says?",
                 "1-5: QEMU QEMU HARDDISK, 64 MiB, write-protected",
                 "1-5: FAT16, clusters of 2048 bytes", "the stick is at /usb, read-only"):
        assert f"usb: {said}\n" in run.console, run
    assert NOTHING_LOST in run.console, run
