"""Inlined functions in all views, compared with addr2line for each address that perf
reads in the file, and with a program of known shares."""
import collections
import gzip
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from exports import callgrind, read_measured, run, strobe
from machine import PATIENCE, ROOT, vm
from protobuf import fields, numbers
from shares import by_chance

KERNEL = f"{ROOT}/build/kernel.elf"
INLINED = f"{ROOT}/build/guest/inlined"
LUA = "for i = 1, 3e5 do local s = tostring(i) end"
ELVES = {"/bin/lua": f"{ROOT}/build/lua/lua", "/test/inlined": INLINED,
         "/bin/busybox": f"{ROOT}/build/busybox/busybox",
         "linux-gate.so.1": f"{ROOT}/build/kernel/vdso.so",
         "[kernel.kallsyms]": KERNEL}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inlines")
    result = vm("profile -g --json -o /out/known.data /test/inlined 400"
                " >/out/known.json;"
                "profile --json -o /out/flat.data /test/inlined 400"
                " >/out/flat.json;"
                f"profile -g --json -o /out/lua.data lua -e '{LUA}'"
                " >/out/lua.json;"
                "profile -g --json -o /out/kernel.data dd if=/dev/zero"
                " of=/dev/null bs=1 count=20000 >/out/kernel.json 2>/dev/null;"
                "sprofile --json -o /out/idle.data sleep 0.3 >/out/idle.json",
                "--get", str(folder), "--icount", "1")
    assert result.status == 0, result
    return {name: read_measured(folder, name)[0]
            for name in ("known", "flat", "lua", "kernel", "idle")}


INLINED_MARK = " (inlined)"


def stacks(measured):
    """{(outermost, ..., innermost): samples}"""
    data = json.loads(strobe("export", "--speedscope", measured.file).stdout)
    names = [frame["name"] for frame in data["shared"]["frames"]]
    return collections.Counter(tuple(names[frame] for frame in stack)
                               for profile in data["profiles"]
                               for stack in profile["samples"] if stack)


# --- against perf and addr2line -----------------------------------------------

def code_offset(elf):
    """The difference of address and file offset of an ELF file's code."""
    for line in run("readelf", "-lW", elf).stdout.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and "E" in words[6:-1]:
            return int(words[2], 16) - int(words[1], 16)
    raise AssertionError(elf)


def perf_script(path, folder, *options):
    return subprocess.run(
        ["perf", "--no-pager", "--buildid-dir", f"{folder}/cache", "script",
         "--no-inline", "-i", path, "-F", "ip,sym,dso", *options],
        capture_output=True, text=True, timeout=PATIENCE, check=True,
        env={**os.environ, "HOME": str(folder), "PERF_CONFIG": "/dev/null"}).stdout


MAPPING = re.compile(r"^PERF_RECORD_MMAP2? .*\[0x(\w+)\(0x(\w+)\) @ (\w+) .*\]: "
                     r"\S+ (.*)$", re.M)


def mappings(path, folder):
    """{image: [(first address, size, file offset)]}"""
    found = collections.defaultdict(list)
    text = perf_script(path, folder, "--show-mmap-events")
    for start, size, place, image in MAPPING.findall(text):
        found[image].append((int(start, 16), int(size, 16), int(place, 0)))
    return found


def chains(path, folder):
    """Chains that perf prints: lists of (image, address), innermost first. In an image
    that it cannot open, perf 6.1 prints the file offset, perf 6.12 the address in
    memory."""
    offsets = {image: 0 if elf == KERNEL else code_offset(elf)
               for image, elf in ELVES.items()}
    where = mappings(path, folder)
    for sample in perf_script(path, folder).split("\n\n"):
        chain = []
        for line in sample.split("\n"):
            if not line.strip():
                continue
            address, image = re.match(r"\s*(\w+) .*\((.*)\)$", line).groups()
            address = int(address, 16)
            for start, size, place in where[image]:
                if start <= address < start + size:
                    address += place - start
                    break
            chain.append((image, address + offsets.get(image, 0)))
        if chain:
            yield chain


