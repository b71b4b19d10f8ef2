"""strobe trace --chrome, --perfetto, --ctf and --trace-dat: babeltrace2, trace-cmd, json,
speedscope and protoc read what they write, and count what `trace summary` counts."""
import ast
import collections
import json
import re
import subprocess

import pytest

from exports import speedscope
from machine import ROOT, batch
from test_trace import BUSY

STROBE = f"{ROOT}/build/strobe"
# On one CPU the reader runs between: events are lost where others follow.
RECORDINGS = {
    "whole": (2, f"trace record -o /out/whole {BUSY}"),
    "lossy": (1, "trace record -b 8 -o /out/lossy dd if=/dev/zero of=/dev/null bs=1 count=3000"),
    "shared": (1, f"trace record -o /out/shared {BUSY}"),
    "own": (1, "trace record -1 -o /out/own sh -c 'true | cat'"),
}
# Sensors of a program and the kernel; of a list 44 events are lost.
SENSED = {"sensed": (2, "trace record -s verner,mm/free,sched/switch.? -o /out/sensed"
                        " /test/sensor_decoder 300")}
SLICES = ("sched/switch", "irq/enter", "irq/exit", "irq/return", "syscall/enter",
          "syscall/exit", "page/fault", "page/fault_end", "LOST")
# What of Perfetto's messages is used (trace_perfetto.c says where they are published).
SCHEMA = """syntax = "proto2";
message Trace { repeated Packet packet = 1; }
message Packet {
  optional Bundle ftrace = 1; optional uint64 timestamp = 8; optional uint32 sequence = 10;
  optional Event event = 11; optional Interned interned = 12; optional uint32 flags = 13;
  optional Track track = 60; optional bool first = 87; }
message Bundle { optional uint32 cpu = 1; repeated Ftrace event = 2; }
message Ftrace {
  optional uint64 timestamp = 1; optional uint32 pid = 2;
  optional Switch switch = 4; optional Waking waking = 20; }
message Switch {
  optional string prev_comm = 1; optional int32 prev_pid = 2; optional int64 prev_state = 4;
  optional string next_comm = 5; optional int32 next_pid = 6; }
message Waking {
  optional string comm = 1; optional int32 pid = 2; optional int32 success = 4;
  optional int32 target_cpu = 5; }
message Event {
  repeated Annotation annotation = 4; optional int32 type = 9; optional uint64 name_iid = 10;
  optional uint64 track = 11; optional string name = 23; optional int64 counter = 30; }
message Annotation {
  optional uint64 name_iid = 1; optional uint64 uint = 3; optional int64 int = 4;
  optional string text = 6; optional uint64 pointer = 7; }
message Interned { repeated Name event_name = 2; repeated Name annotation_name = 3; }
message Name { optional uint64 iid = 1; optional string name = 2; }
message Track {
  optional uint64 uuid = 1; optional string name = 2; optional Process process = 3;
  optional Thread thread = 4; optional uint64 parent = 5; optional Counter counter = 8; }
message Process { optional int32 pid = 1; optional string name = 6; }
message Thread { optional int32 pid = 1; optional int32 tid = 2; optional string name = 5; }
message Counter { optional int32 unit = 3; }
"""
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # types of Perfetto's events
THREADS, CPUS, RUNS, SENSOR = 1, 3, 6, 8  # kinds of tracks


