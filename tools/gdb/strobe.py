"""gdb commands that save the profile data in the memory of a hung or panicked
kernel.

    gdb build/kernel.elf -ex 'target remote :1234'
    (gdb) source tools/gdb/strobe.py
    (gdb) strobe-sessions
    (gdb) strobe-rings hung.stream
    $ build/strobe convert hung.stream -o perf.data

and kgmon (kgmon.py), strobe-sensors and strobe-sensor (sensors.py), strobe-trace
(trace.py).

gdb finds sources from any folder, and its symbols are moved to where the kernel has
moved itself (docs/hardware.md). The commands use the kernel's debugging
information, so the running kernel's file must be loaded (build/kernel.elf or
kernel-test.elf of the same build). They write nothing to the machine and need no code
on it to run. tools/strobe-src/convert.c describes the file format.
"""
import os
import re
import struct

import gdb

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))

PIECE = 64 * 1024  # of a read; each costs a packet, so small ones are slow
WRAP = 1 << 32     # positions in a ring are byte counts modulo this
HEAD = struct.Struct("<HHHHQ")  # struct sprofile_record
SAMPLE, TASK, LOST = 1, 2, 3    # record types
EXECED = 2                      # kind in struct sprofile_task
F_LOAD_BIAS = 1024              # flag in the record's head
TASK_NAME = 16
BUILD_ID_MAX = 20
MAGIC = b"strob2\r\n"
NAME_SIZE = 65  # of uname's fields
NOTE_BUILD_ID = 3


def kernel(expression):
    """The value of a C expression in the kernel."""
    value = gdb.parse_and_eval(expression)
    value.fetch_lazy()
    return value


slide = 0  # by which gdb's symbols are above the addresses in their file


def follow():
    """Moves gdb's symbols to where the kernel is: its interrupt table tells."""
    global slide
    registers = gdb.execute("monitor info registers", to_string=True)
    idt = re.search(r"\bIDT=\s*(\w+)", registers)
    table = int(kernel("(unsigned int)&idt")) - slide
    now = int(idt[1], 16) - table if idt else 0
    now = max(now, 0)  # before it is set
    if now != slide:
        file = gdb.lookup_global_symbol("kernel_main").symtab.objfile.filename
        gdb.execute(f"symbol-file -o {now:#x} {file}", to_string=True)
        slide = now


def read(address, size):
    """Reads memory in large pieces."""
    memory = gdb.selected_inferior()
    return b"".join(
        memory.read_memory(address + at, min(PIECE, size - at)).tobytes()
        for at in range(0, size, PIECE))


def c_string(value):
    """The string of a char pointer or array of the kernel."""
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR and not value:
        return ""
    return value.string(errors="replace")


def counter(value):
    """The value of a struct counter (lib/counter.h). If the machine stopped during
    an overflow (`overflows` is odd), a small `low` has already wrapped."""
    low, seq = int(value["low"]), int(value["overflows"]["value"])
    return ((seq + (seq & 1 and low < 1 << 31)) >> 1) << 32 | low


# --- rings ------------------------------------------------------------------


def unread(ring):
    """The unread bytes of a struct ring."""
    size, head, tail = (int(ring[name]) for name in ("size", "head", "tail"))
    used = (head - tail) % WRAP
    if used > size or size & (size - 1):
        raise gdb.GdbError(f"a ring is damaged: {used} of {size} bytes used")
    if used == 0:
        return b""
    base, at = int(ring["bytes"]), tail & (size - 1)
    first = min(used, size - at)
    return read(base + at, first) + read(base, used - first)


def records(data):
    """Yields a stream's records as (type, cpu, time, bytes)."""
    at = 0
    while at < len(data):
        if len(data) - at < HEAD.size:
            raise gdb.GdbError(f"a ring is damaged {len(data) - at} bytes "
                               "before its end")
        kind, size, cpu, _, time = HEAD.unpack_from(data, at)
        if size < HEAD.size or size % 8 or size > len(data) - at:
            raise gdb.GdbError(f"a ring is damaged: a record of {size} bytes")
        yield kind, cpu, time, data[at:at + size]
        at += size


def sessions():
    """All sessions, as (slot, struct session)."""
    found, session = {}, kernel("sampled")
    while session:
        slot = int(session["stream"]["slot"])
        if slot in found:
            raise gdb.GdbError("the list of sessions is damaged")
        found[slot] = session.dereference()
        session = session["next"]
    return sorted(found.items())


def cpus():
    return range(int(kernel("cpu_count")))


# --- the file ---------------------------------------------------------------


