"""tools/strobe: shows and converts the machine's recordings on the host; the files are
read by the real tools. Numbers are compared with the guest's reports of the same
run."""
import collections
import json
import os
import re
import shutil
import subprocess

import pytest

from exports import TOOL, callgrind, read_measured, run, strobe
from machine import PATIENCE, ROOT, vm
from perf_file import KERNEL, PerfFile
from shares import LOOPS
from speedscope import speedscope

TESTER = f"{ROOT}/build/user/tester"
LUA = "for i = 1, 3e5 do local s = tostring(i) end"
OVERFLOW = 70_000  # samples, more than fit in 16 bits


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strobe")
    result = vm("profile -g --json -o /out/one.data tester 20 >/out/one.json;"
                "sprofile -g -F 2000 --json -o /out/all.data"
                f" sh -c 'tester 4 & lua -e \"{LUA}\"; wait' >/out/all.json",
                "--get", str(folder), "--icount", "1", smp=2)
    assert result.status == 0, result
    return {name: read_measured(folder, name)[0] for name in ("one", "all")}


@pytest.fixture(scope="module")
def one(measured):
    return measured["one"]


@pytest.fixture(scope="module")
def everything(measured):
    return measured["all"]


# --- tables -------------------------------------------------------------------

def check_header(text, truth):
    samples = (f"{truth['expected']} expected, {truth['taken']} taken, "
               f"{truth['lost']} lost")
    assert samples in text
    assert f"Source:  {truth['source']} at {truth['rate_hz']} Hz" in text
    assert f"{truth['missed']} missed" in text


def table(text, first):
    """The lines after the titles, whose first word is `first`."""
    lines = text.splitlines()
    titles = [i for i, line in enumerate(lines) if line.split()[:1] == [first]]
    return [line for line in lines[titles[0] + 1:] if line]


def test_report(one):
    text = strobe("report", "--rows", 0, one.file).stdout
    check_header(text, one.json)
    rows = {line.split()[3]: int(line.split()[1])
            for line in table(text, "Address") if "[" not in line}
    assert rows == one.of("/bin/tester")


def test_report_error(one):
    """--error: each row's share has its interval."""
    text = strobe("report", "--rows", 0, "--error", one.file).stdout
    rows = re.findall(r" ([\d.]+)% +([\d.]+)-([\d.]+)%  ", text)
    assert rows and all(float(low) <= float(share) <= float(high)
                        for share, low, high in rows), text


def test_report_of_all(everything):
    text = strobe("report", "--rows", 0, "--no-inline",
                  everything.file).stdout
    check_header(text, everything.json)
    rows = collections.Counter()
    for line in table(text, "Address"):
        _, samples, _, name, *image = line.split()
        rows[name, image[0].strip("[]") if image else ""] += int(samples)
    for path, image in (("/bin/tester",) * 2, ("/bin/lua",) * 2,
                        ("[kernel]", "kernel")):
        for symbol, samples in everything.of(path).items():
            if symbol is not None:
                assert rows[symbol, image] == samples, (symbol, text)


@pytest.mark.parametrize("by", ("thread", "cpu", "task", "address", "line"))
def test_report_by(everything, by):
    """Every grouping has the same samples."""
    text = strobe("report", "--rows", 0, "--by", by, everything.file).stdout
    first = "Address" if by == "address" else "Samples"
    samples = sum(int(line.split()[by == "address"])
                  for line in table(text, first))
    assert samples == everything.json["taken"] - everything.json["lost"]


def test_filters(everything):
    def shown(*options):
        text = strobe("report", "--rows", 0, *options, everything.file).stdout
        return sum(int(line.split()[1]) for line in table(text, "Address"))

    truth = everything.json
    assert shown("--busy") == shown() - truth["idle"]
    assert shown("--cpu", 0) + shown("--cpu", 1) == shown()
    for command in ("report", "tree", "top", ("export", "--folded")):
        command = (command,) if isinstance(command, str) else command
        nothing = strobe(*command, "--task", 9999, everything.file)
        assert nothing.stderr.count("no samples match") == 1
    nothing = strobe("annotate", "--task", 9999, everything.file, status=1)
    assert nothing.stderr.count("no samples match") == 1
    assert "no samples match" not in strobe("report", everything.file).stderr


def test_top(one):
    text = strobe("top", "--total", one.file).stdout
    rows = {line.split()[5]: (int(line.split()[0]), int(line.split()[3]))
            for line in table(text, "Self") if "[" not in line}
    for row in one.rows:
        if row.symbol in rows and row.image == "/bin/tester":
            assert rows[row.symbol] == (row.self, row.total)
    assert "burn_a" in rows and "main" in rows


