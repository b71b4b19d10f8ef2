"""strobe export --firefox: files follow the documented format (firefox.py) and agree
with the other exports and the run."""
import collections
import json
import re
import struct
import subprocess

import pytest

import firefox
from exports import Measured, read_measured, strobe
from machine import ROOT, vm
from perf_file import IDLE, KERNEL, PerfFile, record
from shares import LOOPS

LUA = "for i = 1, 2e5 do local s = tostring(i) end"
EXIT, FORK = 4, 7


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("firefox")
    result = vm("sprofile -g --json -o /out/all.data"
                f" sh -c 'tester 4 & lua -e \"{LUA}\"; wait; sleep 0.1'"
                " >/out/all.json;"
                "sprofile --json -s nmi-hpet,lapic -o /out/two.data tester 4"
                " >/out/two.json; date +%s >/out/date", "--get", str(folder), "--icount", "1",
                smp=2)
    assert result.status == 0, result
    return {"date": int((folder / "date").read_text()),
            **{name: read_measured(folder, name) for name in ("all", "two")}}


@pytest.fixture(scope="module")
def everything(measured):
    return measured["all"][0]


def exported(measured, tmp_path, *options):
    return firefox.read(measured.export("firefox", tmp_path / "out.json",
                                        *options))


def marks(name, lib, depth):
    """The name in folded stacks."""
    if depth > 0:
        return name + "_[i]"
    return name + "_[k]" * (lib == "[kernel]")


@pytest.mark.parametrize("options", ((), ("--no-inline",), ("--busy",)))
def test_stacks(everything, tmp_path, options):
    """Stacks and their time are those of folded stacks; each track is in order of time."""
    profile = exported(everything, tmp_path, *options)
    found = collections.Counter()
    for thread in profile["threads"]:
        idle = thread["pid"] == "idle"
        for stack, ms in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            chain = firefox.chain(profile, thread, stack)
            if idle:
                assert chain[0][2] == "[idle]" and chain[0][1] is None
                chain = chain[1:]
            found[";".join(["[idle]" * idle, *(marks(name, lib, depth) for
                                       _, lib, name, depth in chain)])] += round(1e6 * ms)
    wanted = collections.Counter()
    text = strobe("export", "--folded", *options, everything.file).stdout
    for line in text.splitlines():
        stack, ns = line.rsplit(" ", 1)
        program, _, chain = stack.partition(";")
        idle = "[idle]" * (program == "[idle]")
        wanted[f"{idle};{chain}"] += int(ns)
    assert found == wanted
    idle = 0 if "--busy" in options else everything.json["idle"]
    assert sum(thread["samples"]["length"] for thread in profile["threads"]) == (
        everything.json["taken"] - everything.json["idle"] + idle)


def test_categories(everything, tmp_path):
    profile = exported(everything, tmp_path)
    seen = collections.Counter()
    for thread in profile["threads"]:
        for stack in thread["samples"]["stack"]:
            chain = firefox.chain(profile, thread, stack)
            for category, lib, _, _ in chain:
                if thread["pid"] == "idle":
                    assert category == "Idle"
                elif lib is not None:
                    assert (category == "Kernel") == (lib == "[kernel]")
                    assert category in ("Kernel", "User")
            seen[chain[-1][0]] += 1
    truth = everything.json
    assert seen["Idle"] == truth["idle"]
    assert seen["User"] == truth["user"] and seen["User"] > 0


def rows(text):
    """{(symbol, image): samples} of strobe report."""
    found = collections.Counter()
    for line in text.splitlines():
        row = re.match(r" *(?:0x\w+|-) +(\d+) +[0-9.]+%  (.*) \[(.*)\]$", line)
        if row:
            found[row[2], row[3]] += int(row[1])
    return found