def pack(type_name, **fields):
    """The bytes of a struct of the kernel; other fields are 0."""
    type_ = gdb.lookup_type(f"struct {type_name}")
    data = bytearray(type_.sizeof)
    for field in type_.fields():
        if field.name not in fields:
            continue
        value, size = fields[field.name], field.type.sizeof
        at = field.bitpos // 8
        if isinstance(value, str):
            value = value.encode()[:size - 1]
        else:
            value = (int(value) % (1 << 8 * size)).to_bytes(size, "little")
        data[at:at + len(value)] = value
    return bytes(data)


def totals(session):
    """Sums of the session's per-CPU counts (session_counts in the kernel)."""
    sums = dict.fromkeys(("lost", "irqs_off", "others", "missed", "throttled",
                          "in_sampling", "unreadable"), 0)
    modes = [0] * 4  # enum sample_mode
    for cpu in cpus():
        c = session["cpu"][cpu]
        for name in sums:
            sums[name] += counter(c[name])
        for mode in range(len(modes)):
            modes[mode] += counter(c["taken"][mode])
    sums |= zip(("user", "kernel", "irq", "idle"), modes)
    return sums | {"taken": sum(modes)}


def info(session, elapsed):
    """The session's struct sprofile_info. A stopped machine cannot report the
    expected ticks: `expected` is the sum of those counted. The cost is that of
    the interrupts charged to the session."""
    sums = totals(session)
    stream, source = session["stream"], session["source"]
    rate = session["rate"]
    return pack(
        "sprofile_info", **sums, source=c_string(source["name"]),
        event=c_string(rate["event"]) if source["counts"] else "",
        rate_hz=rate["hz"], period=rate["period"], random=rate["random"],
        asked_hz=session["asked_hz"], cpus=kernel("cpu_count"),
        tasks=stream["live"], tasks_lost=stream["rings"]["events_lost"],
        expected=sum(sums[name] for name in
                     ("taken", "others", "missed", "throttled", "in_sampling")),
        cycles=session["cost"], interrupts=session["interrupts"],
        tsc_hz=tsc_hz(), elapsed_ns=elapsed)


def tsc_hz():
    return int(kernel("'arch/i386/clock/clock.c'::tsc->hz"))


