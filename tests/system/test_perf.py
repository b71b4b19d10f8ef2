"""The guest's perf.data, read by the real perf: symbols, chains, CPUs, threads,
annotation, differences, build IDs; several events; and truncated files."""
import collections
import functools
import json
import os
import re
import struct
import subprocess

import pytest

from machine import LONG_PATIENCE, PATIENCE, ROOT, batch, vm
from perf_file import SAMPLE
from shares import LOOPS, by_chance

KERNEL = f"{ROOT}/build/kernel.elf"
SYSTEM = """sh -c "tester 20; lua -e 'for i = 1, 30000 do s = i .. 1 end';
ls -lR /bin >/dev/null; dd if=/dev/zero of=/dev/null bs=1 count=20000" """

# The guest's script, run once. Some files are truncated, as by a power failure; one
# file's writer is killed.
SCRIPT = f"""
cd /out
profile -g --json -o one.perf /bin/tester 20 >one.json
profile -g -R --json -o two.perf /bin/tester 4 >two.json
profile --json -o plain.perf /bin/tester 20 >plain.json
sprofile --json -F 2000 -o flat.perf {SYSTEM} >flat.json 2>/dev/null
sprofile -g --json -R -F 2000 -o all.perf {SYSTEM} >all.json 2>/dev/null
size=$(stat -c %s all.perf)
head -c $((size / 2 + 1)) all.perf >half.perf; profile --repair half.perf
head -c $((size - 7)) all.perf >most.perf; profile --repair most.perf
profile --repair all.perf
head -c 150 all.perf >none.perf; profile --repair none.perf
taskset 2 profile -o bound.perf true

profile -o /dev/null true
profile -o /none/file true
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("perf"))
    result = vm(SCRIPT, "--icount", "1", "--get", folder, smp=4,
                timeout=LONG_PATIENCE)
    assert "nothing to repair" in result.errors, result
    assert result.output.count("repaired; ") == 2, result
    assert result.output.count("was whole; ") == 1, result
    assert "-o /dev/null: it must be a file" in result.errors, result
    assert "-o /none/file: No such file or directory" in result.errors, result
    return folder


def perf(out, command, *arguments):
    """Runs perf on the files, with an empty cache."""
    done = subprocess.run(
        ["perf", "--no-pager", "--buildid-dir", f"{out}/cache", command,
         *arguments], capture_output=True, text=True, cwd=out,
        timeout=PATIENCE,
        env={**os.environ, "HOME": out, "PERF_CONFIG": "/dev/null"})
    assert done.returncode == 0, done
    return done.stdout


def symbols(name):
    return ["-i", name, "-k", KERNEL, "--symfs", f"{ROOT}/build/root"]


def report(out, name, fields):
    """The rows of perf's report as tuples; the first value is the samples."""
    text = perf(out, "report", *symbols(name), "--stdio", "--no-children", "-g",
                "none", "-F", "sample," + fields, "-t", ";")
    return [tuple(field.strip() for field in line.split(";"))
            for line in text.splitlines() if line and line[0] != "#"]


def json_of(out, name):
    """The guest's report."""
    with open(f"{out}/{name}.json") as file:
        text = file.read()
    return json.loads(text[text.index("{\n"):])


@functools.lru_cache(maxsize=None)
def aliases(image):
    """{name: one name} for functions that cannot be told apart by their names: those of
    one address, and static functions of one name, such as musl's dummy()."""
    path = KERNEL if image == "[kernel]" else f"{ROOT}/build/root/bin/{image}"
    if not os.path.exists(path):
        return {}
    one = {}  # {name or address: another of the same function}

    def first(key):
        while one.setdefault(key, key) != key:
            key = one[key]
        return key

    text = subprocess.run(["nm", path], capture_output=True, text=True)
    for line in sorted(text.stdout.splitlines()):
        address, _, name = line.rpartition(" ")
        address = address.split(" ")[0]
        one.setdefault(address, first(name))
        one[first(name)] = first(address)
    return {name: first(name) for name in list(one)}


def place(image, symbol):
    image = os.path.basename(image)
    return image, aliases(image).get(symbol, symbol)


def counts(rows):
    """{(image, name): samples}."""
    sums = collections.Counter()
    for samples, image, symbol in rows:
        mode, name = symbol[:3], symbol[4:]
        sums[place("[kernel]" if mode == "[k]" else image, name)] += \
            int(samples)
    return sums


