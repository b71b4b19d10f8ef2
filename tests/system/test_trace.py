"""trace: what it records, as text and as sums; the same on the host; a trace against the
ledger; full file systems, kills, and unknown events."""
import collections
import re
import subprocess

import pytest

from machine import ROOT, batch, vm
from tiers import realtime

STROBE = f"{ROOT}/build/strobe"
BUSY = "sh -c 'for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1 count=20; sleep 0.01; done 2>/dev/null | cat'"
POINTS = "sysinfo system.text | grep patched"
SCRIPTS = {
    "list": "trace list",
    "record": f"trace record -o /out/t {BUSY}; trace summary /out/t; trace report /out/t > /out/text; trace summary /out/t > /out/sums",
    "own": "trace record -1 -o /tmp/own sh -c 'true | cat'; trace summary /tmp/own; rm /tmp/own",
    "chosen": "trace record -e sched,syscall/enter -o /tmp/c true; trace summary /tmp/c; trace report -c 1 /tmp/c; rm /tmp/c",
    "lost": "trace record -b 8 -o /tmp/l dd if=/dev/zero of=/dev/null bs=1 count=3000; trace summary /tmp/l; rm /tmp/l",
    "status": "trace record -o /tmp/s sh -c 'exit 7'; echo $?; rm /tmp/s",
    "stopped": "trace record -o /tmp/p sh -c '(sleep 0.1; kill -CONT $$) & kill -STOP $$; echo goes on'; trace report /tmp/p | grep task/exit | grep -cv timeout:; rm /tmp/p",
    "cut": "trace record -o /tmp/w sh -c 'sleep 0.01'; head -c 3000 /tmp/w > /tmp/cut; trace summary /tmp/cut; rm /tmp/w /tmp/cut",
    "full": f"trace record -o /dev/full true; echo $?; {POINTS}",
    "killed": f"""
trace record -o /tmp/k sleep 100 & sleep 0.5; {POINTS}
kill -9 $!; wait; sleep 0.1; {POINTS}; trace summary /tmp/k | head -n 1; rm /tmp/k
""",
    "unknown": "trace record -e sched/swich true; trace record -e wake true; echo $?",
    "usage": "trace; trace recrod; trace record -1; trace record -b 7 true; trace report a b",
    "no-file": "trace report /nothing; trace report /etc/passwd",
    "no-task": "trace record -t 4194304",
    "flight": "trace record --flight 1 -b 8 -o /tmp/f dd if=/dev/zero of=/dev/null bs=1 count=3000; trace summary /tmp/f; trace report /tmp/f | grep -v '^#' > /tmp/lines; head -n 2 /tmp/lines; tail -n 60 /tmp/lines; rm /tmp/f /tmp/lines",
    "request": "trace record -e sched,irq,ipc -o /out/request /test/ipc_flow",
    "wakes": "trace record -e sched,task,signal,pipe,cpu,irq -o /out/wakes sh -c 'trap : USR1; kill -USR1 $$; for i in 1 2 3 4 5; do sleep 0.01; echo $i; done | cat'",
    "samples": """
# On the boot CPU, which a program on the other one can keep from its turns.
for source in lapic nmi-hpet; do
    taskset 1 trace record -e profile,sched -o /tmp/t profile -s $source seq 10000 |
        grep ^Samples
    trace report /tmp/t | grep -c ' seq:[0-9]* *profile/sample '
done; rm /tmp/t; profile -e @profile/sample true""",
    "ipc": "trace record -e ipc,task -o /out/ipc ipctest >/dev/null",
    "storm": "trace record -e syscall -b 16384 -o /tmp/f taskset 2 /test/call_share getppid 4000 >/dev/null; trace summary /tmp/f; rm /tmp/f",
    "busy-flight": "trace record --flight 5 -b 64 -o /tmp/f sh -c 'for i in $(seq 60); do /bin/true; done'; trace summary /tmp/f; trace report /tmp/f | grep -vc '^#'; rm /tmp/f",
    "short-flight": "trace record --flight 9 -o /tmp/f true; trace summary /tmp/f | head -n 4; rm /tmp/f",
    "flight-of-task": "sleep 0.3 & trace record --flight 5 -t $! -o /tmp/f; trace report /tmp/f | grep -c task/exit; rm /tmp/f",
    "snapshot": """
trace record --flight 60 -o /tmp/s sh -c 'for i in $(seq 40); do sleep 0.05; done' & sleep 1
trace snapshot; sleep 0.3; trace snapshot; sleep 0.3; sysinfo system.profile.traces
for file in /tmp/s.1 /tmp/s.2; do trace summary $file; done
wait; trace summary /tmp/s; trace report /tmp/s.1 | tail -n 3; rm /tmp/s*
""",
    "flight-killed": f"""
trace record --flight 5 -o /tmp/k sleep 100 & sleep 0.5; sysinfo system.profile.traces | grep -c taking
kill -9 $!; wait; sleep 0.1; sysinfo system.profile.traces | grep -c taking; {POINTS}; trace snapshot; echo $?; rm /tmp/k
""",
    "no-room": """
mkdir /tmp/d; cd /tmp/d; trace record --flight 60 -o f sleep 100 & sleep 0.5
rm -r /tmp/d; trace snapshot; sleep 0.2; kill -INT $!; wait $!; echo $?""",
    "sensors": f"trace record -s 'verner,/sensors/mm/f*,sched/switch.*' -o /out/sensed sh -c '/test/sensor_decoder 200; sleep 0.3; /test/sensor_decoder 300' >/dev/null; trace report /out/sensed >/out/sensed-text; trace summary /out/sensed >/out/sensed-sums",
    "sensors-own": "trace record -1 -i 0.005 -s verner -o /tmp/s /test/sensor_decoder 100 >/dev/null; trace report -t 1 /tmp/s | grep -c verner; rm /tmp/s",
    "sensors-killed": """
/test/sensor_decoder 100 60 >/tmp/out & sleep 0.2
trace record -e task -s verner -o /tmp/s sh -c "sleep 0.3; kill -9 $!; sleep 0.3"; trace summary /tmp/s | grep '^verner'; rm /tmp/s /tmp/out
trace record -e task -s verner/frames -o /tmp/s sh -c '/test/sensor_decoder 100 60 >/dev/null & sleep 0.3; kill -9 $!'; trace summary /tmp/s | grep '^verner'; rm /tmp/s""",
    "sensors-tool-killed": """
trace record -e task -s verner/frames -o /tmp/s sh -c '/test/sensor_decoder 100 60 >/dev/null' & sleep 0.5
kill -9 $!; killall -9 sensor_decoder; wait; trace summary /tmp/s | grep -E '^verner|^MISSING'; rm /tmp/s; sensors | grep -c verner/frames.*closed""",
    "sensors-full": "trap '' XFSZ; (ulimit -f 16; trace record -e task -s verner/frames -o /tmp/s /test/sensor_decoder 250 >/dev/null); echo $?; trace summary /tmp/s; rm /tmp/s",
    "sensors-flight": """
trace record --flight 5 -s verner/frames -o /tmp/s sh -c '/test/sensor_decoder 100 >/dev/null; sleep 0.5; /test/sensor_decoder 300 >/dev/null; sleep 2' & sleep 0.4
trace snapshot; wait; for file in /tmp/s.1 /tmp/s; do trace summary $file | grep -E '^verner|^MISSING|^# sensors'; done; rm /tmp/s /tmp/s.1""",
    "monitored": """
trace record -e task/fork,task/exec -o /tmp/m sh -c 'true; exec sensors record -o /tmp/r /sensors/kernel/trace/* -- sh -c "true; true | cat"'
trace report /tmp/m | grep -v '^#'; sensors /tmp/r; ls /sensors/kernel/trace | wc -l; rm /tmp/m /tmp/r""",
    "pmc": """
trace record -e sched/pmc -o /tmp/p true; echo $?; trace record --counters cycles,branches -o /tmp/p true; echo $?
trace record --counters cycles,none true; trace record --counters cycles true; rm -f /tmp/p /tmp/q""",
    "sensors-wrong": "trace record -s none/such -o /tmp/s true; echo $?; trace record -i 0 -o /tmp/s true; echo $?; rm /tmp/s",
    "functions": """
trace record -1 -F 'sys_*,vfs_*' -o /out/functions dd if=/dev/zero of=/tmp/z bs=1 count=50 2>/dev/null
trace summary /out/functions; trace report /out/functions >/out/functions.text
trace record -F 'sys_wirte' true; trace record -F '!*' true; trace record -F 'sys_*' -o /dev/null graph -o /dev/null true; echo $?""",
    "ordinary": "su user -c 'trace record -o /tmp/o true'",
}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("trace")