def tasks():
    """All tasks, as struct task."""
    head = kernel("&all_tasks")
    type_ = gdb.lookup_type("struct task")
    offset = next(f.bitpos // 8 for f in type_.fields() if f.name == "all_node")
    node = head["next"]
    while node != head:
        yield gdb.Value(int(node) - offset).cast(type_.pointer()).dereference()
        node = node["next"]


def task_record(task):
    """An exec record for a task's current program, as the kernel writes it."""
    name, path = c_string(task["name"]), c_string(task["path"])
    size = int(task["build_id_size"])
    build_id = bytes(int(task["build_id"][i]) for i in range(size))
    parent = int(task["parent"]["id"]) if task["parent"] else 0
    body = struct.pack(f"<IIHH{BUILD_ID_MAX}s{TASK_NAME}s", int(task["id"]),
                       parent, EXECED, size, build_id, name.encode())
    body += path.encode() + b"\0"
    bias = int(task["load_bias"])
    end = struct.pack("<I", bias) if bias else b""
    body += b"\0" * (-(HEAD.size + len(body) + len(end)) % 8) + end
    return HEAD.pack(TASK, HEAD.size + len(body), 0,
                     F_LOAD_BIAS if bias else 0, 0) + body


def programs(events):
    """Exec records of all tasks, for samples before the first event. Tasks with a
    record in `events` are omitted."""
    recorded = {struct.unpack_from("<I", record, HEAD.size)[0]
            for kind, _, _, record in records(events) if kind == TASK}
    return b"".join(task_record(task) for task in tasks()
                    if int(task["id"]) not in recorded and task["path"])


def elapsed_ns(session, rings):
    """The session's time until the last sample. In a task's session the time since
    the stream's last update counts from the first unread sample."""
    times = [time for ring in rings for kind, _, time, _ in records(ring)
             if kind == SAMPLE]
    stream = session["stream"]
    if not times:
        return int(stream["elapsed_ns"])
    since = min(times)
    if not stream["task"]:
        since = int(session["since"]["targets"]) // int(kernel("cpu_count"))
    return int(stream["elapsed_ns"]) + \
        (max(times) - since) * 10**9 // tsc_hz()


def build_id():
    """The kernel's build ID, from its note (gABI, chapter 5, "Note Section")."""
    note = int(kernel("(unsigned int)&build_id_start"))
    name, size, kind = struct.unpack("<III", read(note, 12))
    if kind != NOTE_BUILD_ID or size > BUILD_ID_MAX:
        return b""
    return read(note + 12 + (name + 3) // 4 * 4, size)


def dump(session, path):
    """Writes the file. Returns {record type: count}."""
    events = unread(session["stream"]["rings"]["events"])
    rings = [unread(session["cpu"][cpu]["ring"]) for cpu in cpus()]
    options = pack("sprofile_options",
                   size=gdb.lookup_type("struct sprofile_options").sizeof,
                   flags=session["flags"], rate_hz=session["asked_hz"],
                   source=c_string(session["source"]["name"]))
    facts = info(session, elapsed_ns(session, rings))
    counts = {SAMPLE: 0, TASK: 0, LOST: 0}
    for ring in (events, *rings):
        for kind, _, _, _ in records(ring):
            counts[kind] = counts.get(kind, 0) + 1
    with open(path, "wb") as file:
        names = (c_string(kernel(f"kernel_{name}")).encode()
                 for name in ("release", "version"))
        file.write(struct.pack(
            f"<8sIII{BUILD_ID_MAX}s{NAME_SIZE}s{NAME_SIZE}s2x", MAGIC,
            len(options), len(facts), len(build_id()), build_id(), *names))
        file.write(options + facts + programs(events))
        file.write(events + b"".join(rings))
    return counts


# --- commands ---------------------------------------------------------------


class Command(gdb.Command):
    """A gdb command; its error messages say what the user can do."""

    def __init__(self, name):
        super().__init__(name, gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, _):
        try:
            follow()
            self.run(gdb.string_to_argv(argument))
        except gdb.MemoryError as error:
            raise gdb.GdbError(f"{error}: has the kernel not begun yet, or is "
                               "gdb's file of another build?")
        except gdb.error as error:
            raise gdb.GdbError(f"{error}: gdb's file must be that of the kernel "
                               "that runs, build/kernel.elf, and its target "
                               "the machine")
        except OSError as error:
            raise gdb.GdbError(str(error))


class Sessions(Command):
    """Lists the profile sessions and their unread samples.

    strobe-sessions"""

    def run(self, words):
        if words:
            raise gdb.GdbError("strobe-sessions takes no arguments")
        found = sessions()
        if not found:
            print("There is no profile session.")
        for slot, session in found:
            self.show(slot, session)

    def show(self, slot, session):
        stream = session["stream"]
        whose = f"task {int(stream['task']['id'])}" if stream["task"] \
            else "the system"
        rate = int(session["rate"]["hz"])
        often = f"at {rate} Hz" if rate else \
            f"every {int(session['rate']['period'])}"
        state = ", paused" if stream["paused"] else \
            ", ended" if stream["ended"] else ""
        print(f"Session {slot}: {whose}, by task {int(stream['owner'])}; "
              f"{c_string(session['source']['name'])} {often}{state}")
        print("  CPU      taken       lost  unread samples      bytes of ring")
        for cpu in cpus():
            c = session["cpu"][cpu]
            data = unread(c["ring"])
            taken = sum(counter(c["taken"][mode]) for mode in range(4))
            samples = sum(kind == SAMPLE for kind, *_ in records(data))
            print(f"{cpu:5} {taken:10} {counter(c['lost']):10} {samples:15} "
                  f"{len(data):10} {int(c['ring']['size']):7}")


class Rings(Command):
    """Writes a profile session's unread records to a file, from which `strobe
    convert` makes a perf.data.

    strobe-rings FILE [SESSION]

    SESSION, a number from strobe-sessions, is needed if there are several."""

    def run(self, words):
        if len(words) not in (1, 2):
            raise gdb.GdbError("strobe-rings FILE [SESSION]")
        found = dict(sessions())
        if not found:
            raise gdb.GdbError("there is no profile session")
        if len(words) == 1 and len(found) > 1:
            raise gdb.GdbError("which session? There are " + ", ".join(
                map(str, found)) + ": strobe-sessions tells what they are")
        slot = words[1] if len(words) == 2 else str(next(iter(found)))
        if slot not in map(str, found):
            raise gdb.GdbError(f"there is no session {slot}")
        counts = dump(found[int(slot)], words[0])
        print(f"{words[0]}: {counts[SAMPLE]} samples, {counts[TASK]} events of "
              f"tasks, {counts[LOST]} notes of lost ones")


gdb.execute(f"directory {ROOT}", to_string=True)
try:
    follow()
except gdb.error:
    pass  # there is no machine yet
Sessions("strobe-sessions")
Rings("strobe-rings")
gdb.execute(f"source {ROOT}/tools/gdb/kgmon.py")
gdb.execute(f"source {ROOT}/tools/gdb/sensors.py")
gdb.execute(f"source {ROOT}/tools/gdb/trace.py")
