"""gdb's kgmon, sourced by strobe.py: the calls that a hung or panicked kernel has
counted for kgmon -b, as gmon.out.

    (gdb) kgmon gmon.out
    $ gprof build/kernel.elf gmon.out

The arcs are exact. The histogram that kgmon keeps is a program's memory; here are the
samples that it has not read from its rings.
"""
import collections
import struct

import gdb

ARC = struct.Struct("<IIQ")  # struct call_arc
BIN = 4
F_IDLE = 2
SAMPLE_FLAGS, SAMPLE_DEPTH, SAMPLE_PC = 6, 32, 36  # offsets of a sample
SPARE = bytes(12)
MOST = 0xffff  # that a bin of the file can count


def arcs():
    """{(from, to): count} of all CPUs."""
    found = collections.Counter()
    for cpu in cpus():
        calls = kernel(f"cpus[{cpu}]->calls")
        if not calls["all_arcs"]:
            continue
        data = read(int(calls["all_arcs"]), int(calls["arc_mask"]) + ARC.size)
        for start, to, count in ARC.iter_unpack(data):
            if start:
                found[start - slide, to - slide] += count
    return found


def bins():
    """{bin: samples} of the kernel, those of idle CPUs left out."""
    found = collections.Counter()
    for _, session in sessions():
        for cpu in cpus():
            for kind, _, _, record in records(unread(session["cpu"][cpu]["ring"])):
                flags, = struct.unpack_from("<H", record, SAMPLE_FLAGS)
                if kind != SAMPLE or flags & F_IDLE or not record[SAMPLE_DEPTH]:
                    continue
                pc, = struct.unpack_from("<I", record, SAMPLE_PC)
                found[pc // BIN] += 1
    return found


def histogram(counted, rate):
    """The file's records of a histogram: a bin has 16 bits."""
    low = (int(kernel("&text_start")) - slide) // BIN
    count = (int(kernel("&text_end")) - slide) // BIN - low
    done, data = 0, b""
    while not done or any(n > done for n in counted.values()):
        data += struct.pack("<BIIII15sc", 0, low * BIN, (low + count) * BIN, count,
                            rate or 1, b"seconds" if rate else b"samples",
                            b"s" if rate else b" ")
        data += struct.pack(f"<{count}H", *(
            min(max(counted[low + i] - done, 0), MOST) for i in range(count)))
        done += MOST
    return data


class Kgmon(Command):
    """Writes gmon.out for gprof: the calls that kgmon -b has counted.

    kgmon FILE"""

    def run(self, words):
        if len(words) != 1:
            raise gdb.GdbError("kgmon FILE")
        calls = arcs()
        if not calls:
            raise gdb.GdbError("no calls are counted: kgmon -b, or cprofile "
                               "--arcs, begins that in the machine")
        rates = {int(session["rate"]["hz"]) for _, session in sessions()}
        rate = rates.pop() if len(rates) == 1 else 0
        with open(words[0], "wb") as file:
            file.write(b"gmon" + struct.pack("<I", 1) + SPARE)
            file.write(histogram(bins(), rate))
            for (start, to), count in sorted(calls.items()):
                while count:
                    part = min(count, 0xffffffff)
                    file.write(struct.pack("<BIII", 1, start, to, part))
                    count -= part
        print(f"{words[0]}: {sum(calls.values())} calls in {len(calls)} arcs")


Kgmon("kgmon")