@pytest.fixture(scope="module")
def results(out):
    return batch(SCRIPTS, "--icount", "3", "--get", str(out), smp=2)


def row(output, title, name):
    """The numbers of a row of a table."""
    table = output.split(f"\n{title}", 1)[1].split("\n\n")[0]
    line = re.search(rf"^{re.escape(name)} .*", table, re.MULTILINE)
    return [float(n) for n in re.findall(r" ([\d.]+)(?= |$)", line[0])]


@pytest.mark.parametrize("smp", (1, 2, 4))
def test_a_trace_is_the_ledger(smp):
    result = vm("/test/trace_truth", "--icount", "3", smp=smp)
    assert result.status == 0, result
    assert "ok the pieces" in result.output and "ok each system" in result.output


def test_an_nmi_at_each_instruction_of_a_record():
    run = vm(None, "--console", "--kernel", f"{ROOT}/build/kernel-test.elf", "--kargs",
             "test=trace_records_are_whole", "--icount", "3", smp=1)
    assert run.status == 0 and int(re.search(
        r" NMIs in the middle of one, at (\d+) instructions", run.output)[1]) > 200, run


def test_monitored(results):
    """What `sensors` records of a trace's rings is what the trace has: the same events, at
    the same times, with the same fields. The rings go with the trace."""
    output = results["monitored"].output
    traced = re.findall(r"^ +([\d.]+) +\d+ +\d+ +\S+:(\d+) +task/(\w+) +(.*)$", output,
                        re.MULTILINE)
    seen = re.findall(r"^ +(-?[\d.]+) /sensors/kernel/trace/\d+\.\d+ +\d+ \d+ task\.(\w+) "
                      r"running=(\d+) (.*)$", output, re.MULTILINE)
    assert len(traced) >= 7, output
    assert ([(thread, name, fields.strip()) for _, thread, name, fields in traced]
            == [(thread, name, fields) for _, name, thread, fields in seen]), output
    for (time, *_), (recorded, *_) in zip(traced, seen):
        since = float(recorded) - float(seen[0][0])
        assert abs(float(time) - float(traced[0][0]) - since) < 0.0000021, output
    assert output.splitlines()[-1] == "0", output