def test_tree(one):
    share = {symbol: 100 * samples / one.json["taken"]
             for symbol, samples in one.of("/bin/tester").items()}
    down = strobe("tree", "--min", 0, one.file).stdout
    up = strobe("tree", "--inverted", "--min", 0, one.file).stdout
    assert re.search(r"^ *[0-9.]+% +[0-9.]+%  +main\n"
                     r" *[0-9.]+% +[0-9.]+%  +- burn_a\n", down, re.M), down
    first = re.search(r"^ *([0-9.]+)% +([0-9.]+)%  - burn_a\n"
                      r" *([0-9.]+)% +[0-9.]+%    main\n", up, re.M)
    assert first, up
    for figure in first.groups():
        assert abs(float(figure) - share["burn_a"]) < 0.006


def test_lines(one):
    """Samples of tester's loops are at their source lines."""
    text = strobe("lines", "--rows", 0, one.file).stdout
    found = collections.Counter()
    with open(f"{ROOT}/user/tester/tester.c") as file:
        source = file.read().splitlines()
    for line in table(text, "Samples"):
        place = re.match(r" *(\d+) .* user/tester/tester.c:(\d+) ", line)
        if place is None:
            continue
        number = int(place[2])
        assert source[number - 1].strip()[:50] in line
        begin = max(i for i in range(number) if "static void" in source[i] or
                    "int main" in source[i])
        found[re.search(r"(\w+)\(", source[begin])[1]] += int(place[1])
    truth = one.of("/bin/tester")
    for function in LOOPS:
        assert found[function] == truth[function], text


@pytest.mark.parametrize("options", ((), ("--source",)))
def test_annotate(one, options):
    text = strobe("annotate", "-s", "burn_b", *options, one.file).stdout
    samples = sum(int(found[1]) for found in re.finditer(
        r"^ *(\d+) +[0-9.]+%  +[0-9a-f]+:\t", text, re.M))
    assert samples == one.of("/bin/tester")["burn_b"], text
    assert ("for (" in text) == bool(options)


def test_programs_by_name(everything):
    """The last part of a path selects a program; threads have its name."""
    by_path = strobe("annotate", "-p", "/bin/lua", everything.file).stdout
    assert strobe("annotate", "-p", "lua", everything.file).stdout == by_path
    text = strobe("report", "--by", "thread", everything.file).stdout
    assert re.search(r"thread \d+ lua$", text, re.M), text
    assert re.search(r"thread \d+ tester$", text, re.M), text


def test_annotate_kernel(everything):
    text = strobe("annotate", "-p", "[kernel]", everything.file).stdout
    name, samples = re.match(r"(\S+) in .*: (\d+) samples", text).groups()
    assert everything.of("[kernel]")[name] == int(samples)
    assert "no instruction begins" not in text


# --- other tools --------------------------------------------------------------

def test_folded(everything, tmp_path):
    leaves, idle = collections.Counter(), 0
    with open(everything.export("folded", tmp_path / "out",
                                "--no-inline")) as file:
        for line in file:
            stack, time = line.rsplit(" ", 1)
            frames = stack.split(";")
            leaves[frames[-1]] += int(time)
            idle += int(time) if frames[0] == "[idle]" else 0
            assert frames[0] != "lua" or frames[1].startswith("_start") or \
                "_[k]" in line, line
    busy = strobe("export", "--folded", "--busy", everything.file).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in busy.splitlines()) + idle == \
        sum(leaves.values()) == sum(row.period for row in everything.rows)
    assert idle > 0
    own = collections.Counter()  # by name, which two programs may share
    for row in everything.rows:
        if row.symbol is not None:
            in_kernel = "_[k]" if row.image == "[kernel]" else ""
            own[row.symbol + in_kernel] += row.period
    for symbol in everything.of("/bin/lua"):
        assert leaves[symbol] == own[symbol], symbol


def test_folded_in_speedscope(one, tmp_path):
    """speedscope reads folded stacks with the same numbers."""
    path = one.export("folded", tmp_path / "stacks.txt")
    shares = speedscope(path, LOOPS, ["stacks.txt"])["stacks.txt"]
    truth = one.of("/bin/tester")
    for function, share in shares.items():
        assert abs(share - 100 * truth[function] / one.json["taken"]) < 0.6


