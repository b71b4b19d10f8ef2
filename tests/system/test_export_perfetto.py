"""strobe export --perfetto: every sample has its time, its thread and the call chain of
the other exports."""
import collections
import subprocess

import pytest

from exports import Measured, read_measured, strobe
from machine import PATIENCE, vm
from perf_file import IDLE, KERNEL, PerfFile
from protobuf import fields

# Fields of TracePacket and InternedData (github.com/google/perfetto).
PROCESS_TREE, TIMESTAMP, SEQUENCE, INTERNED, FLAGS = 2, 8, 10, 12, 13
PERF_SAMPLE = 66
TIMEBASE_COUNT = 6  # of a PerfSample
FUNCTIONS, FRAMES, CALLSTACKS, PATHS, MAPPINGS = 5, 6, 7, 17, 19


class Trace:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        packets = [fields(packet) for packet in fields(self.bytes)[1]]
        assert all(packet[SEQUENCE] == [1] for packet in packets)
        first, second, *self.packets = packets
        assert first[FLAGS] == [1] and second[FLAGS] == [2]
        tree = fields(first[PROCESS_TREE][0])
        self.threads = {}
        for thread in map(fields, tree[2]):
            self.threads[thread[3][0], thread[1][0]] = thread[2][0].decode()
        interned = fields(second[INTERNED][0])

        def strings(field):
            return {s[1][0]: s[2][0].decode()
                    for s in map(fields, interned[field])}
        names, paths = strings(FUNCTIONS), strings(PATHS)
        files = {m[1][0]: paths[m[7][0]]
                 for m in map(fields, interned[MAPPINGS])}
        frames = {f[1][0]: (files[f[3][0]], names[f[2][0]])
                  for f in map(fields, interned[FRAMES])}
        self.stacks = {stack[1][0]: [frames[n] for n in stack[2]]
                       for stack in map(fields, interned[CALLSTACKS])}

    def samples(self):
        """(time, thread, mode, chain, outermost first, weight)"""
        counts = collections.Counter()
        for packet in self.packets:
            sample = fields(packet[PERF_SAMPLE][0])
            cpu, *thread = ((sample[n] or [0])[0] for n in (1, 2, 3))
            count = sample[TIMEBASE_COUNT][0]
            yield (packet[TIMESTAMP][0], tuple(thread), sample[5][0],
                   self.stacks[sample[4][0]], count - counts[cpu])
            counts[cpu] = count


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("perfetto")
    result = vm("sprofile -g --json -o /out/all.data sh -c 'tester 4; sleep 0.1'"
                " >/out/all.json", "--get", str(folder), "--icount", "1", smp=2)
    assert result.status == 0, result
    return read_measured(folder, "all")[0]


def test_chains_and_threads(measured, tmp_path):
    """Chains and threads are those of folded stacks, except for the program's name: a
    track has only the last, a folded stack that of the sample (another before exec)."""
    trace = Trace(measured.export("perfetto", tmp_path / "out"))
    folded = collections.Counter()
    for _, thread, _, chain, weight in trace.samples():
        names = [name.replace(" (inlined)", "_[i]") if "(inlined)" in name
                 else name + "_[k]" * (path == "[kernel]")
                 for path, name in chain if name != "[idle]"]
        folded[thread == (0, 0), tuple(names)] += weight
    wanted = collections.Counter()
    programs = set()
    for line in strobe("export", "--folded", measured.file).stdout.splitlines():
        stack, count = line.rsplit(" ", 1)
        program, *names = stack.split(";")
        wanted[program == "[idle]", tuple(names)] += int(count)
        programs.add(program)
    assert folded == wanted
    assert len(trace.packets) == measured.json["taken"]
    # First threads: others, and the kernel's, have names of their own.
    sampled = {trace.threads[thread] for _, thread, *_ in trace.samples()
               if thread != (0, 0) and thread[0] == thread[1]}
    assert "tester" in sampled and sampled <= programs, (sampled, programs)


def test_times_modes_and_filter(tmp_path):
    made = PerfFile()
    made.comm(7, b"tester")
    made.mapping(7, b"/bin/tester")
    made.sample(7, 1000000, user=(0x8049300, 0x8049100))
    made.sample(7, 2000000, user=(0x8049300,), kernel=(0xc0101000,),
                flags=KERNEL)
    made.sample(0, 3000000, kernel=(0xc0101000,), flags=IDLE, cpu=1)
    (tmp_path / "perf.data").write_bytes(made.bytes())
    file = Measured(tmp_path / "perf.data", {"rows": []})
    trace = Trace(file.export("perfetto", tmp_path / "out"))
    assert [(time, thread, mode, len(chain), weight)
            for time, thread, mode, chain, weight in trace.samples()] == [
        (1000000, (7, 7), 2, 2, 1000000), (2000000, (7, 7), 1, 2, 1000000),
        (3000000, (0, 0), 1, 2, 1000000)]
    assert trace.threads == {(7, 7): "tester"}
    busy = Trace(file.export("perfetto", tmp_path / "out", "--busy"))
    assert len(list(busy.samples())) == 2


def test_protoc_reads_it(measured, tmp_path):
    trace = Trace(measured.export("perfetto", tmp_path / "out"))
    text = subprocess.run(
        ["protoc", "--decode_raw"], input=trace.bytes, check=True,
        capture_output=True, timeout=PATIENCE).stdout.decode()
    assert text.count("\n  66 {") == measured.json["taken"]