@pytest.mark.parametrize("name", ("one", "all", "plain", "flat"))
def test_functions(out, name):
    """Each function of the kernel and of programs has the samples of the guest's
    table."""
    ours = collections.Counter()
    for row in json_of(out, name)["rows"]:
        if row["samples"] > 0 and row["symbol"] is not None:
            ours[place(row["image"], row["symbol"])] += row["samples"]
    theirs = counts(report(out, f"{name}.perf", "dso,sym"))
    for key, samples in ours.items():
        if key[0] not in ("[vdso]", "[unknown]"):
            assert theirs[key] == samples, (key, ours, theirs)


def test_shares(out):
    rows = counts(report(out, "one.perf", "dso,sym"))
    whole = sum(rows.values())
    assert whole > 100
    for name, share in LOOPS.items():
        assert abs(rows["tester", name] / whole - share) < \
            by_chance(share, whole) + 0.02, rows


def test_call_graph(out):
    """Every sample of tester's loops has main in its chain; those in the kernel have the
    system call."""
    text = perf(out, "script", *symbols("one.perf"), "-F", "comm,ip,sym")
    chains = [block for block in text.split("\n\n") if block.strip()]
    assert len(chains) == json_of(out, "one")["taken"]
    for chain in chains:
        if " burn_a+" in chain or re.search(r" burn_[abc]\n", chain):
            assert re.search(r"\sburn_[abc]\n.*\smain\n", chain), chain
    text = perf(out, "script", *symbols("all.perf"), "--comm", "dd", "-F",
                "ip,sym")
    assert re.search(r"trap_syscall\n(.*\n)*.* main\n", text), text
    text = perf(out, "report", *symbols("one.perf"), "--stdio", "--children",
                "-g", "caller", "-F", "overhead_children,sym")
    # A sample may be in the program's start, before main.
    below_main = sum(bool(re.search(r"\smain$", chain, re.MULTILINE))
                     for chain in chains)
    share = f"{100 * below_main / len(chains):.2f}%"
    assert re.search(rf"{share} +\[\.\] main", text), (share, text)


@pytest.mark.parametrize("name", ("plain", "flat"))
def test_without_callers(out, name):
    """Without -g samples have no chains, as with perf record: one address each
    (test_functions checks it), in 56 bytes."""
    assert "|CALLCHAIN" in perf(out, "evlist", "-v", "-i", "all.perf")
    assert "CALLCHAIN" not in perf(out, "evlist", "-v", "-i", f"{name}.perf")
    taken = json_of(out, name)["taken"] - json_of(out, name)["lost"]
    text = perf(out, "script", *symbols(f"{name}.perf"), "-F", "ip,sym")
    assert len(text.splitlines()) == taken > 100
    dump = perf(out, "report", "-i", f"{name}.perf", "-D")
    assert len(re.findall(r" \[0x38\]: PERF_RECORD_SAMPLE\(", dump)) == taken


def test_cpus_and_threads(out):
    r = json_of(out, "all")
    cpus = report(out, "all.perf", "cpu")
    assert {int(cpu) for _, cpu in cpus} == {0, 1, 2, 3}
    assert sum(int(samples) for samples, _ in cpus) == r["taken"] - r["lost"]
    threads = report(out, "all.perf", "pid")
    idle = sum(int(samples) for samples, tid in threads
               if tid.startswith("0:"))
    # Interrupts during an idle thread count as its own, too.
    assert r["idle"] <= idle <= r["idle"] + r["irq"], threads
    assert any(tid.endswith(":tester") for _, tid in threads), threads


def test_annotate(out):
    text = perf(out, "annotate", *symbols("one.perf"), "--stdio", "-s",
                "burn_a")
    assert "Percent" in text and re.search(r"\d+\.\d\d.*:.*8049", text), text


def test_diff(out):
    text = perf(out, "diff", "one.perf", "two.perf")
    assert re.search(r"\+?-?\d+\.\d\d%\s+tester\s", text), text


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True,
                           text=True, check=True).stdout
    return re.search("Build ID: ([0-9a-f]+)", notes).group(1)


def test_build_ids(out):
    found = dict(reversed(line.split(" ", 1)) for line in perf(
        out, "buildid-list", "-i", "all.perf").splitlines())
    assert found["[kernel.kallsyms]"] == build_id(KERNEL)
    assert found["/bin/tester"] == build_id(f"{ROOT}/build/user/tester")
    assert found["/bin/lua"] == build_id(f"{ROOT}/build/lua/lua")