def test_no_performance_counters(results):
    """QEMU has none: a trace that wants them is refused, in words."""
    result = results["pmc"]
    assert result.output.splitlines() == ["1", "1"], result
    assert result.errors.count("trace: sched/pmc: this machine has no performance counters; ") == 2
    assert "--counters cycles,none: there is no such event" in result.errors
    assert "--counters 'cycles': not two events" in result.errors


def test_list(results):
    lines = results["list"].output.splitlines()
    assert any(line.startswith("sched/switch  ") for line in lines)
    with open(f"{ROOT}/include/strobe/points.def") as file:
        assert len(lines) == file.read().count("\nPOINT(")


def test_calls_of_functions(results, out):
    """Which functions were called, by whom, and how often; the same on the host; what
    cannot be chosen; one trace of calls at a time."""
    output = results["functions"].output
    assert row(output, "Function", "sys_write")[0] >= 50
    assert row(output, "Event", "function/call")[0] == sum(
        int(n) for n in re.findall(r"^[a-z]\w+ +(\d+)$", output, re.MULTILINE))
    text = (out / "functions.text").read_text()
    calls = re.findall(r"(\S+:\d+) +function/call +(\w+) by (\w+)\n", text)
    assert len(calls) == row(output, "Event", "function/call")[0]
    assert all(thread.startswith("dd:") for thread, _, _ in calls[-50:])
    writes = [caller for _, name, caller in calls if name == "sys_write"]
    assert len(writes) >= 50 and len(set(writes)) == 1
    host = subprocess.run([STROBE, "trace", "report", out / "functions"], text=True,
                          capture_output=True, check=True).stdout
    assert host == text
    errors = results["functions"].errors
    assert "-F 'sys_wirte': no such function" in errors and " sys_write\n" in errors
    assert "choose no function" in errors
    assert re.search(r"graph: task \d+ traces the kernel's calls already", errors)


