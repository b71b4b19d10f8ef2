"""trace: whose each event is, also without sched/switch, and the threads' names."""
import collections
import json
import re

import pytest

from chrome_trace import events_of
from exports import strobe
from machine import batch
from perfetto import BEGIN, THREADS, Perfetto

CALLS = (3000, 1000, 200, 30)
CROWD = f"/test/crowd {' '.join(map(str, CALLS))}"
# On one CPU and on two. A record has 24 bytes, and each turn begins with one of 16: in a flight
# with 8 KiB a CPU the ring wraps.
SCRIPTS = {
    "calls": f"""
trace record -e syscall -b 4096 -o /out/calls {CROWD}; trace report /out/calls >/out/calls.text
trace summary /out/calls; grep -c . /out/calls.text""",
    "wraps": f"trace record -e syscall -b 8 -o /out/wraps {CROWD}; trace report /out/wraps >/out/wraps.text",
    "flight": f"trace record -e syscall --flight 60 -b 8 -o /out/flight {CROWD}; trace report /out/flight >/out/flight.text",
    "one": f"trace record -e syscall,sched/switch -b 4096 -o /out/one {CROWD}; trace report /out/one >/out/one.text",
}


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
        r"^ +[\d.]+ +\d+ +\d+  (\S*?):?(\d+|\[idle\]) +(\S+) *(.*)$",
        (out / f"{name}.text").read_text(), re.MULTILINE)]


def getppids(out, name, event="syscall/enter"):
    return collections.Counter(int(thread) for _, thread, kind, fields in lines(out, name)
                               if kind == event and fields.split()[0] == "getppid")


@pytest.mark.parametrize("name", ("calls", "one"))
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
    strobe("trace", "--chrome", "-o", tmp_path / "json", out / "calls")
    strobe("trace", "--perfetto", "-o", tmp_path / "perfetto", out / "calls")
    chrome = json.loads((tmp_path / "json").read_text())
    assert collections.Counter(e["tid"] for e in events_of(chrome, "X")
                               if e["name"] == "getppid") == calls
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
