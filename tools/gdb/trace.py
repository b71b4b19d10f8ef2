"""gdb's strobe-trace, sourced by strobe.py: what the rings of a trace have in a hung or
panicked kernel, as a file of `trace record`.

    (gdb) strobe-trace trace.out
    $ build/strobe trace report trace.out

Of a flight these are its last events; of another trace those that `trace record` has not
written yet.
"""
import struct

import gdb

TRACE_PAGE = 4096
TRACE_FILE_MAGIC = b"strobtrc"
FILE_VERSION, TRACE_VERSION = 1, 3
POINTS, THREAD, BLOCKS, END, FLIGHT = 1, 3, 4, 5, 6  # kinds of chunks
ENDED = 1
TASKS = 0xffffffff  # the block of tasks
NAME = 16


def targets():
    """The traces' struct trace_target, those that began last first."""
    found, target = [], kernel("'kernel/trace/emit.c'::targets")
    while target:
        if len(found) == 64:
            raise gdb.GdbError("the list of traces is damaged")
        found.append(target.dereference())
        target = target["next"]
    return found


def points():
    """The table of points, from their records' types."""
    names = [field.name.removeprefix("TRACE_")
             for field in gdb.lookup_type("enum trace_number").fields()
             if field.name != "TRACE_POINTS"]
    text = ""
    for name in names:
        fields = gdb.lookup_type(f"struct trace_{name}").fields()
        text += name.replace("_", "/", 1) + "".join(
            f" {field.name}:{field.type.sizeof * 8}" for field in fields) + "\n"
    return text.encode()


def complete(page):
    """The length of the complete records of a page."""
    at = 0
    while at < len(page):
        words = struct.unpack_from("<I", page, at)[0] & 31
        if not words or at + words * 4 > len(page):
            break
        at += words * 4
    return at


def events_of(ring):
    """The records of a ring that are not read yet, in order."""
    shared = ring["shared"]
    data, freed, opened = b"", int(shared["freed"]), int(shared["opened"])
    pages = int(ring["pages"])
    if (opened - freed) % WRAP > pages:
        raise gdb.GdbError("a trace's ring is damaged")
    skip = int(ring["offset"])
    while freed != opened:
        page = read(int(ring["bytes"]) + freed % pages * TRACE_PAGE, TRACE_PAGE)
        data += page[skip:][:complete(page[skip:])]
        freed, skip = (freed + 1) % WRAP, 0
    return data


def session_of(target):
    """The struct trace_session that has it."""
    type_ = gdb.lookup_type("struct trace_session")
    offset = next(f.bitpos // 8 for f in type_.fields() if f.name == "target")
    return gdb.Value(int(target.address) - offset).cast(type_.pointer()).dereference()


def threads():
    """Chunks with the names of all threads: those of their tasks."""
    type_ = gdb.lookup_type("struct thread")
    offset = next(f.bitpos // 8 for f in type_.fields() if f.name == "task_node")
    for task in tasks():
        head = task["threads"].address
        node = head.dereference()["next"]
        while node != head:
            thread = gdb.Value(int(node) - offset).cast(type_.pointer())
            yield chunk(THREAD, struct.pack(
                f"<II{NAME}s", int(thread["tid"]), int(task["id"]),
                c_string(task["name"]).encode()))
            node = node["next"]


def chunk(kind, body):
    return struct.pack("<II", kind, len(body)) + body


def block(cpu, data):
    return struct.pack("<IIQ", cpu, len(data), 0) + data


def head(session):
    target = session["target"]
    body = struct.pack("<IIIIQI", TRACE_VERSION, len(cpus()), int(session["points"]),
                       int(target["only"]["id"]) if target["only"] else 0, tsc_hz(),
                       int(session["event_cycles"]))
    return TRACE_FILE_MAGIC + struct.pack("<II", FILE_VERSION, len(MAGIC) + 8 + len(body)) + body


def write(path, session):
    """Writes the file; returns the number of bytes of events."""
    rings = [session["target"]["cpu"][cpu]["ring"] for cpu in cpus()]
    events = [events_of(ring) for ring in rings]
    names = unread(session["stream"]["rings"]["events"])
    sums = {name: sum(int(ring[name]) for ring in rings)
            for name in ("recorded", "overwritten")}
    sums |= {name: sum(int(ring["shared"][name]) for ring in rings)
             for name in ("lost", "throttled")}
    flight = int(session["flight_ms"])
    with open(path, "wb") as file:
        file.write(head(session) + chunk(POINTS, points()) + b"".join(threads()))
        if flight:
            file.write(chunk(FLIGHT, struct.pack("<IQQ", flight, sums["overwritten"], 0)))
        file.write(chunk(BLOCKS, block(TASKS, names) + b"".join(
            block(cpu, data) for cpu, data in enumerate(events))))
        file.write(chunk(END, struct.pack("<IIQQQ", ENDED, 0, sums["recorded"],
                                          sums["lost"], sums["throttled"])))
    return sum(map(len, events))


class Trace(Command):
    """Writes the events in the rings of a trace to a file, for `strobe trace`.

    strobe-trace FILE

    Of a flight they are its last ones; of several traces that which began last."""

    def run(self, words):
        if len(words) != 1:
            raise gdb.GdbError("strobe-trace FILE")
        found = targets()
        if not found:
            raise gdb.GdbError("there is no trace: trace record, or trace record "
                               "--flight, begins one in the machine")
        session = session_of(found[0])
        size = write(words[0], session)
        what = f"a flight of {int(session['flight_ms']) / 1000:g} s" \
            if session["flight_ms"] else "a trace"
        print(f"{words[0]}: {size} bytes of events of {what}, by task "
              f"{int(session['stream']['owner'])}")


Trace("strobe-trace")