def test_header(out):
    text = perf(out, "report", "-i", "all.perf", "--header-only")
    assert "hostname : strobe" in text
    assert "arch : i686" in text
    assert "nrcpus online : 4" in text
    # The emulator reports nothing about a clock: no phrase behind the name.
    assert re.search(r"cpudesc : [^;]*\S[^;]*$", text, re.MULTILINE), text
    assert "cmdline : sprofile -g --json -R -F 2000 -o all.perf sh -c" in text
    assert "name = cpu-clock" in text
    # The machine's CPUs, not only those that `profile` may use.
    text = perf(out, "report", "-i", "bound.perf", "--header-only")
    assert "nrcpus online : 4" in text


def test_cut_off(out):
    """A repaired file is valid, and complete up to the cut."""
    whole = counts(report(out, "all.perf", "dso,sym"))
    assert counts(report(out, "most.perf", "dso,sym")) == whole
    half = counts(report(out, "half.perf", "dso,sym"))
    assert 0 < sum(half.values()) < sum(whole.values())
    text = perf(out, "report", "-i", "half.perf", "--header-only")
    assert "hostname : strobe" in text


KILLED = """
cd /out
sprofile -F 4000 -o killed.perf & writer=$!
until [ -s killed.perf ] && [ $(stat -c %s killed.perf) -gt 100000 ]; do
    tester 20
done
kill -9 $writer; wait $writer
cp killed.perf raw.perf; profile --repair killed.perf
"""


def test_killed(tmp_path):
    """The guest's and the host's tool repair the file of a killed writer to the same
    file."""
    out = str(tmp_path)
    result = vm(KILLED, "--get", out)
    assert "repaired; " in result.output, result
    done = subprocess.run([f"{ROOT}/tools/strobe", "repair", f"{out}/raw.perf"],
                          capture_output=True, text=True)
    assert "repaired; " in done.stdout, done
    whole = counts(report(out, "killed.perf", "dso,sym"))
    assert whole["tester", "burn_a"] > 0
    assert counts(report(out, "raw.perf", "dso,sym")) == whole
    with open(f"{out}/raw.perf", "rb") as a, open(f"{out}/killed.perf",
                                                  "rb") as b:
        assert a.read() == b.read()


def test_size(out):
    """A sample has 64 bytes, plus 8 for each function and mark; other records are at most
    a tenth of the file. (QEMU, where CPUs take turns, decides the number of idle
    samples, which are small.)"""
    with open(f"{out}/all.perf", "rb") as file:
        data = file.read()
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    sizes = []
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == SAMPLE:
            functions_and_marks, = struct.unpack_from("<Q", data, at + 56)
            assert size == 64 + 8 * functions_and_marks
            sizes.append(size)
        at += size
    assert len(sizes) == json_of(out, "all")["taken"]
    assert max(sizes) > 2 * min(sizes)  # idle, and deep
    assert len(data) < 1.1 * sum(sizes)


# --- several events -----------------------------------------------------------

EVENTS = """
cd /out
profile --json -s nmi-hpet,lapic -o two.perf /bin/tester 4 >two.json
sprofile --json -s lapic -s nmi-hpet -o sys.perf tester 20 >sys.json 2>/dev/null
profile -s nmi-hpet,lapic /bin/tester 4 >two.txt
profile diff --event lapic two.perf two.perf >diff.txt
"""


@pytest.fixture(scope="module", params=(1, 4))
def events(request, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("events"))
    result = vm(EVENTS, "--icount", "1", "--get", folder, smp=request.param,
                timeout=PATIENCE)
    assert result.status == 0 and result.errors == "", result
    return folder


def reports(out, name, fields):
    """{event: rows of perf's report}."""
    text = perf(out, "report", *symbols(name), "--stdio", "--no-children", "-g",
                "none", "-F", "sample," + fields, "-t", ";")
    rows, event = {}, None
    for line in text.splitlines():
        begins = re.match(r"# Samples: .* of event '(.*)'", line)
        if begins:
            event = rows[begins.group(1)] = []
        elif line and line[0] != "#":
            event.append(tuple(field.strip() for field in line.split(";")))
    return rows


@pytest.mark.parametrize("name, sources", (
    ("two", ("nmi-hpet", "lapic")), ("sys", ("lapic", "nmi-hpet"))))
