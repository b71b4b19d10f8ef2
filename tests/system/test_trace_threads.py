"""Whose each event of a trace is, also without sched/switch; and the names of threads, as
programs give them, in traces, profiles and their exports."""
import collections
import json
import re

import pytest

from exports import strobe
from machine import batch
from perfetto import BEGIN, THREADS, Perfetto

CALLS = (3000, 1000, 200, 30)
CROWD = f"/test/crowd tasks {' '.join(map(str, CALLS))}"
NAMED = (300, 100, 20, 3)
NAMED_CROWD = ' '.join(map(str, NAMED))
# On one CPU and on two. A record has 24 bytes, and each turn begins with one of 16: in a flight
# with 8 KiB a CPU the ring wraps.
SCRIPTS = {
    "calls": f"""
trace record -e syscall -b 4096 -o /out/calls {CROWD}; trace report /out/calls >/out/calls.text
trace summary /out/calls; grep -c . /out/calls.text""",
    "wraps": f"trace record -e syscall -b 8 -o /out/wraps {CROWD}; trace report /out/wraps >/out/wraps.text",
    "flight": f"trace record -e syscall --flight 60 -b 8 -o /out/flight {CROWD}; trace report /out/flight >/out/flight.text",
    "switches": f"trace record -e syscall,sched/switch -b 4096 -o /out/switches {CROWD}; trace report /out/switches >/out/switches.text",
} | {f"{how} {option}": f"""
trace record {option} -e task,sched -o /out/{how}{option} sh -c '/test/crowd {how} {NAMED_CROWD}; true'
trace report /out/{how}{option} >/out/{how}{option}.text; trace summary /out/{how}{option}"""
    for how in ("tasks", "threads") for option in ("", "-1")} | {f"samples of {how}": f"""
profile -C -g -s lapic -F 20000 -o /out/{how}.data /test/crowd {how} {NAMED_CROWD} >/dev/null
profile -C -s lapic -F 20000 --by thread /test/crowd {how} {NAMED_CROWD}"""
    for how in ("tasks", "threads")}