def frames_at(image, addresses):
    """{address: [(function, whether it is inlined), ...], innermost first}"""
    found = {}
    asked = sorted(addresses)
    done = run("addr2line", "-a", "-f", "-i", "-e", ELVES[image],
               *map(hex, asked))
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            found[int(line, 16)] = lines = []
        else:
            lines.append(line)
    assert sorted(found) == asked
    return {address: [(name, i + 1 < len(lines[::2]))
                      for i, name in enumerate(lines[::2])]
            for address, lines in found.items()}


@pytest.mark.parametrize("name", ("known", "lua", "kernel"))
def test_as_addr2line_has_it(measured, name, tmp_path):
    """Folded stacks are perf's chains with addr2line's functions of each address."""
    wanted = collections.Counter()
    read = list(chains(measured[name].file, tmp_path))
    addresses = collections.defaultdict(set)
    for image, address in (place for chain in read for place in chain):
        addresses[image].add(address)
    frames = {image: frames_at(image, list_)
              for image, list_ in addresses.items() if image in ELVES}
    of_no_file = [(None, False)]  # for an incomplete chain
    inlined = 0
    for chain in read:
        names = [frame for image, address in chain
                 for frame in (frames[image][address] if image in frames
                               else of_no_file)]
        inlined += any(inline for _, inline in names)
        # Functions that are not inlined may have other names (aliases, .part.0).
        wanted[tuple(function if inline else None
                     for function, inline in reversed(names))] += 1
    found = collections.Counter()
    for stack, samples in stacks(measured[name]).items():
        found[tuple(frame.removesuffix(INLINED_MARK) if frame.endswith(INLINED_MARK)
                    else None for frame in stack)] += samples
    assert inlined and found == wanted


def test_perf_expands(measured, tmp_path):
    """perf expands inlined functions alike, if it does (perf 6.1 without libbfd does not
    for chains by frame pointers)."""
    root = tmp_path / "root" / "test"
    root.mkdir(parents=True)
    shutil.copy(INLINED, root / "inlined")
    done = subprocess.run(
        ["perf", "--no-pager", "--buildid-dir", f"{tmp_path}/cache", "script",
         "--inline", "-i", measured["known"].file, "-F", "ip,sym", "--symfs",
         tmp_path / "root", "-k", KERNEL], capture_output=True, text=True,
        timeout=PATIENCE, check=True, env={**os.environ, "HOME": str(tmp_path),
                                           "PERF_CONFIG": "/dev/null"})
    # (perf also marks parts of functions, name.part.0, as inlined.)
    names = ("spin", "three_quarters", "one_quarter")
    theirs = collections.Counter(re.findall(r"^\s*\w+ (\S+) \(inlined\)$",
                                            done.stdout, re.M))
    if not theirs:
        pytest.skip("this perf does not expand such chains")
    ours = collections.Counter()
    for stack, samples in stacks(measured["known"]).items():
        for frame in stack:
            ours[frame] += samples
    assert {name: theirs[name] for name in names} == \
        {name: ours[name + INLINED_MARK] for name in names}


# --- a program with known shares ----------------------------------------------

# Printed if a sample of the kernel is among them.
IMAGE = r"(?: \[/test/inlined\])?"


def rows(text, symbol):
    """(samples, percent) of a function's row."""
    found = re.search(rf"^\s*\S+ +(\d+) +([0-9.]+)%  {symbol}{IMAGE}$", text,
                      re.M)
    assert found, text
    return int(found[1]), float(found[2])


@pytest.mark.parametrize("name", ("known", "flat"))
def test_self_is_the_innermost(measured, name):
    """With and without callers, the loop's samples are in spin, not in work."""
    text = strobe("report", measured[name].file).stdout
    samples, share = rows(text, r"spin \(inlined\)")
    whole = measured[name].of("/test/inlined")
    assert samples >= 0.99 * whole["work"] and share > 95, text
    as_before = strobe("report", "--no-inline", measured[name].file).stdout
    assert rows(as_before, "work")[0] == whole["work"]
    assert "inlined)" not in as_before
    address = strobe("report", "--by", "address", measured[name].file).stdout
    assert re.search(rf"^ *0x804\w+ +\d+ .*  spin \(inlined\){IMAGE}$", address,
                     re.M)
    top = strobe("top", measured[name].file).stdout
    assert re.search(rf"^ *\d+ .*  spin \(inlined\){IMAGE}$", top, re.M), top


