"""strobe trace --perfetto, --ctf and --trace-dat: babeltrace2, trace-cmd, KernelShark and protoc
read what they write, and count what `trace summary` counts."""
import collections
import functools
import re
import subprocess

import pytest

import linux_events
from kernelshark import KernelShark
from linux_events import linux_counts, linux_name, trace_cmd, trace_cmd_lines
from machine import batch
from perfetto import (BEGIN, CPUS, COUNTER, END, INSTANT, RUNS, SENSOR, THREADS, Perfetto,
                      RawPerfetto)
from test_trace import BUSY
from trace_text import Summary, number_of, report, strobe

# On each of two CPUs a task of its own: a request through servers, and loops; and a signal.
# On one CPU the reader runs between: events are lost where others follow.
RECORDINGS = {
    "whole": (2, "trace record -b 1024 -o /out/whole sh -c 'trap : USR1; kill -USR1 $$; "
              "taskset 1 /test/ipc_flow & taskset 1 taskset 2 sh -c \""
              "for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1 count=20; sleep 0.01; done "
              "2>/dev/null | cat\"; wait'"),
    "lossy": (1, "trace record -b 8 -o /out/lossy dd if=/dev/zero of=/dev/null bs=1 count=3000"),
    "shared": (1, f"trace record -o /out/shared {BUSY}"),
    "own": (1, "trace record -1 -o /out/own sh -c 'true | cat'"),
}
# Sensors of a program and the kernel; of a list 44 events are lost.
SENSED = {"sensed": (2, "trace record -s verner,mm/free,sched/switch.? -o /out/sensed"
                        " /test/sensor_decoder 300")}
SLICES = ("sched/switch", "irq/enter", "irq/exit", "irq/return", "syscall/enter",
          "syscall/exit", "page/fault", "page/fault_end", "LOST")
FLOWS = ("ipc/call", "ipc/take", "ipc/forward")  # and ipc/answer, which ends one


class Exported:
    """A recording, what `strobe trace` says of it, and its exports."""

    def __init__(self, path):
        self.path = path

    def export(self, form):
        out = self.path.with_suffix(f".{form.replace('trace-', '')}")
        if not out.exists():
            strobe(f"--{form}", "-o", out, self.path, check=True)
        return out

    @functools.cached_property
    def summary(self):
        return Summary(strobe("summary", self.path, check=True).stdout)

    @functools.cached_property
    def report(self):
        return report(self.path)

    @functools.cached_property
    def perfetto(self):
        return Perfetto(self.export("perfetto"), self.path.parent)

    @functools.cached_property
    def ctf(self):
        out = self.path.with_suffix(".ctf")
        strobe("--ctf", out, self.path, check=True)
        return out


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    out = tmp_path_factory.mktemp("traces")
    for smp in (1, 2):
        scripts = {name: script for name, (cpus, script) in (RECORDINGS | SENSED).items()
                   if cpus == smp}
        for result in batch(scripts, "--icount", "3", "--get", str(out), smp=smp).values():
            assert result.status == 0, result
    return {name: Exported(out / name) for name in RECORDINGS | SENSED}


@pytest.fixture(params=RECORDINGS)
def trace(traces, request):
    return traces[request.param]


def test_events_are_lost_and_reported(traces):
    assert traces["lossy"].summary.lost_there > 100
    assert traces["whole"].summary.lost == 0


def test_babeltrace_counts_the_same(trace):
    run = subprocess.run(["babeltrace2", "--clock-cycles", "--no-delta", trace.ctf],
                         check=True, capture_output=True, text=True)
    lines = re.findall(r"^\[(\d+)\] (\S+): \{ cpu_id = \d+ \}, \{ thread = \d+, name = \".*\" \}, "
                       r"\{ .* \}$", run.stdout, re.MULTILINE)
    assert len(lines) == len(run.stdout.splitlines())
    expected = dict(trace.summary.events)
    expected.pop("LOST", None)
    assert collections.Counter(event for _, event in lines) == expected
    assert [int(at) for at, _ in lines] == sorted(int(at) for at, _ in lines)
    discarded = sum(int(n) for n in re.findall(r"discarded (\d+) event", run.stderr))
    assert discarded == trace.summary.lost_there
    metadata = (trace.ctf / "metadata").read_text()
    rest = int(re.search(r"lost_after_the_last_events = (\d+)", metadata)[1])
    assert discarded + rest == trace.summary.lost


# --- trace-cmd and KernelShark ---------------------------------------------------------------