def strobe(*arguments, **more):
    return subprocess.run([STROBE, "trace", *arguments], capture_output=True, text=True, **more)


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Of each recording: its path, its summary, its JSON, and the directory of its streams."""
    out = tmp_path_factory.mktemp("traces")
    for smp in (1, 2):
        scripts = {name: script for name, (cpus, script) in (RECORDINGS | SENSED).items()
                   if cpus == smp}
        for result in batch(scripts, "--icount", "3", "--get", str(out), smp=smp).values():
            assert result.status == 0, result
    files = {}
    for name in RECORDINGS | SENSED:
        path = out / name
        strobe("--chrome", "-o", out / f"{name}.json", path, check=True)
        strobe("--ctf", out / f"{name}.ctf", path, check=True)
        strobe("--perfetto", "-o", out / f"{name}.perfetto", path, check=True)
        with open(out / f"{name}.json") as file:
            files[name] = (path, strobe("summary", path, check=True).stdout,
                           json.load(file), out / f"{name}.ctf")
    return files


def counts(summary):
    """The table of events."""
    table = summary.split("\nEvent ", 1)[1].split("\n\n")[0].splitlines()[1:]
    return {line.split()[0]: int(line.split()[1]) for line in table}


def rows(summary, title):
    table = summary.split(f"\n{title} ", 1)[1].split("\n\n")[0].splitlines()[1:]
    return {line.split()[0]: [float(n) for n in re.findall(r" ([\d.]+)(?= |$)", line)]
            for line in table if not line.startswith("Calls that")}


def lost_of(summary):
    """Told where they are missing, and in all."""
    missing = re.search(r"MISSING: (\d+) events.*: (\d+) where it says LOST", summary)
    return (int(missing[2]), int(missing[1])) if missing else (0, 0)


@pytest.mark.parametrize("name", RECORDINGS)
def test_babeltrace_counts_the_same(traces, name):
    _, summary, _, directory = traces[name]
    run = subprocess.run(["babeltrace2", "--clock-cycles", "--no-delta", directory],
                         check=True, capture_output=True, text=True)
    lines = re.findall(r"^\[(\d+)\] (\S+): \{ cpu_id = \d+ \}, \{ thread = \d+, name = \".*\" \}, "
                       r"\{ .* \}$", run.stdout, re.MULTILINE)
    assert len(lines) == len(run.stdout.splitlines())
    expected = counts(summary)
    expected.pop("LOST", None)
    assert collections.Counter(event for _, event in lines) == expected
    assert [int(at) for at, _ in lines] == sorted(int(at) for at, _ in lines)
    told = sum(int(n) for n in re.findall(r"discarded (\d+) event", run.stderr))
    assert told == lost_of(summary)[0]
    metadata = (directory / "metadata").read_text()
    rest = int(re.search(r"lost_after_the_last_events = (\d+)", metadata)[1])
    assert told + rest == lost_of(summary)[1]


def test_events_are_lost_and_told(traces):
    assert lost_of(traces["lossy"][1])[0] > 100
    assert lost_of(traces["whole"][1]) == (0, 0)


LINUX_NAMES = {"sched/switch": "sched_switch", "sched/wake": "sched_wakeup",
               "syscall/enter": "sys_enter", "syscall/exit": "sys_exit",
               "irq/enter": "irq_handler_entry", "irq/exit": "irq_handler_exit"}


def trace_cmd(path, *arguments):
    run = subprocess.run(["trace-cmd", "report", *arguments, path], check=True,
                         capture_output=True, text=True)
    assert run.stderr == ""
    return run.stdout


@pytest.mark.parametrize("name", RECORDINGS)
def test_trace_cmd_counts_the_same(traces, tmp_path, name):
    path, summary, _, _ = traces[name]
    out = tmp_path / "trace.dat"
    strobe("--trace-dat", "-o", out, path, check=True)
    report = trace_cmd(out, "-t")
    lines = re.findall(r"^ *(\S+)-(\d+) +\[\d+\].*? (\d+\.\d{9}): (\w+): +(.*)$", report,
                       re.MULTILINE)
    expected = collections.Counter()
    for event, n in counts(summary).items():
        expected[LINUX_NAMES.get(event, event.replace("/", "_"))] = n
    expected.pop("LOST", None)
    seen = collections.Counter(line[3] for line in lines)
    seen["page_fault"] = seen.pop("page_fault_user", 0) + seen.pop("page_fault_kernel", 0)
    assert +seen == +expected
    times = [int(line[2].replace(".", "")) for line in lines]
    assert times == sorted(times)
    dropped = [int(n) for n in re.findall(r"\[(\d+) EVENTS DROPPED\]", report)]
    assert sum(dropped) == lost_of(summary)[0]
    rest = re.search(r"of any CPU: (\d+)", trace_cmd(out, "--stat"))
    assert sum(dropped) + int(rest[1]) == lost_of(summary)[1]


def test_trace_cmd_knows_threads_and_calls(traces, tmp_path):
    out = tmp_path / "trace.dat"
    strobe("--trace-dat", "-o", out, traces["whole"][0], check=True)
    report = trace_cmd(out)
    # Linux's plugin of the event writes it, then its print format.
    assert re.search(r" sched_switch: +swapper/\d:0 \[0\] R ==> \w+:[1-9]\d* \[0\]$", report,
                     re.MULTILINE)
    raw = trace_cmd(out, "-N")
    switch = re.search(r" sched_switch: +prev_comm=(\S+) prev_pid=(\d+) prev_state=(\w) ==> "
                       r"next_comm=(\S+) next_pid=(\d+)$", raw, re.MULTILINE)
    assert switch[1].startswith("swapper/") == (switch[2] == "0")
    assert switch[4].startswith("swapper/") == (switch[5] == "0")
    assert re.search(r" sys_enter: +NR 4 \(write\)$", raw, re.MULTILINE)


def events_of(trace, phase, process=None):
    return [e for e in trace["traceEvents"]
            if e["ph"] == phase and (process is None or e["pid"] == process)]


@pytest.mark.parametrize("name", RECORDINGS)
def test_chrome_has_each_event(traces, name):
    _, summary, trace, _ = traces[name]
    expected = {event: n for event, n in counts(summary).items() if event not in SLICES}
    assert collections.Counter(e["name"] for e in events_of(trace, "i")) == expected
    whole = collections.Counter(e["name"] for e in events_of(trace, "X", 3)
                                if "result" in e["args"])
    assert whole.pop("page fault") == int(rows(summary, "Page fault")["all"][0])
    calls = {call: int(n[0]) for call, n in rows(summary, "System call").items()}
    assert whole == calls
    handlers = collections.Counter(e["name"] for e in events_of(trace, "X", 1)
                                   if e["name"].startswith("interrupt "))
    assert handlers == {f"interrupt {vector}": int(n[0])
                        for vector, n in rows(summary, "Interrupt").items()}
    lost = [e["args"]["lost"] for e in events_of(trace, "C")]
    assert lost == sorted(lost) and (lost or [0])[-1] == lost_of(summary)[1]


def test_slices_are_the_times_of_the_summary(traces):
    _, summary, trace, _ = traces["whole"]
    names = {e["tid"]: e["args"]["name"] for e in events_of(trace, "M", 2)}
    sums = collections.Counter()
    for e in events_of(trace, "X", 2):
        sums[names[e["tid"]], e["name"]] += e["dur"]
    threads = rows(summary, "Thread")
    assert len(threads) > 8
    for thread, (_, running, interrupted, ready, blocked) in threads.items():
        # The first piece may have begun before the first event; times are rounded.
        for state, expected in (("running", running + interrupted), ("ready", ready),
                                ("blocked", blocked)):
            assert abs(sums[thread, state] - expected) < 3, (thread, state)
    cpus = collections.Counter()
    for e in events_of(trace, "X", 1):
        if not e["name"].startswith("interrupt "):
            cpus[e["tid"] - 0x40000000] += e["dur"]
    for cpu, numbers in rows(summary, "CPU").items():
        assert cpus[int(cpu)] >= numbers[0] - 1  # and interrupts of threads


@pytest.mark.parametrize("name", RECORDINGS)
def test_slices_of_a_track_nest(traces, name):
    tracks = collections.defaultdict(list)
    for e in events_of(traces[name][2], "X"):
        begin = round(e["ts"] * 1000)
        tracks[e["pid"], e["tid"]].append((begin, -round(e["dur"] * 1000), e["name"]))
    assert tracks
    for slices in tracks.values():
        ends = []
        for begin, duration, what in sorted(slices):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or begin - duration <= ends[-1], what
            ends.append(begin - duration)


def test_speedscope_shows_the_threads_of_a_cpu(traces):
    path, _, trace, _ = traces["shared"]
    ran = collections.Counter()
    for e in events_of(trace, "X", 1):
        ran[e["name"].split()[0]] += e["dur"]
    handlers = ran.pop("interrupt")
    busiest = [name for name, _ in ran.most_common(3)]
    shares = speedscope(f"{path}.json", busiest, ["CPU 0 (tid"])["CPU 0 (tid"]
    # Handlers run within threads; of 10 % or more speedscope shows whole numbers.
    for name in busiest:
        share = 100 * ran[name] / ran.total()
        assert abs(shares[name] - share) <= 1 + 100 * handlers / ran.total(), name


def test_one_task_shows_only_what_is_known(traces):
    trace = traces["own"][2]
    assert {e["name"] for e in events_of(trace, "X", 2)} == {"running"}
    assert all(e["name"].startswith("interrupt ") for e in events_of(trace, "X", 1))


def protoc(path, *arguments):
    with open(path, "rb") as file:
        return subprocess.run(["protoc", *arguments], stdin=file, check=True,
                              capture_output=True, text=True).stdout


def messages(text):
    """protoc's text: of each message a dictionary of the values of its fields."""
    stack = [collections.defaultdict(list)]
    for line in text.splitlines():
        name, _, value = line.strip().partition(": ")
        if name.endswith(" {"):
            stack.append(collections.defaultdict(list))
            stack[-2][name[:-2]].append(stack[-1])
        elif name == "}":
            stack.pop()
        else:
            assert not name.isdigit(), "a field that is not in the schema"
            stack[-1][name].append(value == "true" or ast.literal_eval(value))
    return stack[0]


