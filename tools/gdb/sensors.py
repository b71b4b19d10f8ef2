"""gdb's sensors, sourced by strobe.py: those of a hung or panicked kernel.

    (gdb) strobe-sensors
    (gdb) strobe-sensor /sensors/sched/latency latency
    $ tools/strobe sensors latency

The file has what the sensor's file would have: also a list's or ring's events that
nobody has read.
"""
import gdb

PAGE = 4096
BASE = 0xc0000000  # KERNEL_BASE: where low frames are mapped
TREE_BITS = 6  # of a page number, for each level of struct pagetree
TYPES = ("", "scalar", "histogram", "list", "ring")


def sensors():
    """All sensors, as struct sensor, in the order of their creation."""
    head = kernel("&'kernel/sensor/sensor_object.c'::sensors")
    type_ = gdb.lookup_type("struct sensor")
    offset = next(f.bitpos // 8 for f in type_.fields() if f.name == "node")
    node = head["next"]
    while node != head:
        yield gdb.Value(int(node) - offset).cast(type_.pointer()).dereference()
        node = node["next"]


def node_of(sensor):
    """Its struct tmpfs_node, which begins with the vnode."""
    return sensor["vnode"].cast(gdb.lookup_type("struct tmpfs_node").pointer())


def sensor_path(sensor):
    """The path of its file; one that was removed has none."""
    names, node = [], node_of(sensor)
    while node and node["entry"]:
        entry = node["entry"].dereference()
        name = entry["name"].address
        names.append(read(int(name), int(entry["len"])).decode(errors="replace"))
        node = entry["dir"]
    return "/sensors/" + "/".join(reversed(names)) if names else "(removed)"


def page(tree, index):
    """The kernel's address of a page of a struct pagetree."""
    at = int(tree["root"])
    branches = gdb.lookup_type("struct pagetree_node").pointer()
    for level in range(int(tree["height"]) - 1, -1, -1):
        slot = index >> TREE_BITS * level & (1 << TREE_BITS) - 1
        at = int(gdb.Value(at).cast(branches)["slot"][slot])
    frame = (at - int(kernel("frames"))) // gdb.lookup_type("struct frame").sizeof
    return frame * PAGE + BASE


def contents(sensor):
    """The bytes of its file."""
    count = int(sensor["bytes"]) // PAGE
    if sensor["kernel"] or sensor["traced"]:
        return read(int(sensor["header"]), count * PAGE)
    tree = node_of(sensor)["file"]
    return b"".join(read(page(tree, i), PAGE) for i in range(count))


def state(sensor):
    """As sysinfo's system.sensors says it."""
    if sensor["kernel"]:
        return "open" if int(sensor["kernel"]["opening"]) else "off"
    if not int(sensor["bytes"]):
        return "new"
    if sensor["traced"]:
        return "closed" if sensor["ended"] else "open"
    return "open" if sensor["owner"] else "closed"


def kind(sensor):
    header = sensor["header"]
    number = int(header["layout"]["type"]) if header else 0
    return TYPES[number] if number < len(TYPES) else "?"


class Sensors(Command):
    """Lists the sensors.

    strobe-sensors"""

    def run(self, words):
        if words:
            raise gdb.GdbError("strobe-sensors takes no arguments")
        for sensor in sensors():
            print(f"{sensor_path(sensor)}: {kind(sensor)}, {state(sensor)}, of task "
                  f"{int(sensor['owner_id'])}, {int(sensor['bytes'])} bytes")


class Sensor(Command):
    """Writes a sensor's contents to a file, which `strobe sensors` prints.

    strobe-sensor PATH FILE"""

    def run(self, words):
        if len(words) != 2:
            raise gdb.GdbError("strobe-sensor PATH FILE")
        path, file = words
        found = [s for s in sensors() if sensor_path(s) == path]
        if not found:
            raise gdb.GdbError(f"there is no sensor {path}: strobe-sensors lists them")
        if not found[-1]["header"]:
            raise gdb.GdbError(f"{path} is {state(found[-1])}: it has no contents")
        data = contents(found[-1])
        with open(file, "wb") as out:
            out.write(data)
        print(f"{file}: {len(data)} bytes of {path}")


Sensors("strobe-sensors")
Sensor("strobe-sensor")