def test_trace_cmd_counts_the_same(trace):
    lines, text = trace_cmd_lines(trace.export("trace-dat"))
    assert lines, text
    seen = collections.Counter(line[2] for line in lines)
    seen["page_fault"] = seen.pop("page_fault_user", 0) + seen.pop("page_fault_kernel", 0)
    assert +seen == {name.split("/")[1]: n for name, n in linux_counts(trace.summary).items()}
    times = [int(line[1].replace(".", "")) for line in lines]
    assert times == sorted(times)
    dropped = sum(int(n) for n in re.findall(r"\[(\d+) EVENTS DROPPED\]", text))
    assert dropped == trace.summary.lost_there
    rest = re.search(r"of any CPU: (\d+)", trace_cmd(trace.export("trace-dat"), "--stat"))
    assert dropped + int(rest[1]) == trace.summary.lost


def test_trace_cmd_shows_linuxs_fields(traces):
    trace = traces["whole"]
    lines, _ = trace_cmd_lines(trace.export("trace-dat"))
    names = {linux_name(event).split("/")[1] for event in linux_events.FIELDS}
    for cpu in (0, 1):
        shown = [(name, text) for at, _, name, text in lines if int(at) == cpu and name in names]
        events = [e for e in trace.report if e.cpu == cpu and e.name in linux_events.FIELDS]
        assert len(shown) == len(events) > 10
        for (name, text), e in zip(shown, events):
            fields = {key: int(n, 0) for key, n in re.findall(r"(\w+)=(\w+)", e.text)}
            assert linux_name(e.name).endswith(f"/{name}")
            assert re.fullmatch(linux_events.FIELDS[e.name](e, fields), text), (e, text)
    assert linux_events.FIELDS.keys() <= trace.summary.events.keys()


def test_trace_cmd_knows_threads_and_calls(traces):
    text = trace_cmd(traces["whole"].export("trace-dat"))
    # Linux's plugin of the event writes it, then its print format.
    assert re.search(r" sched_switch: +swapper/\d:0 \[0\] R ==> \w+:[1-9]\d* \[0\]$", text,
                     re.MULTILINE)
    raw = trace_cmd(traces["whole"].export("trace-dat"), "-N")
    switch = re.search(r" sched_switch: +prev_comm=(\S+) prev_pid=(\d+) prev_state=(\w) ==> "
                       r"next_comm=(\S+) next_pid=(\d+)$", raw, re.MULTILINE)
    assert switch[1].startswith("swapper/") == (switch[2] == "0")
    assert switch[4].startswith("swapper/") == (switch[5] == "0")
    assert re.search(r" sys_enter: +NR 4 \(write\)$", raw, re.MULTILINE)


def shown_by_kernelshark(trace, window):
    """Checks the list's entries, and returns the graphs' widths."""
    entries, graphs = window.shown()
    missed = [e for e in entries if e.event == "missed_events"]
    assert sum(int(e.info.split("=")[1]) for e in missed) == trace.summary.lost_there
    assert len(missed) == trace.summary.events.get("LOST", 0)
    entries = [e._replace(event=re.sub("(page_fault)_.*", r"\1", e.event))
               if e.event.startswith("exceptions/") else e
               for e in entries if e.event != "missed_events"]
    assert collections.Counter(e.event for e in entries) == linux_counts(trace.summary)
    events = [e for e in trace.report if e.name != "LOST"]
    begin = entries[0].ns - events[0].ns
    for cpu in {e.cpu for e in events}:
        # A switch is of the thread that it leads to, others of the one that runs there.
        assert [(e.event, e.pid) for e in entries if e.cpu == cpu] == [
            (linux_name(e.name), number_of(e.text.split(" -> ")[1])
             if e.name == "sched/switch" else e.thread) for e in events if e.cpu == cpu]
    assert all(abs(shown.ns - begin - e.ns) <= 1
               for shown, e in zip(entries, events, strict=True))
    names = {number_of(thread): thread for thread in trace.summary.rows("Thread")}
    for e in entries:
        # Its task is of the record, which is of the thread that leaves.
        if e.event == "sched/sched_switch":
            assert re.search(rf" ==> \S+:{e.pid} \[0\]$", e.info), e
        elif e.pid:
            assert f"{e.task}:{e.pid}" == names[e.pid], e
    return graphs


def test_kernelshark_shows_the_events(traces):
    trace = traces["lossy"]
    with KernelShark(trace.export("trace-dat"), [0], []) as window:
        shown_by_kernelshark(trace, window)


def test_kernelshark_draws_the_times(traces):
    """Its graphs have colours where a thread ran: as many pixels as `trace summary` has time."""
    trace = traces["whole"]
    threads = {number_of(thread): numbers
               for thread, numbers in trace.summary.rows("Thread").items()}
    # Those that ran for the longest without a pause.
    tasks = sorted(threads, key=lambda n: -sum(threads[n][1:3]) / (threads[n][0] or 1))[:2]
    with KernelShark(trace.export("trace-dat"), [0, 1], sorted(tasks)) as window:
        widths = shown_by_kernelshark(trace, window)
        bounds = [pixels_of(trace, graph, widths[graph], threads) for graph in window.graphs]
        # It draws one part after the other.
        window.wait(lambda: all_fit(bounds, window.bands(widths["cpu", 0])))