def test_idle_is_where_it_waits(measured):
    """Idle samples are in the waiting function, not in one inlined after the wait."""
    idle = measured["idle"]
    row = max(idle.json["rows"], key=lambda row: row["samples"])
    assert row["image"] == "[kernel]" and row["samples"] > 100
    text = strobe("report", "--rows", 0, idle.file).stdout
    shown = re.search(rf"^0xc\w+ +(\d+) .*  {row['symbol']} \[kernel\]$", text,
                      re.M)
    assert shown and int(shown[1]) == row["samples"], text


def test_tree(measured):
    text = strobe("tree", measured["known"].file).stdout
    share = re.search(
        rf"  (?:- )?work{IMAGE}\n" # a sample elsewhere in main makes it a branch
        rf" *([0-9.]+)% +0.00%  +- three_quarters \(inlined\){IMAGE}\n"
        rf".*%  +(?:- )?spin \(inlined\){IMAGE}\n", text)
    assert share, text
    taken = measured["known"].json["taken"]
    assert abs(float(share[1]) / 100 - 0.75) < by_chance(0.75, taken) + 0.01
    inverted = strobe("tree", "--inverted", measured["known"].file).stdout
    assert re.search(rf"spin \(inlined\){IMAGE}\n"
                     rf".*- three_quarters \(inlined\){IMAGE}\n"
                     rf".* work{IMAGE}\n", inverted), inverted


def test_lines_are_of_the_calls(measured):
    """In callgrind's file a call has its own line, and a loop its own."""
    with open(f"{ROOT}/tests/guest/inlined.c") as file:
        source = file.read().splitlines()
    text = strobe("export", "--callgrind", measured["known"].file).stdout
    blocks = dict(re.findall(r"^fn=(.*)\n((?:.+\n)+)", text, re.M))
    calls = {callee: source[int(line) - 1].strip() for callee, line in
             re.findall(r"cfn=(.* \(inlined\))\ncalls=.*\n(\d+)",
                        blocks["work"])}
    assert calls == {"three_quarters (inlined)": "three_quarters();",
                     "one_quarter (inlined)": "one_quarter();"}
    loop = {source[int(line) - 1].strip() for line in
            re.findall(r"^(\d+) [1-9]\d* \d+$", blocks["spin (inlined)"], re.M)}
    assert loop & {"for (uint32_t i = 0; i < turns; i++)",
                   '__asm__ volatile("" : : "r"(i));'}


def test_callgrind_annotate_reads_it(measured, tmp_path):
    out = measured["lua"].export("callgrind", tmp_path / "out")
    own, whole = callgrind(out, "no")
    assert whole == measured["lua"].json["taken"]
    rows_ = collections.Counter()
    for stack, samples in stacks(measured["lua"]).items():
        rows_[stack[-1]] += samples
    wanted = {n: c for n, c in rows_.items() if "inlined" in n}
    assert wanted
    assert {n: c for n, c in own.items() if "inlined" in n} == wanted


def test_pprof_has_lines(measured, tmp_path):
    """A pprof location has a line for each function at it."""
    path = measured["known"].export("pprof", tmp_path / "out.pb.gz")
    with gzip.open(path) as file:
        profile = fields(file.read())
    texts = [text.decode() for text in profile[6]]
    names = {f[1][0]: texts[f[2][0]] for f in map(fields, profile[5])}
    places = {place[1][0]: [names[fields(line)[1][0]] for line in place[4]]
              for place in map(fields, profile[4])}
    leaves = collections.Counter()
    for sample in map(fields, profile[2]):
        leaf = places[numbers(sample[1][0])[0]]
        leaves[tuple(leaf)] += numbers(sample[2][0])[0]
    whole = measured["known"].of("/test/inlined")["work"]
    spins = sum(n for leaf, n in leaves.items() if leaf[0] == "spin")
    assert spins >= 0.99 * whole
    assert {leaf[1:] for leaf in leaves if leaf[0] == "spin"} == {
        ("three_quarters", "work"), ("one_quarter", "work")}
    plain = measured["known"].export("pprof", tmp_path / "plain.pb.gz",
                                     "--no-inline")
    with gzip.open(plain) as file:
        assert all(len(fields(place)[4]) == 1
                   for place in fields(file.read())[4])