def test_counts_of_report(everything, tmp_path):
    profile = exported(everything, tmp_path)
    found = collections.Counter()
    for thread in profile["threads"]:
        for stack in thread["samples"]["stack"]:
            _, lib, name, depth = firefox.chain(profile, thread, stack)[-1]
            found[name + " (inlined)" * (depth > 0),
                  (lib or "").strip("[]")] += 1
    wanted = rows(strobe("report", "--rows", 0, everything.file).stdout)
    assert sum(wanted.values()) == everything.json["taken"]
    assert found == wanted


def markers(profile, thread):
    names = profile["shared"]["stringArray"]
    table = thread["markers"]
    return [(names[name], data) for name, data in
            zip(table["name"], table["data"])]


def test_markers(everything, tmp_path):
    """Each task has markers of its execs, forks and end."""
    profile = exported(everything, tmp_path)
    by_name = {t["name"]: t for t in profile["threads"]}
    lua, tester = by_name["lua"], by_name["tester"]
    for thread, program in ((lua, "lua"), (tester, "tester")):
        assert markers(profile, thread) == [
            ("exec", {"type": "exec", "program": program}),
            ("exit", {"type": "exit"})]
        began, executed, ended = (thread["registerTime"],
                                  *thread["markers"]["startTime"])
        times = thread["samples"]["time"]
        assert began < executed < ended
        # Samples in the kernel follow, while its memory is released.
        assert began <= times[0]
        assert thread["unregisterTime"] == max(ended, times[-1])
    shells = [thread for thread in profile["threads"]
              if {"child": lua["pid"], "type": "fork"} in
              thread["markers"]["data"]]
    assert len(shells) == 1
    found = markers(profile, shells[0])
    assert ("fork", {"type": "fork", "child": tester["pid"]}) in found
    assert found[0] == ("exec", {"type": "exec", "program": "sh"})


def test_cpu_time(everything, tmp_path):
    """CPU time is the time of the samples; idle CPUs have none."""
    profile = exported(everything, tmp_path)
    busy = 0
    data = json.loads(strobe("export", "--speedscope",
                             everything.file).stdout)
    for other in data["profiles"]:
        if not other["name"].startswith("idle CPU"):
            busy += sum(weight for stack, weight in
                        zip(other["samples"], other["weights"]) if stack)
    ours = 0
    for thread in profile["threads"]:
        delta = thread["samples"]["threadCPUDelta"]
        ours += sum(delta)
        if thread["pid"] == "idle":
            assert set(delta) == {0}
    assert ours == busy > 0


def test_task_filter(everything, tmp_path):
    whole = exported(everything, tmp_path)
    lua = next(t for t in whole["threads"] if t["name"] == "lua")
    alone = exported(everything, tmp_path, "--task", lua["pid"])
    assert [t["name"] for t in alone["threads"]] == ["lua"]
    assert alone["threads"][0]["samples"]["length"] == lua["samples"]["length"]
    assert alone["threads"][0]["markers"] != {}


def test_one_of_several_events(measured, tmp_path):
    """One event of several, without callers: functions only."""
    for m in measured["two"]:
        source = m.json["source"]
        profile = exported(m, tmp_path, "--event", source)
        assert profile["meta"]["stackwalk"] == 0
        found = collections.Counter()
        for thread in profile["threads"]:
            for stack in thread["samples"]["stack"]:
                chain = firefox.chain(profile, thread, stack)
                found[chain[-1][2]] += 1
        for loop in LOOPS:
            assert found[loop] == m.of("/bin/tester")[loop]
    first = strobe("export", "--firefox", measured["two"][0].file)
    assert "--event NAME selects another" in first.stderr