def test_summary(results):
    output = results["record"].output
    assert results["record"].status == 0, results["record"]
    assert "MISSING" not in output, output
    assert re.search(r"# clock: TSC, [\d.]+ MHz; effects before their causes on other "
                     r"CPUs: 0\n", output), output
    assert row(output, "System call", "read")[0] >= 60
    assert row(output, "System call", "execve")[0] >= 5
    calls = re.search(r"ended with their thread: (\d+); that go on: \d+; without an end: "
                      r"(\d+)", output)
    assert int(calls[1]) >= 7 and int(calls[2]) == 0
    begins = row(output, "Event", "syscall/enter")[0]
    ends = row(output, "Event", "syscall/exit")[0]
    assert begins - ends == int(calls[1]) - 1  # its first read began before


def test_report_has_each_event(results, out):
    text = (out / "text").read_text()
    sums = (out / "sums").read_text()
    lines = [line for line in text.splitlines() if re.match(r" +\d+\.\d{9} ", line)]
    assert len(lines) == int(re.search(r"# (\d+) events", sums)[1])
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)
    assert re.search(r"dd:\d+ +syscall/enter +read\n", text)
    assert re.search(r"dd:\d+ +syscall/exit +read = 1\n", text)
    assert re.search(r"sched/switch +sleep:\d+ waits -> ", text)


def test_host_prints_the_same(results, out):
    assert results["record"].status == 0
    for what, file in (("report", "text"), ("summary", "sums")):
        host = subprocess.run([STROBE, "trace", what, out / "t"], check=True,
                              capture_output=True, text=True)
        assert host.stdout == (out / file).read_text()


def test_calls_are_followed(results, out):
    """Each IPC call's events have its flow, from its sender by those that take and forward
    it to its answer."""
    assert results["ipc"].status == 0, results["ipc"]
    report = subprocess.run([STROBE, "trace", "report", out / "ipc"], check=True,
                            capture_output=True, text=True).stdout
    at, told = {}, collections.Counter()  # where each flow's call is: a task
    for what, flow, rest in re.findall(r" ipc/(\w+) +flow=(\w+) (.*)$", report, re.MULTILINE):
        told[what] += 1
        if what == "call":
            assert flow not in at, (flow, rest)
            at[flow] = "sent"
        elif what == "take":
            assert at[flow] in ("sent", "forwarded"), (flow, rest)
            at[flow] = "taken"
        elif what == "forward":
            assert at[flow] == "taken", (flow, rest)
            at[flow] = "forwarded"
        else:
            refused = re.match(r"result=0xffff", rest)
            assert at.pop(flow) == "taken" or refused, (flow, rest)
    assert not at and "MISSING" not in report
    assert told["call"] == told["answer"] > 4000 and told["forward"] > 400, told
    assert 0 <= told["call"] + told["forward"] - told["take"] < 10, told


def report_of(path):
    """The report's lines: (CPU, thread, event, fields)."""
    report = subprocess.run([STROBE, "trace", "report", path], check=True,
                            capture_output=True, text=True).stdout
    return re.findall(r"^ +\d+\.\d{9} +\d+ +(\d+) +(\S+) +(\S+) +(.*)$", report, re.MULTILINE)


def test_wakes_have_a_reason(results, out):
    """A pipe precedes the sched/wake of the thread that waits for it, if that sleeps already;
    a signal is sent, then delivered."""
    assert results["wakes"].status == 0, results["wakes"]
    lines = report_of(out / "wakes")
    woken = 0
    for cpu in "01":
        own = [line[2] for line in lines if line[0] == cpu and line[2] != "sched/migrate"]
        woken += list(zip(own, own[1:])).count(("pipe/wake", "sched/wake"))
    assert woken > 3, lines
    sent = next(n for n, line in enumerate(lines) if line[2] == "signal/send" and
                line[3].endswith(" thread=0 signal=10"))
    taken = next(line for line in lines[sent:] if line[2] == "signal/deliver")
    assert taken[1] == lines[sent][1] and re.fullmatch(r"handler=0x\w+ signal=10", taken[3])