def gprof(elf, gmon):
    """gprof's flat profile: share of time, calls, and seconds."""
    text = run("gprof", "-b", "-p", elf, gmon).stdout
    flat = {}
    for line in text.splitlines():
        fields = line.split()
        if re.match(r" *[0-9.]+ +[0-9.]+ +[0-9.]+ ", line):
            calls = int(fields[3]) if len(fields) > 4 else None
            flat[fields[-1]] = float(fields[0]), calls, float(fields[1])
    return flat


def test_gprof(one, tmp_path):
    gmon = one.export("gmon", tmp_path / "gmon.out")
    truth, calls = one.of("/bin/tester"), one.calls()
    flat, whole = gprof(TESTER, gmon), sum(truth.values())
    for function in LOOPS:
        share = 100 * truth[function] / whole
        assert abs(flat[function][0] - share) < 0.006
    # An arc counts the time of the samples that have it.
    unit = sum(n for _, n, _ in flat.values() if n) / sum(
        calls[function] for function in flat)
    for function in ("main", *LOOPS):
        assert flat[function][1] == pytest.approx(unit * calls[function], rel=0.01)
    graph = run("gprof", "-b", "-q", TESTER, gmon).stdout
    entry = next(part for part in graph.split("-" * 47)
                 if re.search(r"^\[\d+\].* main \[", part, re.M))
    for function in LOOPS:
        count = flat[function][1]
        assert re.search(rf" {count}/{count} +{function} \[", entry), entry


def test_gprof_kernel(everything, tmp_path):
    gmon = everything.export("gmon", tmp_path / "gmon.out", "-p", "[kernel]")
    elf = tmp_path / "kernel"  # without debug information: gprof is slow with it
    run("objcopy", "--strip-debug", f"{ROOT}/build/kernel.elf", elf)
    flat = gprof(elf, gmon)
    truth = everything.time_of("[kernel]")
    name = max(truth, key=truth.get)
    assert abs(flat[name][0] - 100 * truth[name] / sum(truth.values())) < 0.01


def test_gprof_overflow(tmp_path):
    """More seconds of an address than a 16-bit bin can hold are exported."""
    address = int(run("nm", TESTER).stdout.split(" t burn_a\n")[0].split("\n")[-1],
                  16)
    made = PerfFile()
    made.comm(7, b"tester")
    made.mapping(7, b"/bin/tester")
    for time in range(OVERFLOW):
        made.sample(7, time, user=(address,), period=10**9)
    (tmp_path / "perf.data").write_bytes(made.bytes())
    strobe("export", "--gmon", "-o", tmp_path / "gmon.out",
           tmp_path / "perf.data")
    flat = gprof(TESTER, tmp_path / "gmon.out")
    assert flat["burn_a"][0] == 100 and flat["burn_a"][2] == OVERFLOW


def test_gprof_parts_of_functions(tmp_path):
    """Parts of functions keep their samples: gprof ignores names with a '.'."""
    lua = f"{ROOT}/build/lua/lua"
    name, address = next(
        (fields[2], int(fields[0], 16)) for fields in
        map(str.split, run("nm", lua).stdout.splitlines())
        if fields[1:] and ".part." in fields[-1])
    made, gmon = PerfFile(), tmp_path / "gmon.out"
    made.comm(7, b"lua")
    made.mapping(7, b"/bin/lua")
    made.sample(7, 1000000, user=(address + 1,))
    (tmp_path / "perf.data").write_bytes(made.bytes())
    done = strobe("export", "--gmon", "-o", gmon, tmp_path / "perf.data")
    assert f"gprof {gmon}.elf {gmon}" in done.stderr
    assert gprof(f"{gmon}.elf", gmon)[name.replace(".", "_")][0] == 100
    done = subprocess.run([TOOL, "export", "--gmon", tmp_path / "perf.data"],
                          capture_output=True, timeout=PATIENCE)
    assert b"functions with a '.' in their names" in done.stderr, done


def test_gprof_far_apart(tmp_path):
    """Addresses too far apart for gprof, as from a corrupt byte, are refused."""
    nm = run("nm", f"{ROOT}/build/kernel.elf").stdout
    address = {name: int(value, 16) for value, _, name in
               map(str.split, nm.splitlines())}
    made = PerfFile()
    for time, name in enumerate(("trap_syscall", "boot_entry")):
        made.sample(0, time, kernel=(address[name],), flags=KERNEL)
    (tmp_path / "perf.data").write_bytes(made.bytes())
    done = strobe("export", "--gmon", "-p", "[kernel]", tmp_path / "perf.data",
                  status=1)
    assert "too large for gprof" in done.stderr


