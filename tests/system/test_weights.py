"""A sample that came late stands for several ticks: all reports and exports weigh it alike.
The recording is made by hand, as of a host that stopped the machine now and then."""
import collections
import json
import re

import pytest

import firefox
from exports import Measured, callgrind, run, strobe
from machine import ROOT
from perf_file import KERNEL, PerfFile
from test_export_perfetto import Trace
from test_export_pprof import Pprof
from test_flame import Counted, page_of

TESTER = f"{ROOT}/build/user/tester"
FUNCTIONS = ("burn_a", "burn_b", "burn_c")
CALLS = ("sys_read", "sys_write")
MS = 1000000
# Of a source that can interrupt all code, and of one that cannot: there a late sample in
# the kernel tells of a section with interrupts off.
SOURCES = (b"nmi-hpet", b"lapic")


class Uneven:
    """A recording, and the time of each function by the rule of libprofile/shares.h."""

    def __init__(self, path, source):
        symbols = {name: int(value, 16) for value, _, name in
                   (line.split() for line in run("nm", TESTER).stdout.splitlines()
                    if len(line.split()) == 3)}
        kernel = {line.split()[2]: int(line.split()[0], 16) for line in
                  run("nm", f"{ROOT}/build/kernel.elf").stdout.splitlines()}
        main, made = symbols["main"] + 1, PerfFile()
        made.mapping(7, b"/bin/tester")
        made.mapping(8, b"/bin/tester")
        made.comm(7, b"tester")
        made.comm(8, b"tester")
        times, samples = collections.Counter(), collections.Counter()
        now, draw, count = 0, 1, 0
        for i in range(300):
            draw = draw * 1103515245 + 12345 & 0x7fffffff
            task = 7 if i % 5 else 8
            function = FUNCTIONS[draw // 64 % 3] if task == 7 else "burn_a"
            # Task 8 is late more often. The first sample of all is in time.
            late = i > 0 and draw // 4096 % (8 if task == 7 else 2) == 0
            period = MS * (1 + draw // 256 % 40) if late else MS
            now += period
            count += period // MS
            in_kernel = task == 7 and i % 7 == 0
            where = CALLS[draw // 16384 % 2] if in_kernel else function
            made.sample(task, now, user=(symbols[function] + 1, main),
                        kernel=(kernel[where] + 1,) if in_kernel else (), period=period,
                        flags=KERNEL if in_kernel else 0)
            alone = where if in_kernel and source == b"lapic" else None
            times[task, in_kernel, alone] += period
            samples[task, in_kernel, alone, where] += 1
        made.info(source, 300, count - 300)
        path.write_bytes(made.bytes())
        self.file, self.total, self.made = path, sum(times.values()), made
        self.time, self.samples = collections.Counter(), collections.Counter()
        for group, time in times.items():
            of = {key[3]: n for key, n in samples.items() if key[:3] == group}
            for where, n in of.items():
                self.time[where] += time * n / sum(of.values())
                self.samples[where] += n

    def share(self, where):
        return 100 * self.time[where] / self.total


@pytest.fixture(params=SOURCES, ids=bytes.decode)
def uneven(request, tmp_path):
    return Uneven(tmp_path / "perf.data", request.param)


def shares(times):
    return {name: 100 * times[name] / sum(times.values())
            for name in (*FUNCTIONS, *CALLS)}


def plain(name):
    return name.removesuffix("_[k]")


def of_folded(path):
    found = collections.Counter()
    for line in open(path):
        stack, time = line.rsplit(" ", 1)
        found[plain(stack.split(";")[-1])] += int(time)
    return found


def of_speedscope(path):
    with open(path) as file:
        data = json.load(file)
    names, found = [f["name"] for f in data["shared"]["frames"]], collections.Counter()
    for profile in data["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"]):
            if stack:
                found[names[stack[-1]]] += weight
    return found


def of_pprof(path):
    found = collections.Counter()
    for chain, (_, time), _ in Pprof(path).samples:
        found[chain[0][1]] += time
    return found


def of_firefox(path):
    profile, found = firefox.read(path), collections.Counter()
    for thread in profile["threads"]:
        samples = thread["samples"]
        assert samples["weightType"] == "tracing-ms"
        for stack, weight in zip(samples["stack"], samples["weight"]):
            found[firefox.chain(profile, thread, stack)[-1][2]] += weight
    return found


def of_perfetto(path):
    found = collections.Counter()
    for *_, chain, weight in Trace(path).samples():
        found[chain[-1][1]] += weight
    return found


EXPORTS = {"folded": of_folded, "speedscope": of_speedscope, "pprof": of_pprof,
           "firefox": of_firefox, "perfetto": of_perfetto}


def test_weights_differ(uneven):
    """Shares of time and of samples are far apart."""
    assert uneven.share("burn_a") > 10 + 100 * uneven.samples["burn_a"] / 300


@pytest.mark.parametrize("form", EXPORTS)
def test_exports(uneven, form, tmp_path):
    found = EXPORTS[form](Measured(uneven.file, {"rows": []}).export(form,
                                                                     tmp_path / form))
    for name, share in shares(found).items():
        assert abs(share - uneven.share(name)) < 1e-4, (name, found)


def test_page(uneven, tmp_path):
    counted = Counted(page_of(tmp_path, uneven.made))
    names = counted.data["symbols"]["name"]
    found, samples = collections.Counter(), collections.Counter()
    for bin_ in counted.data["bins"]:
        for node, _, n, time in zip(*[iter(bin_)] * 4):
            name = names[counted.data["nodes"]["symbol"][node]]
            found[name] += time
            samples[name] += n
    assert samples == uneven.samples
    event = counted.data["events"][0]
    assert (event["unit"], event["total"], event["samples"]) == ("ns", uneven.total, 300)
    for name, share in shares(found).items():
        assert abs(share - uneven.share(name)) < 1e-4


def test_callgrind_and_gprof(uneven, tmp_path):
    file = Measured(uneven.file, {"rows": []})
    found, total = callgrind(file.export("callgrind", tmp_path / "calls"), "no",
                             "Nanoseconds")
    gmon = file.export("gmon", tmp_path / "gmon")
    flat = run("gprof", "-b", "-p", TESTER, gmon).stdout
    user = sum(uneven.time[name] for name in FUNCTIONS)
    for name in FUNCTIONS:
        assert abs(100 * found[name] / total - uneven.share(name)) < 1e-4
        percent = re.search(rf"^ *([0-9.]+) .* {name}$", flat, re.M)[1]
        assert abs(float(percent) - 100 * uneven.time[name] / user) < 0.02, flat


@pytest.mark.parametrize("command", ("report", "top", "tree", "diff"))
def test_reports(uneven, command):
    options = ("--min", 0) if command == "tree" else ("--rows", 0)
    files = [uneven.file] * (2 if command == "diff" else 1)
    text = strobe(command, *options, *files).stdout
    numbers = {"report": r" ([0-9.]+)%  {}\b", "top": r"^ *\d+ +([0-9.]+)% .*%  {}\b",
               "tree": r"% +([0-9.]+)%  .*\b{}\b", "diff": r"^ *([0-9.]+) .* {}\b"}
    for name, share in shares(uneven.time).items():
        found = sum(map(float, re.findall(numbers[command].format(name), text, re.M)))
        if command == "diff":  # ms
            found = 100 * found * MS / uneven.total
        assert abs(found - share) < 0.02, (name, share, text)