def pixels_of(trace, graph, width, threads):
    """How many pixels of a graph have a colour, at least and at most."""
    kind, number = graph
    if kind == "cpu":
        busy, interrupts, _ = trace.summary.rows("CPU")[str(number)]
        least, most = busy, busy + interrupts
        pieces = sum(e.cpu == number and e.name == "sched/switch" and
                     e.text.startswith("[idle] -> ") for e in trace.report)
    else:
        pieces, running, interrupted, *_ = threads[number]
        least = most = running + interrupted
    pixels = width / trace.summary.ns * 1000  # of a us
    assert most * pixels > 20
    # A piece may be a pixel shorter, or longer. A frame is drawn around the wait before it,
    # whose two vertical lines take up to three pixels, the right one with one pixel in the
    # piece (KernelShark, src/plugins/SchedEvents.cpp).
    return least * pixels - pieces - 1, most * pixels + 6 * pieces + 1


def all_fit(bounds, bands):
    print(bounds, bands)  # shown if they never do
    return bands and all(any(least <= coloured <= most for coloured in band)
                         for (least, most), band in zip(bounds, bands, strict=True))


# --- Perfetto --------------------------------------------------------------------------------


def test_perfetto_has_each_event(trace):
    summary, perfetto = trace.summary, trace.perfetto
    expected = {event: n for event, n in summary.events.items()
                if event not in SLICES or event == "LOST"}
    if trace.path.name != "own":
        assert len(perfetto.switches) == summary.events["sched/switch"]
        assert len(perfetto.wakes) == expected.pop("sched/wake")
    instants = perfetto.count(INSTANT)
    assert instants.pop("recording") == 1
    assert instants == expected
    calls = perfetto.count(BEGIN, THREADS, "result")
    assert calls.pop("page fault") == summary.spans("Page fault")["all"]
    assert calls == summary.spans("System call")
    assert perfetto.count(BEGIN, CPUS) == {f"interrupt {vector}": n for vector, n in
                                           summary.spans("Interrupt").items()}
    lost = perfetto.counters()
    assert lost == sorted(lost) and lost[0] == 0 and lost[-1] == summary.lost


def test_perfetto_without_a_schema(trace):
    """protoc --decode_raw: slices, instants, counters, flows and scheduling."""
    summary, raw = trace.summary, RawPerfetto(trace.export("perfetto"))
    events = summary.events
    assert (raw.packets, raw.events) == (len(trace.perfetto.packets), len(trace.perfetto.events))
    unfinished = [e for e in trace.perfetto.events if e.type == BEGIN and "end" in e.fields]
    faults = sum(e.name == "page fault" for e in unfinished)
    assert len(unfinished) - faults == summary.unfinished_calls()
    slices = {THREADS: sum(summary.spans("System call").values()) + len(unfinished)
              + summary.spans("Page fault")["all"],
              CPUS: sum(summary.spans("Interrupt").values())}
    for kind, n in slices.items():
        assert (raw.types[BEGIN, kind], raw.types[END, kind]) == (n, n), kind
    own = trace.path.name == "own"
    instants = sum(n for kind, n in raw.types.items() if kind[0] == INSTANT)
    assert instants - 1 == sum(n for event, n in events.items() if event not in SLICES
                               or event == "LOST") - (0 if own else events["sched/wake"])
    assert (raw.switches, raw.wakes) == (
        (0, 0) if own else (events["sched/switch"], events["sched/wake"]))
    assert sum(n for kind, n in raw.types.items() if kind[0] == COUNTER) == len(raw.counters)
    assert max(raw.counters) == summary.lost
    assert len(raw.counters) >= 1 + events.get("LOST", 0)
    assert len(raw.flows) == sum(events.get(event, 0) for event in FLOWS)
    assert len(raw.flow_ends) == events.get("ipc/answer", 0) == events.get("ipc/call", 0)
    assert set(raw.flows) == set(raw.flow_ends)


def test_perfettos_flows_lead_from_a_call_to_its_answer(traces):
    steps = collections.defaultdict(list)
    for e in sorted(traces["whole"].perfetto.events, key=lambda e: e.ns):
        for flow in e.flows + e.ends:
            steps[flow].append(e.name)
        assert not e.ends or e.name == "ipc/answer"
    assert len(steps) == traces["whole"].summary.events["ipc/call"]
    for names in steps.values():
        assert names[0] == "ipc/call" and names[-1] == "ipc/answer", names
        assert set(names[1:-1]) <= {"ipc/take", "ipc/forward"}, names
    assert any("ipc/forward" in names for names in steps.values())