def test_futexes_wake_threads(tmp_path):
    """On one CPU: with several, a thread that waits for another one without PAUSE keeps
    QEMU's virtual time to itself."""
    result = vm("trace record -e sched,task,futex -o /out/t /test/threads", "--icount", "3",
                "--get", str(tmp_path), smp=1)
    assert result.status == 0, result
    lines = report_of(tmp_path / "t")
    told = collections.Counter()
    for (_, _, event, fields), after in zip(lines, lines[1:]):
        told[event, after[2]] += 1
        if event == "futex/wake" and after[2] == "sched/wake":
            thread = re.match(r"thread=(\d+) ", fields)[1]
            assert after[3].startswith(f"threads:{thread} "), (fields, after)
    assert told["futex/wake", "sched/wake"] > 1000, told
    assert told["task/thread", "sched/migrate"] + told["task/thread", "sched/wake"] > 100, told
    assert "?:" not in str(lines)  # threads have their task's name


def test_idle_cpus_halt(results, out):
    """While a CPU is halted nothing but interrupts happens on it."""
    assert results["wakes"].status == 0, results["wakes"]
    lines = report_of(out / "wakes")
    halts = 0
    for cpu in "01":
        halted = None  # it may be halted when the trace begins
        for _, thread, event, _ in (line for line in lines if line[0] == cpu):
            if event == "cpu/halt":
                assert not halted and thread == "[idle]"
                halted, halts = True, halts + 1
            elif event == "cpu/resume":
                assert halted is not False and thread == "[idle]"
                halted = False
            elif halted:
                assert event in ("irq/enter", "irq/exit", "irq/return", "sched/wake",
                                 "sched/migrate"), event
    assert halts >= 5  # at least one for each `sleep`


def test_samples_lie_on_the_trace(results):
    """Maskable interrupts and NMIs; those of `profile` are all there."""
    result = results["samples"]
    seen = re.findall(r"^Samples: \d+ expected, (\d+) taken, 0 lost.*\n(\d+)$", result.output,
                      re.MULTILINE)
    assert len(seen) == 2, result
    for taken, traced in seen:
        assert 50 < int(taken) == int(traced), result
    assert "@profile/sample: a sample cannot be of a sample" in result.errors


def test_a_request_through_all_layers(results, out):
    """docs/trace.md: from a client by a service to a server, which waits for an interrupt,
    and back; by its flow, and by who wakes whom."""
    assert results["request"].status == 0, results["request"]
    report = subprocess.run([STROBE, "trace", "report", out / "request"], check=True,
                            capture_output=True, text=True).stdout
    lines = re.findall(r"^ +\d+\.\d{9} +\d+ +\d+ +(\S+) +(\S+) +(.*)$", report, re.MULTILINE)
    first = next(i for i, line in enumerate(lines)
                 if line[1] == "ipc/call" and "method=1034" in line[2])
    client, flow = lines[first][0], re.match(r"flow=\w+", lines[first][2])[0]
    steps = [n for n, line in enumerate(lines[:first + 400])
             if n >= first and line[2].startswith(flow + " ")][:5]
    assert [lines[n][1] for n in steps] == [
        "ipc/call", "ipc/take", "ipc/forward", "ipc/take", "ipc/answer"], lines[first:]
    service, server = lines[steps[1]][0], lines[steps[3]][0]
    assert len({client, service, server}) == 3
    assert lines[steps[2]][0] == service
    assert lines[steps[4]] == (server, "ipc/answer", f"{flow} result=224")

    def follows(start, *events):
        for thread, event, text in events:
            start = next(n for n in range(start, len(lines)) if lines[n][1] == event and
                         lines[n][0] in (thread, lines[n][0] if thread is None else None) and
                         text in lines[n][2])
        return start

    answered = follows(steps[3], (None, "sched/switch", f"{server} waits ->"),
                       ("[idle]", "irq/enter", "224"), ("[idle]", "sched/wake", server),
                       (None, "sched/switch", f"-> {server}"), (server, "ipc/answer", flow))
    assert answered == steps[4]
    follows(answered, (server, "sched/wake", client), (None, "sched/switch", f"-> {client}"))


