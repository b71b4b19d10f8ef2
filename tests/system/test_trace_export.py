"""strobe trace --chrome, --ctf and --trace-dat: babeltrace2, trace-cmd, json and speedscope read
what they write, and count what `trace summary` counts."""
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
SLICES = ("sched/switch", "irq/enter", "irq/exit", "irq/return", "syscall/enter",
          "syscall/exit", "page/fault", "page/fault_end", "LOST")


def strobe(*arguments, **more):
    return subprocess.run([STROBE, "trace", *arguments], capture_output=True, text=True, **more)


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Of each recording: its path, its summary, its JSON, and the directory of its streams."""
    out = tmp_path_factory.mktemp("traces")
    for smp in (1, 2):
        scripts = {name: script for name, (cpus, script) in RECORDINGS.items() if cpus == smp}
        for result in batch(scripts, "--icount", "3", "--get", str(out), smp=smp).values():
            assert result.status == 0, result
    files = {}
    for name in RECORDINGS:
        path = out / name
        strobe("--chrome", "-o", out / f"{name}.json", path, check=True)
        strobe("--ctf", out / f"{name}.ctf", path, check=True)
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


def test_a_cut_file(traces, tmp_path):
    path, _, _, _ = traces["whole"]
    cut = tmp_path / "cut"
    cut.write_bytes(path.read_bytes()[:9001])
    trace = json.loads(strobe("--chrome", cut, check=True).stdout)
    assert events_of(trace, "X")
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
    for arguments in ((), ("--chrome",), ("--chrome", "report", path), ("-o", "x", "report", path),
                      ("-c", "1", "summary", path), ("--chrome", "--ctf", "x", path),
                      ("--trace-dat", "--chrome", path)):
        assert strobe(*arguments).returncode == 2, arguments