class Perfetto:
    """Its events (type, ns, kind of track, thread or CPU, name, annotations or value), its
    switches and wakes (ns, CPU, fields), and the threads' names."""

    def __init__(self, path, directory):
        (directory / "schema.proto").write_text(SCHEMA)
        self.packets = messages(protoc(path, f"-I{directory}", "--decode=Trace",
                                       directory / "schema.proto"))["packet"]
        self.events, self.switches, self.wakes, self.threads = [], [], [], {}
        names, annotations = {}, {}
        for packet in self.packets:
            for interned in packet["interned"]:
                names.update((n["iid"][0], n["name"][0]) for n in interned["event_name"])
                annotations.update((n["iid"][0], n["name"][0])
                                   for n in interned["annotation_name"])
            for track in packet["track"]:
                for thread in track["thread"]:
                    self.threads[thread["tid"][0]] = (thread["name"] or ["?"])[0]
            for bundle in packet["ftrace"]:
                for event in bundle["event"]:
                    place = (event["timestamp"][0], bundle["cpu"][0])
                    self.switches += [(*place, s) for s in event["switch"]]
                    self.wakes += [(*place, w) for w in event["waking"]]
            for event in packet["event"]:
                fields = {annotations[a["name_iid"][0]]:
                          (a["uint"] + a["int"] + a["text"] + a["pointer"])[0]
                          for a in event["annotation"]}
                name = names[event["name_iid"][0]] if event["name_iid"] else \
                    (event["name"] or [None])[0]
                uuid = event["track"][0]
                self.events.append((event["type"][0], packet["timestamp"][0], uuid >> 32,
                                    uuid & 0xffffffff, name, (event["counter"] or [fields])[0]))

    def count(self, kind, track=None, field=None):
        """How many events of this kind, by name."""
        return collections.Counter(name for k, _, t, _, name, fields in self.events
                                   if k == kind and track in (None, t)
                                   and (field is None or field in fields))