def test_choice(results):
    assert "No table of threads" in results["own"].output
    output = results["chosen"].output
    assert "syscall/enter" in output and "syscall/exit" not in output
    assert "irq/enter" not in output
    assert all(line.split()[2] == "1" for line in output.splitlines()
               if re.match(r" +\d+\.\d{9} ", line))


def test_a_command_that_stops_is_traced_on(results):
    assert results["stopped"].output.splitlines() == ["goes on", "3"], results["stopped"]


def test_losses_and_cuts(results):
    lost = results["lost"]
    assert re.search(r"LOST for want of room", lost.errors), lost
    assert re.search(r"MISSING: \d+ events, for want of room", lost.output), lost
    assert "MISSING: the end: the file was cut off" in results["cut"].output


def test_full_file_system(results):
    full = results["full"]
    assert "No space left on device: the trace has ended there" in full.errors, full
    assert full.output.startswith("1\n"), full


def test_it_leaves_nothing_switched_on(results):
    before, after = (int(n) for n in
                     re.findall(r"patched +(\d+)", results["killed"].output))
    assert before > 20 and after == 0
    assert "# command: sleep 100" in results["killed"].output
    assert re.findall(r"patched +(\d+)", results["full"].output) == ["0"]


@realtime()
def test_ends_while_programs_are_started():
    """The end of a trace does not wait for a time without new tasks. (In virtual time the
    CPU of `trace` waits for its turns, up to 10 s.)"""
    run = vm("(while [ ! -e /tmp/over ]; do /bin/true; done) & (sleep 60; touch /tmp/over) & "
             "trace record -e sched/switch -o /tmp/f sleep 1; [ -e /tmp/over ] || echo before; "
             "touch /tmp/over; trace summary /tmp/f", smp=2)
    assert run.status == 0 and run.output.startswith("before\n"), run


TWICE = """
mkfifo /tmp/p; sleep 30 </tmp/p & (while [ ! -e /tmp/over ]; do :; done) &
trace record -e sched,syscall -o /tmp/p & sleep 1
kill $!; sleep 0.3; kill -0 $! && echo still; kill $!; wait $!; echo $?; touch /tmp/over
"""


def test_second_signal():
    """The first one ends the trace, the second one the writing of what is left: to a pipe
    that is full."""
    result = vm(TWICE, smp=1)
    assert result.output == "still\n1\n", result
    assert "/tmp/p: Interrupted system call: the trace has ended there" in result.errors


def test_errors(results):
    unknown = results["unknown"].errors
    assert "Near are: sched/switch" in unknown and "Near are: sched/wake" in unknown
    assert results["status"].output == "7\n"
    assert results["usage"].errors.count("Usage: trace") == 5
    assert "No such file" in results["no-file"].errors
    assert "it is no file of `trace record`" in results["no-file"].errors
    assert "no such task" in results["no-task"].errors
    assert "root may profile everything" in results["ordinary"].errors


def events_of(output):
    return [int(n) for n in re.findall(r"^# (\d+) events in", output, re.MULTILINE)]


def test_a_flight_keeps_the_last_events(results):
    """The older ones are counted; names of tasks are kept."""
    output = results["flight"].output
    flight = re.search(r"^# flight: of the last 1 s; (\d+) older events are not kept; "
                       r"all CPUs' events are here for the last 0\.(\d{3}) s$", output,
                       re.MULTILINE)
    assert int(flight[1]) > 3000 and 0 < int(flight[2]) < 500, output
    assert "MISSING" not in output and 200 < events_of(output)[0] < 2000, output
    lines = output.splitlines()
    assert re.search(r" task/exit .*status=0", output), output
    titles = next(n for n, line in enumerate(lines) if line.lstrip().startswith("Time, s"))
    assert re.search(r" (dd|\[idle\]|timeout|kernel|sh):?\d* ", lines[titles + 1]), output


