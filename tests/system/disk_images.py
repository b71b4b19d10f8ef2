"""Images of disks: tables of partitions, FAT file systems in them, and what is on them."""
import os
import struct
import subprocess
import uuid
import zlib

SECTOR = 512
BASIC_DATA = "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7"
EFI_SYSTEM = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
ENTRIES, ENTRY_BYTES = 128, 128
TABLE_SECTORS = ENTRIES * ENTRY_BYTES // SECTOR


def make_fat(path, *kind, kilobytes=66000):
    """A file that is a FAT file system, or a stick without partitions."""
    subprocess.run(["/usr/sbin/mkfs.vfat", "-C", *kind, path, str(kilobytes)], check=True,
                   capture_output=True)
    return str(path)


def mtools(command, image, *arguments):
    return subprocess.run([command, "-i", image, *arguments], check=True,
                          capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"})


def check(image, *options):
    return subprocess.run(["/usr/sbin/fsck.vfat", *options, image], text=True,
                          capture_output=True)


def clean(image):
    found = check(image, "-n")
    assert found.returncode == 0, found.stdout


def mbr_entry(kind, first, count):
    return struct.pack("<B3sB3sII", 0, b"\0\0\0", kind, b"\0\0\0", first, count)


def mbr(*entries):
    table = b"".join(mbr_entry(*entry) for entry in entries).ljust(64, b"\0")
    return bytes(446) + table + b"\x55\xaa"


def gpt_copies(sectors, partitions):
    """The two copies, each with its table, as (first sector, bytes): partitions are (type,
    first sector, number of sectors)."""
    table = b"".join(struct.pack(
        "<16s16sQQQ72s", uuid.UUID(kind).bytes_le, bytes([n + 1] * 16), first,
        first + count - 1, 0, b"") for n, (kind, first, count) in enumerate(partitions))
    table = table.ljust(ENTRIES * ENTRY_BYTES, b"\0")
    last = sectors - 1

    def header(mine, other, table_at):
        def packed(crc):
            return struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, crc, 0, mine,
                               other, 2 + TABLE_SECTORS, last - TABLE_SECTORS - 1,
                               bytes(range(16)), table_at, ENTRIES, ENTRY_BYTES,
                               zlib.crc32(table))
        return packed(zlib.crc32(packed(0))).ljust(SECTOR, b"\0")

    yield 1, header(1, last, 2) + table
    yield last - TABLE_SECTORS, table + header(last, 1, last - TABLE_SECTORS)


def make_gpt(path, sectors, partitions):
    with open(path, "wb") as file:
        file.truncate(sectors * SECTOR)
        file.write(mbr((0xee, 1, min(sectors - 1, 0xffffffff))))
        for at, data in gpt_copies(sectors, partitions):
            file.seek(at * SECTOR)
            file.write(data)
    return str(path)


def put(disk, first, image):
    """Copies a file system to its partition."""
    subprocess.run(["dd", f"if={image}", f"of={disk}", "bs=64k", "conv=notrunc,sparse",
                    "oflag=seek_bytes", f"seek={first * SECTOR}"], check=True,
                   capture_output=True)


def take(disk, first, count, image):
    """Copies a partition to a file; what the disk's file does not contain takes no time."""
    start, end = first * SECTOR, (first + count) * SECTOR
    with open(disk, "rb") as file, open(image, "wb") as out:
        out.truncate(count * SECTOR)
        at = start
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break  # only a hole is left
            hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            while at < min(hole, end):
                data = os.pread(file.fileno(), min(hole, end, at + (1 << 20)) - at, at)
                os.pwrite(out.fileno(), data, at - start)
                at += len(data)
    return str(image)


def writers(folder):
    """A script that writes from three sides, and says "ready", until a write fails; then
    /tmp/gone ends the profile."""
    return f"""\
(cd {folder}; : >open; exec 3>>open; while echo more; do :; done >&3; echo later >later
) 2>/tmp/shell &
profile -o {folder}/perf.data -- sh -c 'until [ -e /tmp/gone ]; do ls /proc >/dev/null; done
' >/tmp/profile 2>&1 &
profile=$!
until [ "$(stat -c %s {folder}/perf.data 2>/dev/null || echo 0)" -gt 2000 ]; do sleep 0.1; done
echo ready >/dev/kmsg
while dd if=/dev/zero of={folder}/zeros bs=32k count=100 2>/tmp/dd; do :; done
"""