@pytest.mark.parametrize("name", RECORDINGS)
def test_perfetto_has_each_event(traces, tmp_path, name):
    path, summary, _, _ = traces[name]
    trace = Perfetto(f"{path}.perfetto", tmp_path)
    raw = protoc(f"{path}.perfetto", "--decode_raw")
    assert len(re.findall(r"^1 \{", raw, re.MULTILINE)) == len(trace.packets)
    assert len(re.findall(r"^  11 \{", raw, re.MULTILINE)) == len(trace.events)

    expected = {event: n for event, n in counts(summary).items()
                if event not in SLICES or event == "LOST"}
    if name != "own":
        assert len(trace.switches) == counts(summary)["sched/switch"]
        assert len(trace.wakes) == expected.pop("sched/wake")
    instants = trace.count(INSTANT)
    assert instants.pop("recording") == 1
    assert instants == expected
    calls = trace.count(BEGIN, THREADS, "result")
    assert calls.pop("page fault") == int(rows(summary, "Page fault")["all"][0])
    assert calls == {call: int(n[0]) for call, n in rows(summary, "System call").items()}
    assert trace.count(BEGIN, CPUS) == {f"interrupt {vector}": int(n[0])
                                        for vector, n in rows(summary, "Interrupt").items()}
    lost = [event[5] for event in trace.events if event[0] == COUNTER]
    assert lost == sorted(lost) and lost[0] == 0 and lost[-1] == lost_of(summary)[1]


