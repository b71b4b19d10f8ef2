"""Call tracing against the truth: the oracle (docs/exact.md) counts from outside, in the
same run, how often each function's patched entry called a stub, and from where."""
import collections
import re
import struct
import subprocess

import pytest

from machine import ROOT
from oracle import oracle, proof
from test_oracle import QEMU_OF_SEVERAL_CPUS, qemu_version

KERNEL = f"{ROOT}/build/kernel.elf"
SITE = 5  # bytes of the patched call
# Processes, pipes, files, a page cache's faults, sleeps, and timers that interrupt.
WORK = "sh -c 'seq 300 | sort -r | gzip | gunzip >/dev/null; ls -lR /proc/self /bin " \
       ">/dev/null; cp /bin/busybox /tmp/a; rm /tmp/a; sleep 0.02; /bin/false; true'"


# --- what the kernel counted --------------------------------------------------

HEADER = 488  # docs/trace.md
INFO = struct.Struct("<10I5Q2IQ2I")  # struct calls_info
ARC = struct.Struct("<IIQII")
NODE = struct.Struct("<4I6QII")
ROOTS = 3
RECORDS, OVERFLOW, TOO_DEEP, NO_FRAMES = 8, 12, 13, 14


def records(path, layout):
    """(struct calls_info, records) of a file of cprofile -o."""
    data = path.read_bytes()
    info = INFO.unpack_from(data, HEADER - INFO.size)
    assert info[RECORDS] and len(data) == HEADER + info[RECORDS] * layout.size
    return info, list(layout.iter_unpack(data[HEADER:]))


# --- what was executed --------------------------------------------------------

class Executed:
    """An oracle's file: how often each instruction was executed, by path."""

    def __init__(self, path):
        self.site, self.parent, self.root = {}, {}, {}
        self.blocks, self.runs = {}, []
        for line in path.read_text().splitlines():
            word = line.split()
            if word[0] == "root":
                self.root[int(word[1])] = " ".join(word[3:])
            elif word[0] in ("call", "entry", "signal"):
                self.parent[int(word[1])] = int(word[2])
                self.site[int(word[1])] = int(word[3], 16)
            elif word[0] == "block":
                at = int(word[2], 16)
                self.blocks[word[1]] = [at + int(n, 16) for n in word[4].split(",")]
            elif word[0] == "run":
                self.runs.append(word)

    def times(self, address):
        """{path: executions of the instruction}"""
        found = collections.Counter()
        for _, path, block, count, *cuts in self.runs:
            if address not in self.blocks[block]:
                continue
            place = self.blocks[block].index(address)
            ended = [map(int, cut.split(":")) for cut in cuts]
            found[int(path)] += int(count) - sum(
                n for executed, n in ended if executed <= place)
        return found

    def root_of(self, path):
        while path in self.parent:
            path = self.parent[path]
        return path


def symbols(*names):
    """Their addresses."""
    table = subprocess.run(["nm", KERNEL], text=True, capture_output=True,
                           check=True).stdout
    rows = [line.split() for line in table.splitlines()]
    return {int(row[0], 16) for row in rows if row[-1] in names}


def disassembled(stub):
    """[(address, instruction)] of a stub."""
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={stub}",
                           KERNEL], text=True, capture_output=True, check=True).stdout
    found = re.findall(r"^ *([0-9a-f]+):\t(.*)", code, re.MULTILINE)
    return [(int(at, 16), text) for at, text in found]


def calls(executed, stub, jump):
    """The stub's executions: {path: times}, all and those that it counts. It goes on
    behind a jump with this number if the running thread is traced, or ends."""
    code = disassembled(stub)
    decided = [n for n, (_, text) in enumerate(code) if re.match(r"j[ae]e? ", text)][jump]
    arrived = executed.times(code[0][0])
    counted = executed.times(code[decided + 1][0])
    return arrived, counted


def check_choice(executed, arrived, counted):
    """Calls that are not counted are those of cprofile's own thread, and interrupts' on
    top of it. (Its child has the same root until it runs another program.)"""
    owners = collections.Counter()
    for path, times in arrived.items():
        if times != counted.get(path):
            owners[executed.root_of(path)] += times - counted.get(path, 0)
    own = [n for n in owners if executed.root[n] != "interrupt"]
    assert len(own) == 1 and owners[own[0]] > 50, (owners, executed.root)


def true_arcs(executed, counted):
    """{(return address, function): calls}"""
    found = collections.Counter()
    for path, times in counted.items():
        found[executed.site[executed.parent[path]], executed.site[path] - SITE] += times
    return found


def differences(truth, counts):
    return {key: (truth[key], counts[key]) for key in truth.keys() | counts.keys()
            if truth[key] != counts[key]}


# --- what was recorded --------------------------------------------------------

CHUNK_BLOCKS, CHUNK_END = 4, 5  # docs/trace.md
LOST, CALL = 58, 61


def chunks(path):
    """(kind, body) of a file of `trace record`."""
    data = path.read_bytes()
    at = struct.unpack_from("<I", data, 12)[0]
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        yield kind, data[at + 8:at + 8 + size]
        at += 8 + size


def recorded_calls(path):
    """{(return address, function): calls}, and how many records were lost."""
    counts, lost = collections.Counter(), None
    for kind, body in chunks(path):
        if kind == CHUNK_END:
            lost = struct.unpack_from("<Q", body, 16)[0]
        at = 0
        while kind == CHUNK_BLOCKS and at < len(body):
            cpu, size = struct.unpack_from("<II", body, at)
            at += 16
            end = at + size
            while at < end and cpu != 0xffffffff:
                head, *fields = struct.unpack_from("<3I", body + bytes(8), at)
                if head >> 5 & 63 == CALL:
                    counts[fields[1], fields[0] - SITE] += 1
                at += 4 * (head & 31)
            at = end
    return counts, lost