def test_where_it_comes_from(measured, everything, tmp_path):
    """Build IDs, the date, source lines and the header are right."""
    profile = exported(everything, tmp_path)
    elf = f"{ROOT}/build/lua/lua"
    notes = subprocess.run(["readelf", "-n", elf], capture_output=True,
                           text=True, check=True).stdout
    lib = next(lib for lib in profile["libs"] if lib["path"] == "/bin/lua")
    assert lib["codeId"] == re.search(r"Build ID: (\w+)", notes)[1]
    guid = bytes.fromhex(lib["codeId"])[:16]
    assert lib["breakpadId"] == (guid[3::-1] + guid[5:3:-1] + guid[7:5:-1] +
                                 guid[8:]).hex().upper() + "0"
    thread = next(t for t in profile["threads"] if t["name"] == "lua")
    strings = profile["shared"]["stringArray"]
    functions = thread["funcTable"]
    at = functions["name"].index(strings.index("luaV_execute"))
    filename = functions["fileName"][at]
    assert strings[filename].endswith("/lvm.c")
    frames = thread["frameTable"]
    lines = {line for function, line in zip(frames["func"], frames["line"])
             if function == at}
    with open(strings[filename]) as file:
        assert max(lines) <= len(file.readlines())
    symbols = thread["nativeSymbols"]
    for address, symbol in zip(frames["address"], frames["nativeSymbol"]):
        if symbol is not None:
            begin = symbols["address"][symbol]
            assert begin <= address < begin + symbols["functionSize"][symbol]
    begin = profile["meta"]["startTime"] + profile["meta"]["profilingStartTime"]
    assert 0 < measured["date"] - begin / 1000 < 100
    text = json.dumps(profile["meta"]["extra"])
    assert f"{everything.json['taken']} taken" in text


# --- files made by hand -------------------------------------------------------

def task_record(kind, task, parent, time):
    return record(kind, struct.pack("<IIIIQ", task, parent, task, parent, time)
                  + struct.pack("<IIQIIQ", task, task, time, 0, 0, 1))


def made_profile(tmp_path, made, *options):
    (tmp_path / "perf.data").write_bytes(made.bytes())
    file = Measured(tmp_path / "perf.data", {"rows": []})
    return exported(file, tmp_path, *options)


def test_tasks_without_samples(tmp_path):
    """Tasks without samples have a track with markers; names may be any bytes."""
    made = PerfFile()
    made.comm(7, b"a\"\xff\xe2\x80\xae\\")
    made.mapping(7, b"/bin/tester")
    made.records.append(task_record(FORK, 9, 7, 2500000))
    made.records.append(task_record(EXIT, 9, 7, 3500000))
    made.sample(7, 2000000, user=(0x8049300, 0x8049100))
    made.sample(7, 1000000, user=(0x8049300,), kernel=(0xc0101000,),
                flags=KERNEL)
    made.sample(0, 3000000, kernel=(0xc0101000,), flags=IDLE, cpu=1)
    profile = made_profile(tmp_path, made)
    tracks = {t["pid"]: t for t in profile["threads"]}
    assert list(tracks) == ["7", "9", "idle"]
    assert tracks["7"]["samples"]["time"] == [1.0, 2.0]
    assert markers(profile, tracks["7"]) == [
        ("fork", {"type": "fork", "child": "9"})]
    assert tracks["9"]["samples"]["length"] == 0
    assert tracks["9"]["registerTime"] == 2.5
    assert tracks["9"]["unregisterTime"] == 3.5
    assert markers(profile, tracks["9"]) == [("exit", {"type": "exit"})]
    assert tracks["idle"]["name"] == "idle CPU 1"
    assert tracks["7"]["name"] == "a\"????\\"


def test_damaged_records(tmp_path):
    """Records that are too short are skipped, as is a file's cut-off end."""
    made = PerfFile()
    made.comm(7, b"tester")
    made.mapping(7, b"/bin/tester")
    made.sample(7, 1000000, user=(0x8049300,))
    made.records.append(record(FORK, b"\x09\0\0\0"))
    made.records.append(record(EXIT, b""))
    whole = made.bytes()
    (tmp_path / "perf.data").write_bytes(whole[:-3])
    file = Measured(tmp_path / "perf.data", {"rows": []})
    profile = exported(file, tmp_path)
    assert [t["samples"]["length"] for t in profile["threads"]] == [1]


def test_nothing_is_left(everything, tmp_path):
    profile = exported(everything, tmp_path, "--task", 9999)
    assert profile["threads"] == []