@pytest.mark.parametrize("name", RECORDINGS)
def test_perfettos_slices_nest(traces, tmp_path, name):
    trace = Perfetto(f"{traces[name][0]}.perfetto", tmp_path)
    depth = collections.Counter()
    for kind, _, *track in sorted(trace.events, key=lambda event: event[1]):
        if kind in (BEGIN, END):
            depth[tuple(track[:2])] += 1 if kind == BEGIN else -1
            assert depth[tuple(track[:2])] >= 0
    assert depth and not any(depth.values())


def test_perfettos_switches_are_the_times_of_the_summary(traces, tmp_path):
    """Of threads that came and went while the trace was recorded."""
    path, summary, _, _ = traces["whole"]
    trace = Perfetto(f"{path}.perfetto", tmp_path)
    sums, since = collections.Counter(), {}
    unknown = {0}
    for ns, cpu, switch in sorted(trace.switches, key=lambda s: s[0]):
        thread = switch["prev_pid"][0]
        if cpu in since:
            assert since[cpu][1] == thread
            sums[thread] += ns - since[cpu][0]
        else:
            unknown.add(thread)
        since[cpu] = (ns, switch["next_pid"][0])
    unknown.update(thread for _, thread in since.values())
    known = [thread for thread in sums if thread not in unknown]
    assert len(known) > 5
    for thread in known:
        switches, running, interrupted, _, _ = rows(summary, "Thread")[
            f"{trace.threads[thread]}:{thread}"]
        assert abs(sums[thread] / 1000 - running - interrupted) < 0.003 * (switches + 1)


def test_perfetto_of_one_task_shows_only_what_is_known(traces, tmp_path):
    trace = Perfetto(f"{traces['own'][0]}.perfetto", tmp_path)
    assert not trace.switches and not trace.wakes
    assert set(trace.count(BEGIN, RUNS)) == {"running"}


