"""top without a screen: batch mode, JSON, invalid options, and its cost."""
import json

import pytest

from machine import batch, vm
from tiers import BOTH
from top_lists import names, titles

SLEEPS = "until pidof sleep >/dev/null; do usleep 10000; done"
SCRIPTS = {
    "text": "top -b -n 2 -d 0.3",
    "order": f"sleep 9 & {SLEEPS}; top -b -n 1 -d 0.2 -o NAME",
    "one task": f"sleep 9 & {SLEEPS}; top -b -n 1 -d 0.2 -t $! -v threads",
    "no such task": "top -b -t 99999",
    "no such view": "top -v nothing",
    "no such column": "top -b -o nothing",
    "no terminal": "top",
    "bad delay": "top -b -d 0",
    "bad number": "top -b -n x",
    "bad task": "top -b -t x",
    "bad option": "top --what",
    "argument": "top 42",
    "help": "top --help",
    "vga": "stty size </dev/tty0; top -n 2 -d 0.2 </dev/tty0 >/dev/tty0",
    "pipe closed": "top -b -d 0.1 | head -n 1",
    "disk full": "top -b -n 1 -d 0.1 >/dev/full",
    "json": "tester 100000 & tester 100000 & sleep 0.3;"
            "top --json -n 3 -d 0.5; kill %1 %2",
    **{f"json {view}": f"top --json -d 0.3 -v {view}"
       for view in ("threads", "ipc", "exceptions", "syscalls", "cpus")},
    "calls are counted": "sysinfo system.syscalls",
}


@pytest.fixture(scope="module", params=BOTH)
def done(request):
    return batch(SCRIPTS, smp=request.param)


def test_batch_text(done):
    r = done["text"]
    assert r.status == 0 and r.errors == "" and "\x1b" not in r.output
    assert r.output.count("top - ") == 2 and "Faults/s" in r.output


def test_batch_order(done):
    lines = done["order"].output.splitlines()
    found = names(lines)
    assert found == sorted(found, key=str.lower) and "sleep" in found


def test_batch_one_task(done):
    lines = done["one task"].output.splitlines()
    assert len(lines) == titles(lines) + 2 and " sleep" in lines[-1]


@pytest.mark.parametrize("name, status, said", (
    ("no such task", 1, "(see tasks)"),
    ("no such view", 2, "exceptions and interrupts"),
    ("no such column", 2, "%CPU"),
    ("no terminal", 1, "use -b"),
    ("bad delay", 2, "from 0.1 to 3600"),
    ("bad number", 2, "1 or more"),
    ("bad task", 2, "not a task's number"),
    ("bad option", 2, "Usage:"),
    ("argument", 2, "-t for a task"),
    ("disk full", 1, "writing the output")))
def test_errors(done, name, status, said):
    assert done[name].status == status, done[name]
    assert said in done[name].errors and done[name].output == ""


def test_help(done):
    assert done["help"].status == 0 and "Usage: top" in done["help"].output


def test_on_the_vga_console(done):
    assert done["vga"].status == 0 and done["vga"].output == "25 80\n"


def test_closed_pipe_ends_it(done):
    assert done["pipe closed"].output.count("\n") == 1


ROUNDED_SECONDS = 0.0011  # largest error of a difference of times


def test_two_busy_tasks(done):
    """Two busy tasks, on one or two CPUs, have their times, and all sums are right."""
    shown = [json.loads(line) for line in done["json"].output.splitlines()]
    assert len(shown) == 3
    for data in shown:
        others = data["tasks"]["ended_cpu"]
        for cpu in data["cpus"]:
            assert round(cpu["user"] + cpu["kernel"] + cpu["irq"] +
                         cpu["idle"], 2) == 100
            others += cpu["irq"] + cpu["idle"]
        tasks = sum(row["cpu"] for row in data["rows"])
        assert round(tasks + others, 2) == 100 * len(data["cpus"])
        for row in data["rows"]:
            assert round(row["user"] + row["kernel"], 2) == round(row["cpu"], 2)
    testers = [{row["id"]: row for row in data["rows"]
                if row["name"] == "tester"} for data in shown]
    last = testers[-1].values()
    assert len(last) == 2 and shown[-1]["rows"][0] in last
    assert all(row["user"] > row["kernel"] for row in last)
    # Each task's CPU share is its ledger time between two screens. (The host
    # influences its size.)
    for before, after in zip(testers, testers[1:]):
        (one, one_used), (other, other_used) = (
            (row["cpu"], row["time"] - before[id_]["time"])
            for id_, row in after.items())
        assert abs(one * other_used - other * one_used) <= \
            ROUNDED_SECONDS * (one + other), (before, after)


@pytest.mark.parametrize("view", ("threads", "ipc", "exceptions", "syscalls",
                                  "cpus"))
def test_json_of_each_view(done, view):
    data = json.loads(done[f"json {view}"].output)
    assert data["view"] == view
    if view != "syscalls" or done["calls are counted"].status == 0:
        assert data["rows"]
    assert data["memory"]["used"] + data["memory"]["free"] == \
        data["memory"]["total"]


def test_short_lived_tasks():
    """Short-lived tasks are in no list, but they and their cycles are counted."""
    r = vm("i=0; while [ $i -lt 100000 ]; do /bin/true; i=$((i+1)); done &"
           "top --json -d 1; kill %1", "--icount", "1", smp=1)
    data = json.loads(r.output)
    tasks = data["tasks"]
    assert tasks["short_lived"] > 5 and tasks["ended_cpu"] > 1, tasks
    assert tasks["ended"] >= tasks["short_lived"]


def test_top_is_cheap():
    """With 100 tasks, a refresh each second takes less than 1 % of a CPU."""
    r = vm("for i in $(seq 100); do sleep 100 & done;"
           "top --json -n 2 -d 1 | tail -n 1; killall sleep",
           "--icount", smp=1)
    data = json.loads(r.output.splitlines()[-1])
    assert data["tasks"]["total"] > 100
    row = next(row for row in data["rows"] if row["name"] == "top")
    assert row["cpu"] < 1.0, row
