"""profile stat: the counts of programs with known behaviour."""
import json
import re

import pytest

from machine import batch
from tiers import BOTH

WHY = "no performance counters: "

SCRIPTS = {
    "plain": "profile stat tester 20",
    "pmu": "profile stat --json -e cycles,r00c0:u,instructions:k true",
    # 20 tasks with some system calls and page faults each.
    "children": "profile stat --json -e system-calls,page-faults sh -c"
                " 'for i in 1 2 3 4 5 6 7 8 9 10; do busybox true;"
                " busybox true; done'",
    "no children": "profile stat --no-children --json -e system-calls"
                   " sh -c 'tester 30; true'",
    "with children": "profile stat --json"
                     " -e task-clock,user-time,kernel-time,system-calls"
                     " sh -c 'tester 30; true'",
    "calls": "profile stat --json -e system-calls dd if=/dev/zero of=/dev/null"
             " bs=1 count=5000 2>/dev/null",
    "faults": "profile stat --json -e page-faults dd if=/dev/zero of=/dev/null"
              " bs=4M count=1 2>/dev/null",
    "switches": "profile stat --json -e context-switches,cpu-migrations"
                " sh -c 'yes | head -n 1; usleep 1000; usleep 1000'",
    "one cpu": "taskset 1 profile stat --json -e cpu-migrations tester 5",
    "threads": "profile stat --json -e task-clock /test/threads",
    "odd name": r"""name=$(printf '/tmp/a\033[2Jb'); cp /bin/tester "$name"
        cd /tmp; profile -o f "$name" 1 >/dev/null
        { profile stat "$name" 1; profile diff f f; profile "$name.no"
          profile diff f /tmp; } 2>&1""",
    "left over": "profile stat sh -c 'sleep 100 & exit 4'",
    "killed": "profile stat --json -e task-clock sh -c 'kill -9 $$'",
    "killed tool": "profile stat tester 100000 & p=$!;"
                   " until pidof tester >/dev/null; do usleep 20000; done;"
                   " kill -9 $p; wait $p; echo $?; killall tester",
    "nested": "profile stat profile stat tester 2 | grep -c elapsed",
    "with profile": "profile -C --json profile stat tester 10 |"
                    " grep -c task-clock",
    "unknown": "profile stat -e sundials true",
    "too many": "profile stat -e " + ",".join(["cycles"] * 17) + " true",
    "empty": "profile stat -e ,cycles true",
    "nothing": "profile stat",
    "missing": "profile stat nothing-of-that-name",
    "no program": "profile stat /etc/passwd",
    "help": "profile stat --help",
    # 16 concurrent sessions count, the 17th is refused; then there is room again.
    "sixteen": "for i in $(seq 16); do profile stat sleep 60 >/dev/null & done;"
               " until [ $(ps | grep -v profile | grep -c ' [s]leep 60$')"
               " -ge 16 ]; do"
               " usleep 20000; done;"
               " profile stat true; killall sleep; wait; profile stat true"
               " >/dev/null && echo again",
    # More than the maximum of sessions, ended in different ways.
    "storm": "for i in $(seq 24); do profile stat tester 30 >/dev/null &"
             " p=$!; usleep 3000; case $((i % 3)) in 0) kill -9 $p;;"
             " 1) killall tester;; 2) kill $p; esac; wait $p; killall tester;"
             " done 2>/dev/null; for i in $(seq 16); do"
             " profile stat true >/dev/null || echo bad; done",
}


@pytest.fixture(scope="module", params=BOTH)
def results(request):
    return batch(SCRIPTS, smp=request.param)


def counts(result):
    assert result.status == 0, result
    report = json.loads(result.output[result.output.index("{\n"):])
    return {c["event"]: c for c in report["counts"]}


def value(results, name, event):
    count = counts(results[name])[event]
    assert count["counted"], count
    return count["value"]


def test_text(results):
    lines = results["plain"].output.splitlines()
    assert lines[0].startswith("Counts of /bin/tester (task ")
    text = results["plain"].output
    for name in ("task-clock", "context-switches", "page-faults",
                 "system-calls"):
        assert f"   {name}" in text and f"not counted   {name}" not in text
    for name in ("cycles", "instructions", "cache-misses"):
        assert f"not counted   {name}: {WHY}" in text
    assert lines[-1].endswith(" s   elapsed")


def test_the_screen_adds_up(results):
    """User and kernel time add up to the task clock, which divided by the elapsed time is
    the CPUs used, to the last printed digit."""
    text = results["plain"].output
    clock, user, kernel = (
        round(float(re.search(rf"^ *([\d.]+) ms   {name}", text, re.MULTILINE)
                    [1]) * 1e6) for name in ("task-clock", "user-time",
                                             "kernel-time"))
    elapsed = float(re.search(r"^ *([\d.]+) s   elapsed$", text, re.MULTILINE)
                    [1])
    assert clock == user + kernel, text
    assert f"# {clock / elapsed / 1e9:.3f} CPUs used" in text, text


def test_no_counters_is_said(results):
    """Without hardware counters their events are reported as not counted."""
    for count in counts(results["pmu"]).values():
        assert not count["counted"] and count["value"] == 0
        assert count["why"].startswith(WHY)


def test_system_calls(results):
    """System calls are 5000 reads and writes, and those of start and end."""
    calls = value(results, "calls", "system-calls")
    assert 10000 < calls < 10100


def test_page_faults(results):
    """Page faults are one for each page of a 4 MiB buffer."""
    faults = value(results, "faults", "page-faults")
    assert 1024 < faults < 1224


def test_children(results):
    all_ = counts(results["with children"])
    assert value(results, "no children", "system-calls") < \
        all_["system-calls"]["value"]
    clock = all_["task-clock"]["value"]
    parts = all_["user-time"]["value"] + all_["kernel-time"]["value"]
    assert clock == parts
    # 20 children, each with the calls and faults of start and end.
    assert value(results, "children", "system-calls") > 20 * 3
    assert value(results, "children", "page-faults") > 20 * 10


def test_switches(results):
    assert value(results, "switches", "context-switches") >= 3
    assert value(results, "one cpu", "cpu-migrations") == 0
    assert value(results, "threads", "task-clock") > 0


@pytest.mark.parametrize("name,status,output,errors", [
    ("left over", 4, "1   of its tasks live on", ""),
    ("killed", 137, "task-clock", ""),
    ("killed tool", 0, "137\n", ""),
    ("nested", 0, "2\n", ""),
    ("with profile", 0, "1\n", ""),
    ("unknown", 2, "", "-e sundials: no such event"),
    ("too many", 2, "", "16 events at most"),
    ("empty", 2, "", "invalid event name"),
    ("nothing", 2, "", "nothing to count: give a program"),
    ("missing", 127, "", "no such program"),
    ("no program", 126, "", "chmod +x"),
    ("help", 0, "cpu-migrations", ""),
    ("sixteen", 0, "again\n", "16 programs are being counted already"),
    ("storm", 0, "", ""),
])
def test_behaviour(results, name, status, output, errors):
    result = results[name]
    assert result.status == status, result
    assert output in result.output and errors in result.errors, result
    assert "bad" not in result.output, result


def test_names_are_harmless(results):
    """Names are harmless in titles, commands and error messages, too."""
    said = results["odd name"].output
    assert "\x1b" not in said
    for text in ("Counts of /tmp/a?[2Jb (task", "-o f /tmp/a?[2Jb 1\n",
                 "profile: /tmp/a?[2Jb.no: no such program",
                 "profile: /tmp: Is a directory"):
        assert text in said, said