def test_pprof_waits_in_the_function(measured, tmp_path):
    path = measured["idle"].export("pprof", tmp_path / "out.pb.gz")
    with gzip.open(path) as file:
        profile = fields(file.read())
    places = {place[1][0]: len(place[4])
              for place in map(fields, profile[4])}
    idle = [numbers(sample[1][0])[0] for sample in map(fields, profile[2])
            if len(numbers(sample[1][0])) == 2]  # and [idle]
    assert idle and {places[place] for place in idle} == {1}


def test_speedscope_and_page(measured):
    data = json.loads(strobe("export", "--speedscope",
                             measured["known"].file).stdout)
    frames = data["shared"]["frames"]
    assert {"name": "spin (inlined)", "file": "/test/inlined"} in frames
    page = strobe("export", "--html", measured["known"].file).stdout
    assert '"spin (inlined)"' in page and "[inlined" not in page


def test_diff(measured):
    file = measured["known"].file
    text = strobe("diff", file, file).stdout
    assert re.search(r"spin \(inlined\) \[/test/inlined\]$", text, re.M), text
    plain = strobe("diff", "--no-inline", file, file).stdout
    assert "inlined)" not in plain and "work [/test/inlined]" in plain


def test_gmon_and_annotate_are_of_code(measured, tmp_path):
    """gmon and annotate count by address, not by inlined function."""
    one = measured["known"]
    one.export("gmon", tmp_path / "out")
    flat = run("gprof", "-b", "-p", INLINED, tmp_path / "out").stdout
    assert re.search(r" work$", flat, re.M) and "spin" not in flat, flat
    text = strobe("annotate", one.file).stdout
    whole = one.of("/test/inlined")["work"]
    assert text.startswith(f"work in {INLINED}: {whole} samples"), text
    inlined = strobe("annotate", "-s", "spin", one.file, status=1)
    assert inlined.stderr.endswith(
        "spin was inlined: its instructions are in other functions, as in "
        "work: --symbol work\n")


# --- where it cannot be had ---------------------------------------------------

@pytest.fixture
def alone(tmp_path):
    """The tool without a build folder, with one ELF file beside it."""
    (tmp_path / "elves").mkdir()
    shutil.copy(f"{ROOT}/build/strobe", tmp_path / "strobe")
    return tmp_path


def test_without_debug_information(measured, alone):
    run("objcopy", "--strip-debug", INLINED, alone / "elves" / "inlined")
    done = run(str(alone / "strobe"), "report", "-d", str(alone / "elves"),
               measured["known"].file)
    whole = measured["known"].of("/test/inlined")["work"]
    assert rows(done.stdout, "work")[0] == whole


@pytest.mark.parametrize("command", (["report"], ["lines"],
                                     ["export", "--pprof"]))
def test_reader_that_ends(measured, command):
    """A reader that ends (`strobe report FILE | head -1`) ends the tool."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([f"{ROOT}/build/strobe", *command,
                           measured["known"].file], stdout=write,
                          stderr=subprocess.PIPE, timeout=PATIENCE)
    os.close(write)
    assert done.returncode == -signal.SIGPIPE and done.stderr == b"", done


def test_without_addr2line(measured, alone):
    """Without addr2line a message is printed, and functions are shown uninlined."""
    done = subprocess.run(
        [f"{ROOT}/build/strobe", "report", measured["known"].file],
        capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PATH": str(alone)})
    assert done.returncode == 0, done
    assert done.stderr == (
        "strobe: addr2line is not installed: it comes with binutils; inlined "
        "functions count as their callers\n")
    assert rows(done.stdout, "work")[0] == \
        measured["known"].of("/test/inlined")["work"]
    needed = subprocess.run(
        [f"{ROOT}/build/strobe", "lines", measured["known"].file],
        capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PATH": str(alone)})
    assert needed.returncode == 1 and "is not installed" in needed.stderr
