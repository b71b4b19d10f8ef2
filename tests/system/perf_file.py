"""Writes perf.data files (docs/perf-data.md) with any samples, names and sizes,
valid or not."""
import os
import struct

HEADER_SIZE, ATTR_SIZE = 104, 64
SAMPLE_TYPE = 0x101A7
SAMPLE_ID_ALL = 1 << 18
CPU_CLOCK = 1, 0  # type software, config
ID = 1
COMM, SAMPLE, MMAP2, STROBE = 3, 9, 10, 65
USER_MODE = 2
USER_MARK = 2**64 - 512
KERNEL_MARK = 2**64 - 128
UNKNOWN_SIZE = 0xfff8
INFO = 2
FEATURE_COMMAND = 256 + 11
KERNEL, IDLE, IRQ = 1, 2, 4  # SPROFILE_F_... of a sample


def padded(data, to=8):
    return data + b"\0" * (-len(data) % to)


def record(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def trailer(task, time=0):
    return struct.pack("<IIQIIQ", task, task, time, 0, 0, ID)


def addresses(path):
    """The address of each sample of a recording, in their order."""
    with open(path, "rb") as file:
        data = file.read()
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == SAMPLE:
            yield struct.unpack_from("<Q", data, at + 16)[0]
        at += size


class PerfFile:
    def __init__(self):
        self.records = []

    def comm(self, task, name):
        self.records.append(record(COMM, struct.pack("<II", task, task) +
                                   name.ljust(16, b"\0")[:16] + trailer(task)))

    def mapping(self, task, path, start=0, size=0xc0000000):
        body = struct.pack("<IIQQQ", task, task, start, size, 0) + bytes(32)
        self.records.append(record(MMAP2, body + padded(path + b"\0") +
                                   trailer(task), USER_MODE))

    def command(self, *arguments):
        text = struct.pack("<I", len(arguments))
        for argument in arguments:
            bytes_ = padded(argument + b"\0", 4)
            text += struct.pack("<I", len(bytes_)) + bytes_
        self.records.append(record(STROBE, padded(
            b"Strobe\0\0" + struct.pack("<II", FEATURE_COMMAND, len(text)) +
            text)))

    def info(self, source, taken, missed):
        """The beginning of struct sprofile_info, of sampling by time."""
        info = struct.pack("<16s32s6I11Q", source, b"", 1000, 1000, 1, 0, 0, 0, 1000000,
                           taken + missed, taken, 0, taken, 0, 0, 0, 0, 0, missed)
        self.records.append(record(STROBE, padded(
            b"Strobe\0\0" + struct.pack("<II", INFO, len(info)) + info)))

    def sample(self, task, time, user=(), kernel=(), cpu=0, flags=0, period=1000000):
        """Chains are innermost first; times are in ns."""
        chain = []
        if kernel:
            chain += [KERNEL_MARK, *kernel]
        if user:
            chain += [USER_MARK, *user]
        innermost = (kernel or user)[0]
        self.records.append(record(SAMPLE, struct.pack(
            "<QQIIQIIQQ", ID, innermost, task, task, time, cpu, flags, period,
            len(chain)) + struct.pack(f"<{len(chain)}Q", *chain),
            1 if kernel else USER_MODE))

    def write(self, file, passed_over):
        """Adds `passed_over` records of 64 KiB to be skipped, as holes."""
        file.write(self.bytes(passed_over * UNKNOWN_SIZE))
        for _ in range(passed_over):
            file.write(struct.pack("<IHH", STROBE, 0, UNKNOWN_SIZE))
            file.seek(UNKNOWN_SIZE - 8, os.SEEK_CUR)
        file.truncate()

    def bytes(self, more=0):
        """`more`: bytes of records that follow."""
        data = b"".join(self.records)
        at = HEADER_SIZE + 8
        attr = struct.pack("<IIQQQQQIIQ", CPU_CLOCK[0], ATTR_SIZE, CPU_CLOCK[1],
                           1000000, SAMPLE_TYPE, 4, SAMPLE_ID_ALL, 0, 0, 0)
        head = b"PERFILE2" + struct.pack(
            "<QQ QQ QQ QQ QQQQ", HEADER_SIZE, ATTR_SIZE + 16, at,
            ATTR_SIZE + 16, at + ATTR_SIZE + 16, len(data) + more, 0, 0, 0, 0, 0, 0)
        return (head + struct.pack("<Q", ID) + attr +
                struct.pack("<QQ", HEADER_SIZE, 8) + data)