def test_exports_have_the_sensors(traces, tmp_path):
    """As many of each as in the summary, the list's fields by name, and what is lost."""
    path, summary, chrome, directory = traces["sensed"]
    table = re.findall(r"^((?:verner|mm|sched)/\S+) +(\d+) +\d+ +(\d+) +0  (\w+)$", summary,
                       re.MULTILINE)
    expected = {name: int(count) for name, count, _, _ in table if int(count)}
    assert expected["verner/frames"] == 256 and "mm/free" in expected, summary
    run = subprocess.run(["babeltrace2", "--clock-cycles", "--no-delta", directory],
                         check=True, capture_output=True, text=True)
    told = re.findall(r"^\[\d+\] ([^\s:]+)(?::\w+)?: \{ sensor = \d+ \}, ", run.stdout,
                      re.MULTILINE)
    assert collections.Counter(told) == expected
    assert re.findall(r"discarded (\d+) event", run.stderr) == ["44"], run.stderr
    frames = re.findall(r"verner/frames:frame: \{ sensor = \d+ \}, \{ thread = (\d+), name = "
                        r"\"sensor_decoder:\d+\", cpu = \d \}, \{ number = (\d+), cost = \d+, "
                        r"buffer = \d+, quality = \d+ \}", run.stdout)
    assert [int(number) for _, number in frames] == list(range(44, 300))
    dat = tmp_path / "trace.dat"
    strobe("--trace-dat", "-o", dat, path, check=True)
    lines = re.findall(r"(\S+)-\d+ +\[(\d+)\].* sensor: +(\S+) (.*)$", trace_cmd(dat),
                       re.MULTILINE)
    assert collections.Counter(name for _, _, name, text in lines
                               if "are missing here" not in text) == expected
    assert ("<idle>", "000", "verner/frames", "44 events are missing here") in lines, lines
    told = collections.Counter(e["name"] for e in chrome["traceEvents"] if e["ph"] in "iC" and
                               e["name"] in expected)
    assert told == collections.Counter(expected) + collections.Counter({"verner/frames": 1})
    values = [e["args"]["value"] for e in chrome["traceEvents"] if e["name"] == "verner/misses" and
              e["ph"] == "C"]
    perfetto = Perfetto(directory.with_suffix(".perfetto"), tmp_path)
    misses = [name for name, *_ in table].index("verner/misses")
    counters = [e[5] for e in perfetto.events if e[0] == COUNTER and e[2:4] == (SENSOR, misses)]
    assert values == counters and values[0] > 7, (values, counters)
    assert perfetto.count(INSTANT, THREADS)["verner/frames"] == 256
    assert perfetto.count(INSTANT, SENSOR)["verner/frames"] == 1


def test_a_cut_file(traces, tmp_path):
    path, _, _, _ = traces["whole"]
    cut = tmp_path / "cut"
    cut.write_bytes(path.read_bytes()[:9001])
    trace = json.loads(strobe("--chrome", cut, check=True).stdout)
    assert events_of(trace, "X")
    strobe("--perfetto", "-o", tmp_path / "perfetto", cut, check=True)
    trace = Perfetto(tmp_path / "perfetto", tmp_path)
    assert trace.count(BEGIN) and trace.count(INSTANT)["the file was cut off"] == 1
    strobe("--ctf", tmp_path / "ctf", cut, check=True)
    subprocess.run(["babeltrace2", tmp_path / "ctf"], check=True, capture_output=True)
    assert "cut_off = 1;" in (tmp_path / "ctf/metadata").read_text()


def test_errors(traces, tmp_path):
    path, _, _, directory = traces["whole"]
    again = strobe("--ctf", directory, path)
    assert again.returncode == 1 and "name a new directory" in again.stderr
    assert "No such file" in strobe("--ctf", tmp_path / "a/b", path).stderr
    assert "No space left" in strobe("--chrome", "-o", "/dev/full", path).stderr
    assert "No space left" in strobe("--trace-dat", "-o", "/dev/full", path).stderr
    assert "No space left" in strobe("--perfetto", "-o", "/dev/full", path).stderr
    for arguments in ((), ("--chrome",), ("--perfetto",), ("--chrome", "--perfetto", path),
                      ("--trace-dat", "--chrome", path),
                      ("--chrome", "report", path), ("-o", "x", "report", path),
                      ("-c", "1", "summary", path), ("--chrome", "--ctf", "x", path)):
        assert strobe(*arguments).returncode == 2, arguments