def test_callgrind(everything, tmp_path):
    out = everything.export("callgrind", tmp_path / "callgrind.out",
                            "--no-inline")
    own, whole = callgrind(out, "no")
    assert whole == everything.json["taken"]
    truth = collections.Counter()
    for row in everything.rows:
        truth[row.symbol] += row.self
    for symbol in everything.of("/bin/lua"):
        assert own[symbol] == truth[symbol], symbol


def test_callgrind_inclusive(one, tmp_path):
    found, _ = callgrind(one.export("callgrind", tmp_path / "out"), "yes")
    calls = one.calls()
    for function in ("main", *LOOPS):
        assert found[function] == calls[function], function


def test_speedscope(one, tmp_path):
    """speedscope imports the file, and its sandwich view has the shares."""
    path = one.export("speedscope", tmp_path / "out.json")
    with open(path) as file:
        profiles = json.load(file)["profiles"]
    assert len(profiles) == 1 and profiles[0]["unit"] == "nanoseconds"
    name = profiles[0]["name"]
    shares = speedscope(path, LOOPS, [name])[name]
    periods = {r["symbol"]: r["period"] for r in one.json["rows"]
               if r["image"] == "/bin/tester"}
    whole = sum(r["period"] for r in one.json["rows"])
    for function, share in shares.items():
        assert abs(share - 100 * periods[function] / whole) < 0.6


def test_speedscope_threads(everything, tmp_path):
    """The file has a profile for each thread and idle CPU, with their whole time."""
    with open(everything.export("speedscope", tmp_path / "out")) as file:
        data = json.load(file)
    frames = [f["name"] for f in data["shared"]["frames"]]
    names = [p["name"] for p in data["profiles"]]
    assert len(set(names)) == len(names)
    assert any(name.startswith("lua (task") for name in names)
    taken = idle = 0
    for p in data["profiles"]:
        assert len(p["samples"]) == len(p["weights"])
        assert sum(p["weights"]) == p["endValue"]
        stacks = [stack for stack in p["samples"] if stack]
        taken += len(stacks)
        if p["name"].startswith("idle CPU"):
            idle += len(stacks)
            assert all(frames[stack[0]] == "[idle]" for stack in stacks)
    assert taken == everything.json["taken"]
    assert idle == everything.json["idle"]


def test_speedscope_has_one_axis_of_time(tmp_path):
    """Profiles begin and pause with their threads; a difference of less than a period is
    no pause."""
    ms = 1000000
    made = PerfFile()
    for task, times in (7, (1, 2, 3.4, 4.4, 9, 10)), (8, (4, 5)):
        made.comm(task, b"tester")
        made.mapping(task, b"/bin/tester")
        for time in times:
            made.sample(task, int(time * ms), user=(0x8049300,))
    (tmp_path / "perf.data").write_bytes(made.bytes())
    text = strobe("export", "--speedscope", tmp_path / "perf.data").stdout
    first, second = json.loads(text)["profiles"]
    assert [len(stack) for stack in first["samples"]] == [1, 1, 1, 1, 0, 1, 1]
    assert first["weights"] == [ms] * 4 + [4 * ms] + [ms] * 2
    assert [len(stack) for stack in second["samples"]] == [0, 1, 1]
    assert second["weights"] == [3 * ms, ms, ms]
    assert (first["endValue"], second["endValue"]) == (10 * ms, 5 * ms)


def test_kallsyms(everything, tmp_path):
    """With the kallsyms file perf diff, which reads no kernel file, names functions."""
    (tmp_path / "symbols").write_text(strobe("kallsyms", everything.file).stdout)
    text = run("perf", "diff", f"--kallsyms={tmp_path}/symbols",
               f"--symfs={ROOT}/build/root", everything.file,
               everything.file).stdout
    named = set(re.findall(r"\[kernel.kallsyms\] +\[k\] (\S+)", text))
    truth = everything.of("[kernel]")
    assert truth and named == set(truth), (named, truth)


def test_folded_text(tmp_path):
    """Any task name gives valid UTF-8, without bidirectional controls."""
    made = PerfFile()
    made.comm(7, b"a;\xff\xe2\x80\xaeb\xc3\xa4")
    made.mapping(7, b"/bin/tester")
    made.sample(7, 1000000, user=(0x8049300,))
    (tmp_path / "perf.data").write_bytes(made.bytes())
    text = strobe("export", "--folded", tmp_path / "perf.data").stdout
    assert text.startswith("a:????b\u00e4;") and text.endswith(" 1000000\n"), text


