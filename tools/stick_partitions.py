"""The partition table of Strobe's image, and the FAT partition for results that it names:
made with the image (tools/build/stick-partitions), or for one stick (tools/stick)."""
import math
import os
import struct
import subprocess
from dataclasses import dataclass

SECTOR = 512
LABEL = "STROBE"
HEADS, TRACK = 255, 63

# UEFI 2.10, tables 5.1 and 5.2
DISK_ID_AT, TABLE_AT, SIGNATURE = 440, 446, b"\x55\xaa"
ENTRY = struct.Struct("<B3sB3sII")
ACTIVE = 0x80  # some BIOSes do not boot a disk without such a partition
BY_LBA = b"\xfe\xff\xff"
FAT32_LBA, FAT16_LBA, EFI_SYSTEM = 0x0c, 0x0e, 0xef
SECTORS_MAX = 1 << 31  # mformat's (1 TiB)

# Sectors of a cluster, below some sizes of the file system. FAT16 has 4,085 clusters at
# least, FAT32 65,525, besides the tables.
GIB = (1 << 30) // SECTOR
FAT16_BELOW, FAT16_CLUSTER = GIB, 32
FAT32_CLUSTERS = (8 * GIB, 16), (32 * GIB, 32), (SECTORS_MAX + 1, 64)
SECTORS_MIN = (4085 + 16) * FAT16_CLUSTER


@dataclass
class Fat:
    kind: int  # of its partition
    image: str  # a file whose other sectors do not matter
    used: int  # bytes: boot sector, tables, root directory


def make_fat(image, first, sectors, serial):
    """Makes an empty FAT file system that begins at the disk's sector `first`."""
    large = sectors >= FAT16_BELOW
    size = next(size for below, size in FAT32_CLUSTERS if sectors < below) if large \
        else FAT16_CLUSTER
    with open(image, "wb") as file:
        file.truncate(sectors * SECTOR)
    subprocess.run(["mformat", "-i", image, "-T", str(sectors), "-h", str(HEADS),
                    "-s", str(TRACK), "-H", str(first), "-c", str(size), "-v", LABEL,
                    *(["-F"] if large else []), "-N", f"{serial:08x}", "::"], check=True)
    with open(image, "rb") as file:
        boot = file.read(SECTOR)
    reserved, tables, roots = struct.unpack_from("<HBH", boot, 14)
    table_sectors, = struct.unpack_from("<I", boot, 36) if large else \
        struct.unpack_from("<H", boot, 22)
    root = size if large else math.ceil(roots * 32 / SECTOR)
    used = (reserved + tables * table_sectors + root) * SECTOR
    return Fat(FAT32_LBA if large else FAT16_LBA, image, used)


def table(fat, first, sectors, efi):
    """The entries: results come first, as some systems show only the first partition."""
    return ENTRY.pack(ACTIVE, BY_LBA, fat.kind, BY_LBA, first, sectors) + \
        ENTRY.pack(0, BY_LBA, EFI_SYSTEM, BY_LBA, *efi)


def put_table(image, serial, entries):
    """Writes it to the first sector."""
    start = struct.pack("<IH", serial, 0) + entries
    image[DISK_ID_AT:SECTOR] = start.ljust(SECTOR - len(SIGNATURE) - DISK_ID_AT, b"\0") + SIGNATURE


def remove(file):
    if os.path.exists(file):
        os.unlink(file)