def test_sums_of_a_flight_are_of_what_all_cpus_have(results):
    """The memory of one CPU is full sooner: nothing is made of what precedes that."""
    output = results["busy-flight"].output
    assert re.search(r"older events are not kept; all CPUs' events are here for", output), output
    assert "effects before their causes on other CPUs: 0\n" in output, output
    assert int(output.splitlines()[-1]) == events_of(output)[0] + 1, output  # the titles


def test_a_storm_of_events_is_throttled(results):
    """Events take at most a quarter of a CPU's time, and 25 ms; each other one is counted.
    All fit in the ring: QEMU may let the CPU of the reader wait for a second."""
    output = results["storm"].output
    assert "effects before" not in output, output  # sched/switch is not in the trace
    ns, cycles = (int(n) for n in re.search(
        r" in 0*(\d+\.\d{6}) s .*\n# cost: (\d+) cycles", output).expand(
            r"\1 \2").replace(".", "").split())
    throttled = re.search(r"^THROTTLED: (\d+) of them: events took more", output, re.MULTILINE)
    lost = re.search(r"^MISSING: (\d+) events: ", output, re.MULTILINE)
    assert int(throttled[1]) == int(lost[1]) > 50_000, output
    events = events_of(output)[0]
    assert events + int(lost[1]) > 800_000, output  # all calls, and their ends
    most = (ns * 1000 + 100_000_000) / 4 / cycles
    assert 0.9 * most < events < most + 1000, output


def test_flights_that_are_over_soon(results):
    output = results["short-flight"].output
    assert re.search(r"^# flight: of the last 9 s; 0 older events are not kept$", output,
                     re.MULTILINE), output
    assert results["flight-of-task"].output == "1\n", results["flight-of-task"]


def test_snapshots(results):
    """Each has more than the one before, and the flight goes on."""
    result = results["snapshot"]
    counts = events_of(result.output)
    assert len(counts) == 3 and counts == sorted(set(counts)), result
    assert "MISSING" not in result.output and result.output.count("# flight: ") == 3, result
    assert re.findall(r"a snapshot is in (\S+)", result.errors) == ["/tmp/s.1", "/tmp/s.2"]
    assert re.search(r"^state +taking ", result.output, re.MULTILINE), result
    assert re.search(r"^flight +60000000000 +ns ", result.output, re.MULTILINE), result
    assert "?:" not in result.output, result  # each thread has its name


def test_flights_that_end_badly(results):
    result = results["flight-killed"]
    assert result.output.splitlines()[:2] == ["1", "0"], result
    assert result.output.endswith("\n1\n"), result
    assert "there is no flight: trace record --flight SECONDS begins one" in result.errors
    result = results["no-room"]
    assert "trace: snapshot: f.1: No such file" in result.errors, result


FRAME = r"verner/frames  frame number=(\d+) cost=\d+ buffer=\d+ quality=\d+$"


def test_sensors_lie_on_the_trace(results, out):
    """All events of two programs' lists, in the order of time with the kernel's, and as the
    host prints them; what was overwritten is counted, and told where it is missing."""
    result = results["sensors"]
    assert result.status == 0 and "/frames: lost 44, spoilt 0 events" in result.errors, result
    text = (out / "sensed-text").read_text()
    lines = [line for line in text.splitlines() if re.match(r" +\d+\.\d{9} ", line)]
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)
    frames = re.findall(r" (\S+) +" + FRAME, text, re.MULTILINE)
    assert [int(number) for _, number in frames] == [*range(200), *range(44, 300)]
    threads = [thread for thread, _ in frames]
    assert len(set(threads)) == 2 and set(threads[:200]) == {threads[0]}
    missing = next(n for n, line in enumerate(lines) if "events are missing here" in line)
    assert lines[missing].endswith("- verner/frames  44 events are missing here".replace(
        "- ", "-                    ")), lines[missing]
    assert "number=44 " in lines[missing + 1]
    # Between the events of the thread that posts them.
    first = next(n for n, line in enumerate(lines) if "frame number=0 " in line)
    last = next(n for n, line in enumerate(lines) if "frame number=199 " in line)
    assert any(f" {threads[0]} " in line and "syscall/exit   ioctl = 0" in line
               for line in lines[:first])
    assert not any(f" {threads[0]} " in line and "task/exec" in line for line in lines[first:])
    assert any(f" {threads[0]} " in line and "task/exit" in line for line in lines[last:])
    sums = (out / "sensed-sums").read_text()
    assert re.search(r"^MISSING: 44 events of verner/frames, which were overwritten", sums,
                     re.MULTILINE), sums
    rows = re.findall(r"^(verner|mm|sched)/(\S+) +(\d+) +\d+ +(\d+) +(\d+)  (\w+)$", sums,
                      re.MULTILINE)
    told = collections.Counter(name for _, name, *_ in rows)
    assert told == {"frames": 2, "misses": 2, "slowest": 2, "decode.cost": 2, "steps": 2,
                    "free": 1, "fault": 1, "switch.0": 1, "switch.1": 1}, sums
    assert [row[2:] for row in rows if row[1] == "frames"] == [
        ("200", "0", "0", "list"), ("256", "44", "0", "list")], sums
    for what, file in (("report", text), ("summary", sums)):
        host = subprocess.run([STROBE, "trace", what, out / "sensed"], check=True,
                              capture_output=True, text=True)
        assert host.stdout == file