COMMANDS = (["report"], ["top"], ["tree"], ["lines"], ["repair"],
            ["report", "--by", "task"], ["diff", "{file}"],
            ["diff", "--json", "{file}"],
            *(["export", f"--{form}"] for form in (
                "folded", "speedscope", "html", "firefox", "callgrind")),
            ["export", "--gmon"], ["export", "--folded", "--event", "{name}"],
            ["export", "--gmon", "--program", "{name}"])


@pytest.mark.parametrize("control", (
    "\x1b[31m", "\x85", "\u061c", "\u200e", "\u202e", "\u2066"))
def test_controls_reach_no_terminal(control, tmp_path):
    """Controls in names of tasks, programs, arguments and files are not printed."""
    name = f"a{control}b"
    made = PerfFile()
    made.comm(7, name.encode())
    made.mapping(7, f"/bin/{name}x".encode())
    made.command(name.encode())
    made.sample(7, 1000000, user=(0x8049300, 0x8049100))
    file = tmp_path / f"{name}.data"
    file.write_bytes(made.bytes())
    for command in COMMANDS:
        done = subprocess.run(
            [TOOL, *(word.format(file=file, name=name) for word in command),
             file], capture_output=True, timeout=PATIENCE)
        shown = (done.stdout + done.stderr).decode()
        assert shown and control not in shown, (command, shown)