def calls_that_are_recorded(executed):
    """{path: times} of trace_call: all, and those that have a ring. That there is none
    is found at the last `je`."""
    code = disassembled("trace_call")
    place = max(n for n, (_, text) in enumerate(code) if text.startswith("je "))
    arrived = executed.times(code[0][0])
    asked, has_ring = (executed.times(code[n][0]) for n in (place, place + 1))
    return arrived, collections.Counter(
        {at: n - asked[at] + has_ring[at] for at, n in arrived.items()})


# --- tests --------------------------------------------------------------------

CPUS = (1, 2)


def traced(tmp_path_factory, smp, options):
    if smp > 1 and qemu_version() > QEMU_OF_SEVERAL_CPUS:
        pytest.skip("this QEMU's turns are not followed exactly")
    folder = tmp_path_factory.mktemp("traced")
    return traced_by(folder, smp, f"cprofile {options} -n 1 -o /out/traced {WORK} >/dev/null")


def traced_by(folder, smp, command):
    file = oracle(folder, command,
                  "--get", str(folder), smp=smp)
    proof(file)
    return folder / "traced", Executed(file)


@pytest.fixture(scope="module", params=CPUS)
def arcs(request, tmp_path_factory):
    return traced(tmp_path_factory, request.param, "--arcs --entries 16384")


def counts_of_arcs(path):
    info, found = records(path, ARC)
    counts = collections.Counter()
    for site, function, count, _, _ in found:
        counts[site, function] += count
    return info, counts


def test_each_arc_is_counted_as_often_as_it_was_executed(arcs):
    path, executed = arcs
    info, counts = counts_of_arcs(path)
    arrived, counted = calls(executed, "trace_arc", 0)
    truth = true_arcs(executed, counted)
    assert info[OVERFLOW] == 0
    assert len(truth) > 500 and sum(truth.values()) > 20_000
    assert not differences(truth, counts)
    check_choice(executed, arrived, counted)


def test_a_count_that_is_wrong_by_one_is_found(arcs):
    """The check fails for each arc whose count is wrong by one, or that is missing."""
    path, executed = arcs
    _, counts = counts_of_arcs(path)
    _, counted = calls(executed, "trace_arc", 0)
    truth = true_arcs(executed, counted)
    for arc in list(truth)[::100]:
        assert differences(truth, counts - collections.Counter([arc])) == {
            arc: (truth[arc], truth[arc] - 1)}


@pytest.mark.parametrize("smp", CPUS)
def test_calls_that_are_not_in_a_full_table_are_counted(tmp_path_factory, smp):
    """The table is too small: as many calls are missing as the kernel says."""
    path, executed = traced(tmp_path_factory, smp, "--arcs --entries 256")
    info, counts = counts_of_arcs(path)
    _, counted = calls(executed, "trace_arc", 0)
    wrong = differences(true_arcs(executed, counted), counts)
    assert len(wrong) > 100 and info[OVERFLOW] > 1000
    assert sum(right - found for right, found in wrong.values()) == info[OVERFLOW]


@pytest.mark.parametrize("smp", CPUS)
def test_call_paths_have_each_call(tmp_path_factory, smp):
    """The sums over all paths of a function are the calls that were executed. (Before
    it begins, the kernel measures its stubs, on functions of its own.)"""
    path, executed = traced(tmp_path_factory, smp, "--entries 65536")
    info, found = records(path, NODE)
    arrived, counted = calls(executed, "trace_path", 1)
    measured = symbols("callee", "calling_loop")
    counted = {at: n for at, n in counted.items()
               if executed.site[at] - SITE not in measured}
    truth, counts = collections.Counter(), collections.Counter()
    for at, times in counted.items():
        truth[executed.site[at] - SITE] += times
    for function, _, _, _, times, *_ in found:
        if function > ROOTS:
            counts[function] += times
    assert not any(info[n] for n in (OVERFLOW, TOO_DEEP, NO_FRAMES))
    assert len(truth) > 300 and sum(truth.values()) > 20_000
    assert not differences(truth, counts)
    check_choice(executed, {at: n for at, n in arrived.items()
                            if executed.site[at] - SITE not in measured}, counted)


@pytest.mark.parametrize("smp", CPUS)
@pytest.mark.parametrize("kib", (16384, 8))
def test_each_call_is_recorded_or_lost(tmp_path_factory, smp, kib):
    """With room for all each arc has as many records as it was executed; without it,
    none has more, and as many are missing as the kernel says."""
    if smp > 1 and qemu_version() > QEMU_OF_SEVERAL_CPUS:
        pytest.skip("this QEMU's turns are not followed exactly")
    path, executed = traced_by(
        tmp_path_factory.mktemp("recorded"), smp,
        f"trace record -F '*' -b {kib} -o /out/traced {WORK} >/dev/null")
    counts, lost = recorded_calls(path)
    arrived, counted = calls_that_are_recorded(executed)
    truth = true_arcs(executed, counted)
    missing = differences(truth, counts)
    assert len(truth) > 500 and sum(truth.values()) > 20_000
    assert all(right > found for right, found in missing.values())
    if kib > 8:
        assert lost == 0 and not missing
    else:
        # A lost record may be a switch, too.
        gone = sum(right - found for right, found in missing.values())
        assert 1000 < gone <= lost
    check_choice(executed, arrived, counted)