def test_rings_agree_with_the_trace(results, out):
    """The kernel's rings of switches, recorded as sensors, have those of the trace."""
    assert results["sensors"].status == 0
    switches, records = {"0": [], "1": []}, {"0": [], "1": []}
    for line in (out / "sensed-text").read_text().splitlines():
        if match := re.search(r" sched/switch.(.) switch prev=(\d+) next=(\d+) state=\d+$", line):
            records[match[1]].append(match.groups()[1:])
        elif match := re.search(r"^ +\S+ +\d+ +(.) .* sched/switch +(\S+) .*-> (\S+)$", line):
            switches[match[1]].append(tuple(
                name.replace("[idle]", ":0").split(":")[-1] for name in match.groups()[1:]))
    # The trace begins before the sensors are opened, and ends before they are read last.
    common = 0
    for cpu, all_of in switches.items():
        same = max((len(all_of) - n for n in range(len(all_of))
                    if all_of[n:] == records[cpu][:len(all_of) - n]), default=0)
        assert same > len(all_of) - 5, (all_of, records[cpu])
        common += same
    assert common > 20, (switches, records)


def test_sensors_whose_owner_or_reader_is_killed(results):
    """What a program that was killed had posted is there; of one that was there before the
    trace what it posted then is not. A tool that was killed leaves what it had read."""
    result = results["sensors-killed"]
    rows = [line.split() for line in result.output.splitlines()]
    assert [row[:2] for row in rows if row[0].endswith("frames")] == [
        ["verner/frames", "0"], ["verner/frames", "100"]], result
    assert ["verner/misses", "1"] in [row[:2] for row in rows], result
    result = results["sensors-tool-killed"]
    assert re.search(r"^MISSING: the end: the file was cut off", result.output), result
    assert re.search(r"^verner/frames +100 .* 0 +0  list$", result.output, re.MULTILINE), result


def test_sensors_and_a_full_file_system(results):
    result = results["sensors-full"]
    assert result.output.startswith("1\n") and "the trace has ended there" in result.errors
    assert "MISSING: what followed: the file system was full" in result.output, result


def test_a_flight_has_what_lists_hold(results):
    """A snapshot, of the first program; at the end the last 256 events of the second one, too.
    Nothing of that is a loss."""
    result = results["sensors-flight"]
    rows = [line.split() for line in result.output.splitlines()]
    assert [row[:2] + row[3:] for row in rows if row[0] == "verner/frames"] == [
        ["verner/frames", "100", "0", "0", "list"], ["verner/frames", "100", "0", "0", "list"],
        ["verner/frames", "256", "0", "0", "list"]], result
    assert "MISSING" not in result.output, result


def test_sensors_of_a_thread(results):
    """In the trace of a task; other threads' events are not chosen."""
    assert results["sensors-own"].output == "0\n", results["sensors-own"]


def test_sensors_that_are_not_there(results):
    result = results["sensors-wrong"]
    assert "-s none/such: there was no such sensor that can be read" in result.errors, result
    assert "-i '0': not a number of seconds from 0.001 to 3600" in result.errors, result
    assert result.output.split() == ["0", "2"], result