def test_perfettos_slices_nest(trace):
    depth = collections.Counter()
    for e in sorted(trace.perfetto.events, key=lambda e: e.ns):
        if e.type in (BEGIN, END):
            depth[e.kind, e.track] += 1 if e.type == BEGIN else -1
            assert depth[e.kind, e.track] >= 0
    assert depth and not any(depth.values())


def test_perfettos_switches_are_the_times_of_the_summary(traces):
    """Of threads that came and went while the trace was recorded."""
    perfetto, threads = traces["whole"].perfetto, traces["whole"].summary.rows("Thread")
    sums, since = collections.Counter(), {}
    unknown = {0}
    for ns, cpu, switch in sorted(perfetto.switches, key=lambda s: s[0]):
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
        switches, running, interrupted, _, _ = threads[f"{perfetto.threads[thread]}:{thread}"]
        assert abs(sums[thread] / 1000 - running - interrupted) < 0.003 * (switches + 1)


def test_perfetto_of_one_task_shows_only_what_is_known(traces):
    perfetto = traces["own"].perfetto
    assert not perfetto.switches and not perfetto.wakes
    assert set(perfetto.count(BEGIN, RUNS)) == {"running"}


# --- sensors ---------------------------------------------------------------------------------


def test_exports_have_the_sensors(traces):
    """As many of each as in the summary, the list's fields by name, and what is lost."""
    trace = traces["sensed"]
    table = re.findall(r"^((?:verner|mm|sched)/\S+) +(\d+) +\d+ +(\d+) +0  (\w+)$",
                       trace.summary.text, re.MULTILINE)
    expected = {name: int(count) for name, count, _, _ in table if int(count)}
    assert expected["verner/frames"] == 256 and "mm/free" in expected, trace.summary.text
    run = subprocess.run(["babeltrace2", "--clock-cycles", "--no-delta", trace.ctf],
                         check=True, capture_output=True, text=True)
    told = re.findall(r"^\[\d+\] ([^\s:]+)(?::\w+)?: \{ sensor = \d+ \}, ", run.stdout,
                      re.MULTILINE)
    assert collections.Counter(told) == expected
    assert re.findall(r"discarded (\d+) event", run.stderr) == ["44"], run.stderr
    frames = re.findall(r"verner/frames:frame: \{ sensor = \d+ \}, \{ thread = (\d+), name = "
                        r"\"sensor_decoder:\d+\", cpu = \d \}, \{ number = (\d+), cost = \d+, "
                        r"buffer = \d+, quality = \d+ \}", run.stdout)
    assert [int(number) for _, number in frames] == list(range(44, 300))
    lines = re.findall(r"(\S+)-\d+ +\[(\d+)\].* sensor: +(\S+) (.*)$",
                       trace_cmd(trace.export("trace-dat")), re.MULTILINE)
    assert collections.Counter(name for _, _, name, text in lines
                               if "are missing here" not in text) == expected
    assert ("<idle>", "000", "verner/frames", "44 events are missing here") in lines, lines
    misses = [name for name, *_ in table].index("verner/misses")
    counters = [e.counter for e in trace.perfetto.events
                if (e.type, e.kind, e.track) == (COUNTER, SENSOR, misses)]
    assert len(counters) == expected["verner/misses"] and counters[0] > 7, counters
    assert trace.perfetto.count(INSTANT, THREADS)["verner/frames"] == 256
    assert trace.perfetto.count(INSTANT, SENSOR)["verner/frames"] == 1


# --- files that are cut off, errors ----------------------------------------------------------


def test_a_cut_file(traces, tmp_path):
    cut = tmp_path / "cut"
    cut.write_bytes(traces["whole"].path.read_bytes()[:9001])
    trace = Exported(cut)
    assert trace.perfetto.count(BEGIN)
    assert trace.perfetto.count(INSTANT)["the file was cut off"] == 1
    subprocess.run(["babeltrace2", trace.ctf], check=True, capture_output=True)
    assert "cut_off = 1;" in (trace.ctf / "metadata").read_text()


def test_errors(traces, tmp_path):
    path = traces["whole"].path
    again = strobe("--ctf", traces["whole"].ctf, path)
    assert again.returncode == 1 and "name a new directory" in again.stderr
    assert "No such file" in strobe("--ctf", tmp_path / "a/b", path).stderr
    assert "No space left" in strobe("--trace-dat", "-o", "/dev/full", path).stderr
    assert "No space left" in strobe("--perfetto", "-o", "/dev/full", path).stderr
    for arguments in ((), ("--perfetto",), ("--trace-dat", "--perfetto", path),
                      ("--perfetto", "report", path), ("-o", "x", "report", path),
                      ("-c", "1", "summary", path), ("--perfetto", "--ctf", "x", path)):
        assert strobe(*arguments).returncode == 2, arguments