def test_annotated_source_has_no_controls(one, tmp_path):
    """Source lines from objdump are printed without control characters."""
    objdump = tmp_path / "objdump"
    objdump.write_text("#!/bin/sh\n{ echo '08049000 <f>:'\n"
                       "printf '\\t/* \\342\\200\\256 \\033[31m */\\n'; }\n")
    objdump.chmod(0o755)
    done = subprocess.run(
        [f"{ROOT}/build/strobe", "annotate", "-S", one.file],
        capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert "\t/* ??? ?[31m */\n" in done.stdout, done.stdout


def test_file_of_more_than_a_gigabyte(tmp_path):
    """A file of more than 1 GB is read; its unknown records are skipped."""
    made = PerfFile()
    made.comm(7, b"tester")
    made.mapping(7, b"/bin/tester")
    made.sample(7, 1000000, user=(0x8049300,))
    with open(tmp_path / "perf.data", "wb") as file:
        made.write(file, 17000)
    assert os.path.getsize(tmp_path / "perf.data") > 2**30
    report = strobe("report", tmp_path / "perf.data").stdout
    assert re.search(r" 1 .*100.00%", report), report


# --- files that do not fit ----------------------------------------------------

def build_id(elf):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", elf).stdout)[1]


@pytest.fixture
def alone(tmp_path):
    """The tool without a build folder around it."""
    shutil.copy(f"{ROOT}/build/strobe", tmp_path / "strobe")
    (tmp_path / "elves").mkdir()
    return lambda *arguments, status=0: run(
        tmp_path / "strobe", *map(str, arguments), status=status)


def test_wrong_build(one, alone, tmp_path):
    elf = tmp_path / "elves" / "tester"
    right = build_id(TESTER)
    wrong = right[::-1]
    with open(TESTER, "rb") as file:
        elf.write_bytes(file.read().replace(bytes.fromhex(right),
                                            bytes.fromhex(wrong)))
    done = alone("report", "--dir", elf.parent, one.file)
    assert f"it was build id {right}, and {elf} has {wrong}" in done.stderr
    assert "--dir" in done.stderr
    for symbol in ("main", " a\n"):
        assert symbol not in done.stdout


def test_stripped(one, alone, tmp_path):
    elf = tmp_path / "elves" / "renamed"  # found by its build ID
    run("i686-linux-gnu-strip", "-s", TESTER, "-o", elf)
    done = alone("report", "--dir", elf.parent, one.file)
    assert "/bin/tester: no symbols" in done.stderr


def test_nothing_there(one, alone):
    done = alone("report", one.file)
    assert f"no file with its build id {build_id(TESTER)} is in" in done.stderr


def test_kernel_option(everything):
    done = strobe("report", "-k", TESTER, everything.file)
    kernel = build_id(f"{ROOT}/build/kernel.elf")
    assert f"[kernel]: it was build id {kernel}, and {TESTER} has" in \
        done.stderr
    done = strobe("report", "-k", "/nothing", everything.file)
    assert "cannot read the file of -k" in done.stderr


def test_cut_off(one, tmp_path):
    size = os.path.getsize(one.file)
    cut = tmp_path / "cut.data"
    with open(one.file, "rb") as file:
        cut.write_bytes(file.read(size // 2 + 3))
    text = strobe("report", cut).stdout
    assert "Cut off:" in text and "records are whole" in text
    assert "repaired; " in strobe("repair", cut).stdout
    repaired = strobe("report", cut).stdout
    assert "Cut off:" not in repaired
    assert table(repaired, "Address") == table(text, "Address")
    # The writer's final record is cut off; both tools report this.
    later = re.search(r"Counts: .* (\d+) samples are later", text)
    rows = sum(int(line.split()[1]) for line in table(text, "Address")
               if line.startswith(" ") or line.startswith("0x"))
    assert later and later[0] in repaired
    assert int(later[1]) <= rows
    assert "Counts:" not in strobe("report", one.file).stdout
    assert "was whole; " in strobe("repair", cut).stdout


def test_idle_has_no_task(tmp_path):
    """Names from the guest are valid in every format."""
    made = PerfFile()
    made.comm(7, b'"a;b\nc')
    made.mapping(7, b"/bin/x;y\n(1)")
    made.sample(7, 1, user=(0x8048000, 0x8049000))
    made.sample(0, 2, kernel=(0xc0100000,), flags=KERNEL)
    path = tmp_path / "perf.data"
    path.write_bytes(made.bytes())
    stacks = strobe("export", "--folded", path).stdout.splitlines()
    assert len(stacks) == 2 and stacks[0].count(";") == 2, stacks
    json.loads(strobe("export", "--speedscope", path).stdout)
    out = tmp_path / "out"
    strobe("export", "--callgrind", "-o", out, path)
    assert callgrind(out, "no")[1] == 2


@pytest.mark.parametrize("arguments,status,message", [
    ((), 2, "Usage:"),
    (("--help",), 0, ""),
    (("nothing",), 2, "no such command"),
    (("report",), 2, "no file given"),
    (("report", "a", "b"), 2, "one file at a time"),
    (("report", "/nothing"), 1, "No such file"),
    (("report", "/tmp"), 1, "Is a directory"),
    (("report", TESTER), 1, "not a perf.data file"),
    (("report", "--by", "moon", "x"), 2, "not one of symbol"),
    (("report", "--rows", "-1", "x"), 2, "not a number"),
    (("report", "--cpu", "x", "x"), 2, "not a number"),
    (("tree", "--min", "101", "x"), 2, "not a percentage"),
    (("export", "x"), 2, "no format given"),
    (("export", "--gmon", "--folded", "x"), 2, "one format at a time"),
])
def test_use(arguments, status, message):
    assert message in strobe(*arguments, status=status).stderr


@pytest.mark.parametrize("arguments,message", [
    (("export", "--gmon", "-p", "moon"), "no such program"),
    (("annotate", "-s", "moon"), "no sample is in moon"),
    (("export", "--folded", "-o", "/nothing/x"), "No such file"),
])
def test_use_of_file(one, arguments, message):
    done = strobe(*arguments, one.file, status=1)
    assert message in done.stderr


# --- what a failed command leaves ---------------------------------------------

def test_output_is_replaced_when_it_is_whole(one, tmp_path):
    """A command that fails leaves the file of --output as it was, and none beside it."""
    out, alone = tmp_path / "out", tmp_path / "bin" / "strobe"
    alone.parent.mkdir()
    shutil.copy(f"{ROOT}/build/strobe", alone)  # without a build folder: no page
    out.write_text("kept")
    out.chmod(0o640)
    (tmp_path / "link").symlink_to(out)
    failing = (([alone, "diff", "--html"], [one.file] * 2), ([alone, "export", "--html"],
               [one.file]), ([TOOL, "export", "--gmon", "-p", "moon"], [one.file]))
    for command, files in failing:
        run(*command, "-o", tmp_path / "link", *files, status=1)
        assert out.read_text() == "kept"
    assert {file.name for file in tmp_path.iterdir()} == {"out", "link", "bin"}
    strobe("diff", "--html", "-o", tmp_path / "link", one.file, one.file)
    assert out.read_text().startswith("<!DOCTYPE html>") and out.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link").is_symlink()
    assert "No space left" in strobe("export", "--folded", "-o", "/dev/full", one.file,
                                     status=1).stderr