@pytest.fixture(scope="module", params=(1, 2))
def run(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("threads")
    return batch(SCRIPTS, "--icount", "3", "--get", str(out), smp=request.param), out


def wanted(result):
    """{thread: calls}, as the tasks said."""
    calls = {int(thread): int(n) for thread, n in
             re.findall(r"^(\d+) (\d+)$", result.output, re.MULTILINE)[:len(CALLS)]}
    assert sorted(calls.values()) == sorted(CALLS), result
    return calls


def lines(out, name):
    """(thread's name, thread, event, fields) of each line of a report."""
    return [m.groups() for m in re.finditer(
        r"^ +[\d.]+ +\d+ +\d+  (.*?):?(\d+|\[idle\]) +([a-z]+/[a-z_]+|LOST) *(.*)$",
        (out / f"{name}.text").read_text(), re.MULTILINE)]


def getppids(out, name, event="syscall/enter"):
    return collections.Counter(int(thread) for _, thread, kind, fields in lines(out, name)
                               if kind == event and fields.split()[0] == "getppid")


@pytest.mark.parametrize("name", ("calls", "switches"))
def test_each_call_is_its_threads(run, name):
    results, out = run
    calls = wanted(results[name])
    assert getppids(out, name) == calls == getppids(out, name, "syscall/exit")


def test_no_call_that_never_was(run):
    """Of each task one exit, and of its parent one fork for each."""
    results, _ = run
    table = results["calls"].output
    for call, count in ("getppid", sum(CALLS)), ("fork", len(CALLS)):
        assert re.search(rf"^{call} +{count} ", table, re.MULTILINE), table
    assert re.search(r"without an end: 0$", table, re.MULTILINE), table


def test_exports_have_each_call_in_its_thread(run, tmp_path):
    results, out = run
    calls = wanted(results["calls"])
    strobe("trace", "--perfetto", "-o", tmp_path / "perfetto", out / "calls")
    perfetto = Perfetto(tmp_path / "perfetto", tmp_path)
    assert collections.Counter(e.track for e in perfetto.events if e.kind == THREADS
                               and e.type == BEGIN and e.name == "getppid") == calls


@pytest.mark.parametrize("name", ("wraps", "flight"))
def test_what_is_kept_is_its_threads(run, name):
    """Each call that is there ends in the thread in which it began, but for those that losses
    cut: of no thread there are more than it made."""
    results, out = run
    calls = wanted(results[name])
    for event in "syscall/enter", "syscall/exit":
        seen = getppids(out, name, event)
        assert set(seen) <= set(calls) and sum(seen.values()) > 50, seen
        assert all(seen[thread] <= calls[thread] for thread in seen), seen
    open_, ended = {}, 0
    for _, thread, kind, fields in lines(out, name):
        if kind == "LOST":
            open_.clear()
        elif kind == "syscall/enter":
            assert thread not in open_, (thread, fields, open_)
            open_[thread] = fields.split()[0]
        elif kind == "syscall/exit" and thread in open_:
            ended += 1
            assert open_.pop(thread) == fields.split()[0], (thread, fields)
    assert ended > 50


# --- names ------------------------------------------------------------------

def names_said(output, calls=NAMED):
    """{thread: its name}, as the threads said (of the first command)."""
    said = re.findall(r"^(\d+) (\d+)$", output, re.MULTILINE)[:len(calls)]
    assert sorted(int(n) for _, n in said) == sorted(calls), output
    return {int(thread): f"calls {n}" for thread, n in said}


@pytest.mark.parametrize("option", ("", "-1"))
@pytest.mark.parametrize("how", ("tasks", "threads"))
def test_each_event_has_a_name(run, how, option):
    """Also those that name other tasks than the one that is traced."""
    results, out = run
    text = (out / f"{how}{option}.text").read_text()
    assert "task/fork" in text and not re.search(r"\?:\d", text), text
    assert "?:" not in results[f"{how} {option}"].output


@pytest.mark.parametrize("how", ("tasks", "threads"))
def test_a_name_is_that_of_its_time(run, how):
    results, out = run
    for thread, name in names_said(results[f"{how} "].output).items():
        seen = re.findall(rf" (calls \d+|\S+):{thread}\b",
                          (out / f"{how}.text").read_text())
        assert set(seen) == {"crowd", name}, (thread, seen)
        assert seen == sorted(seen, key=lambda n: n != "crowd")


@pytest.mark.parametrize("how", ("tasks", "threads"))
def test_samples_have_the_threads_names(run, how, tmp_path):
    results, out = run
    result, file = results[f"samples of {how}"], out / f"{how}.data"
    names = names_said(result.output)
    rows = dict(re.findall(r"% +thread (\d+) (.*)$", result.output, re.MULTILINE))
    busiest = next(thread for thread, name in names.items() if name == "calls 300")
    assert rows[str(busiest)] == "calls 300", result
    assert {name for thread, name in rows.items() if int(thread) not in names} <= {"crowd"}
    assert all(rows[str(thread)] == name for thread, name in names.items() if str(thread) in rows)
    # Of another run, whose threads have other numbers.
    text = strobe("report", "--by", "thread", file).stdout
    by_name = {name: thread for thread, name in re.findall(r"thread (\d+) (calls \d+)$", text,
                                                           re.MULTILINE)}
    thread = by_name["calls 300"]
    strobe("export", "--speedscope", "-o", tmp_path / "speedscope", file)
    assert re.search(rf'"calls 300 \(task \d+, thread {thread}\)',
                     (tmp_path / "speedscope").read_text())
    strobe("export", "--firefox", "-o", tmp_path / "firefox", file)
    tracks = {t["tid"]: (t["name"], t["processName"])
              for t in json.loads((tmp_path / "firefox").read_text())["threads"]}
    assert tracks[int(thread)] == ("calls 300", "calls 300" if how == "tasks" else "crowd")


def test_exports_of_a_trace_have_the_threads_names(run, tmp_path):
    results, out = run
    names = names_said(results["threads "].output)
    strobe("trace", "--perfetto", "-o", tmp_path / "perfetto", out / "threads")
    perfetto = Perfetto(tmp_path / "perfetto", tmp_path).threads
    for thread, name in names.items():
        assert perfetto[thread] == name