def test_events(events, name, sources):
    """perf has an event for each source of a run, with the samples of each function from
    the guest's table."""
    ours = json_of(events, name)["events"]
    assert tuple(e["source"] for e in ours) == sources
    theirs = reports(events, f"{name}.perf", "dso,sym")
    assert tuple(theirs) == sources
    script = perf(events, "script", *symbols(f"{name}.perf"), "-F", "event")
    seen = collections.Counter(re.findall(r"^ *([a-z-]+):", script, re.M))
    for e in ours:
        assert e["taken"] > 10 and e["lost"] == 0, e
        assert seen[e["source"]] == e["taken"], seen
        table = counts(theirs[e["source"]])
        assert sum(table.values()) == e["taken"], table
        for row in e["rows"]:
            image = os.path.basename(row["image"])
            if row["symbol"] and row["samples"] and image not in (
                    "[vdso]", "[unknown]"):
                key = place(row["image"], row["symbol"])
                assert table[key] == row["samples"], (key, row, table)


def strobe(events, *arguments):
    done = subprocess.run([f"{ROOT}/tools/strobe", *arguments],
                          capture_output=True, text=True, cwd=events)
    return done.returncode, done.stdout, done.stderr


def test_events_at_home(events):
    """strobe shows each event, or the chosen one, with the numbers of the guest's report;
    formats for one event name it."""
    ours = json_of(events, "two")["events"]
    status, text, _ = strobe(events, "report", "two.perf")
    assert status == 0
    for number, e in enumerate(ours, 1):
        begin = text.index(f"Event:   {e['source']}, {number} of 2")
        assert f"{e['expected']} expected, {e['taken']} taken" in text[begin:]
    _, text, _ = strobe(events, "top", "--event", "lapic", "two.perf")
    assert "Event:   lapic, 2 of 2" in text and "nmi-hpet, 1" not in text
    status, _, errors = strobe(events, "top", "-e", "rtc", "two.perf")
    assert status == 1 and "available: nmi-hpet, lapic" in errors
    for e, options in ((ours[0], ()), (ours[1], ("--event", "lapic"))):
        _, text, errors = strobe(events, "export", "--folded", *options,
                                 "two.perf")
        assert ("using nmi-hpet of" in errors) == (not options), errors
        folded = sum(int(line.rsplit(" ", 1)[1])
                     for line in text.splitlines())
        assert folded == sum(row["period"] for row in e["rows"])


def test_events_printed(events):
    with open(f"{events}/two.txt") as file:
        text = file.read()
    assert re.search(r"Event: +nmi-hpet, 1 of 2\nSource: +nmi-hpet at 1000 Hz",
                     text), text
    assert re.search(r"Event: +lapic, 2 of 2\nSource: +lapic at 1000 Hz", text)
    lines = re.findall(r"^ *0x\w+ +\d+ +[\d.]+% +burn_a$", text, re.M)
    assert len(lines) == 2, text
    with open(f"{events}/diff.txt") as file:
        assert "tester" in file.read()


MANY = ",".join(f"s{i}" for i in range(17))
WRONG = {
    "-s nmi-hpet,": "-s 'nmi-hpet,': a name is missing",
    "-s ,": "-s ',': a name is missing",
    "-s ''": "-s '': a name is missing",
    "-s nmi-hpet,nmi-hpet": "nmi-hpet is given twice",
    "-s lapic -s lapic": "-s 'lapic': lapic is given twice",
    f"-s {MANY}": ": 16 at once at most",
    f"-s lapic,{'x' * 40}": "a name is too long",
    "-s lapic,sundial": "sundial: no such sample source; available:",
    "-s nmi-hpet,nmi-rtc": "nmi-rtc: NMIs are already in use by "
                           "nmi-hpet for this run",
    "-s lapic,clock -e cycles,instructions": "but not both",
    "-e cycles,instructions": "pmc: no performance counters",
    "-s lapic -e cycles,instructions": "lapic counts no events",
}


def test_wrong_events():
    """Invalid requests for several events are reported, and nothing is run."""
    wanted = {f"{tool} {text}": error for text, error in WRONG.items()
              for tool in ("profile", "sprofile")}
    results = batch({name: f"{name} echo it runs" for name in wanted})
    for name, error in wanted.items():
        result = results[name]
        assert result.status in (1, 2), (name, result)
        assert error in result.errors, (name, result)
        assert "it runs" not in result.output, (name, result)
