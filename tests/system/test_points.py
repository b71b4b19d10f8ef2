"""Trace points as sample sources (profile -e @GROUP/NAME): every event is a sample, with
its chain; counts are the kernel's; weights; what is left off when it ends."""
import json
import math
import re
import subprocess

import pytest

from machine import batch, vm
from statistic import deviations
from tiers import drawn

WORK = "dd if=/dev/zero of=/dev/null bs=1 count=2000"
TREE = f"-g -e @syscall/enter -c 10 --json {WORK} 2>/dev/null"
ALLOCATES = "sh -c 'for i in 1 2 3 4 5 6 7 8; do cat /dev/null; done'"
# What a row of a point in the heap would be, if it were not of the caller.
HELPERS = re.compile(r"emit_|tell_|slab_|kmalloc$|kzalloc$|kfree$|kstrdup$|large_alloc")
PATCHED = "sysinfo system.text | grep patched"
SCRIPTS = {
    "calls": f"profile -e @syscall/enter --json {WORK} 2>/dev/null",
    "both": f"profile -e @syscall/exit,@page/fault --json {WORK} 2>/dev/null",
    "stat": f"profile stat -e system-calls,page-faults --json {WORK} 2>/dev/null",
    "tenth": f"profile --fixed -e @syscall/enter -c 10 --json {WORK} 2>/dev/null",
    "about": f"profile {TREE}",
    "step": f"profile --fixed {TREE}",
    "switches": "profile -C -g -e @sched/switch sh -c 'sleep 0.01; true'",
    "bytes": "profile -e @heap/alloc:bytes --json cat /dev/null",
    "freed": f"profile -C -e @heap/free --json {ALLOCATES}",
    "each": f"profile -C -e @heap/alloc:bytes --json {ALLOCATES}",
    "kilobytes": f"profile -C -e @heap/alloc:bytes -c 1024 --json {ALLOCATES}",
    "exception": f"profile -e @trap/exception,@page/fault_end --json {WORK} 2>/dev/null",
    "objects": "profile -e @heap/alloc --json cat /dev/null",
    "text": f"profile -e @page/fault {WORK} 2>/dev/null",
    "file": "sprofile -e @sched/wake -o /out/wakes.data sh -c 'cat /etc/passwd | cat' >/out/report",
    "wrong": """
for e in @page/falt @pages/fault @page/fault:adress @ @page page/fault; do
    profile -e $e true; echo "status $?"
done
profile -s lapic -e @page/fault true; profile -F 100 -e @page/fault true; echo "status $?"
""",
    "ordinary": """
su user -c 'profile -e @heap/alloc:object cat /dev/null'; echo "status $?"
su user -c 'profile -e @heap/alloc cat /dev/null'; echo "status $?"
""",
    "killed": f"""
sleep 1.2; {PATCHED}; profile -e @sched/switch,@irq/enter sleep 100 & sleep 0.3; {PATCHED}
kill -9 $!; wait; sleep 1.2; {PATCHED}
""",
    "shared": f"""
sprofile -e @syscall/enter -c 7 --for 1 >/tmp/one & sleep 0.1
profile -e @syscall/enter --json {WORK} 2>/dev/null; wait; rm /tmp/one
""",
}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("points")


@pytest.fixture(scope="module")
def results(out):
    return batch(SCRIPTS, "--icount", "3", "--get", str(out), smp=2)


def report(results, name):
    assert results[name].status == 0, results[name]
    return json.loads(results[name].output)


def happened(r):
    """What the session accounts for of its target."""
    assert r["lost"] == 0 and r["missed"] == 0 and r["unknown"] == 0, r
    return r["taken"] + r["throttled"]


def test_every_event_is_accounted_for(results):
    counts = {c["event"]: c["value"] for c in report(results, "stat")["counts"]}
    calls, faults = counts["system-calls"], counts["page-faults"]
    assert calls > 4000 and faults > 10
    assert happened(report(results, "calls")) == calls
    exits, of_faults = report(results, "both")["events"]
    assert happened(exits) == calls # exec returns, exit_group does not
    assert happened(of_faults) == faults
    assert of_faults["event"] == "page/fault" and of_faults["period"] == 1


def test_rows_are_what_caused_the_events(results):
    """System calls and page faults: the program's code. Others: the kernel's."""
    exits, faults = report(results, "both")["events"]
    traps, ends = report(results, "exception")["events"]
    for r in (report(results, "calls"), exits):
        assert r["user"] == r["taken"], r
        assert {row["image"] for row in r["rows"]} == {"/bin/busybox"}, r
        assert sum(row["samples"] for row in r["rows"]
                   if row["symbol"] == "__syscall_cp_c") >= 4000, r # read, write
    for r in (faults, traps, ends):
        assert r["user"] > 0.8 * r["taken"], r # copies to and from the program, too
        assert len(r["rows"]) > 10, r
    for name in ("each", "freed"):
        r = report(results, name)
        assert r["kernel"] == r["taken"] > 20 and len(r["rows"]) > 4, r
        assert not [row for row in r["rows"] if HELPERS.match(row["symbol"])], r


def test_units_of_a_field_are_counted(results):
    """A sample for each 1024 bytes, however many objects that is. (The N of a CPU also
    count the profiler's allocations, between those of the program.)"""
    each, r = report(results, "each"), report(results, "kilobytes")
    total, counted = (sum(row["period"] for row in x["rows"]) for x in (each, r))
    assert total > 20 * 1024 and counted % 1024 == 0
    assert r["taken"] < each["taken"] / 2
    assert abs(counted - total) <= 1024 * (r["cpus"] + r["others"] + each["others"] / 4), (
        counted, total, r["others"])


def test_each_tenth(results):
    r, all_calls = report(results, "tenth"), report(results, "calls")
    assert r["throttled"] == 0
    others = r["others"] + all_calls["others"] # the N of a CPU count all tasks
    assert abs(10 * r["taken"] - happened(all_calls)) <= 10 * (others + r["cpus"]), r
    assert r["rows"][0]["period"] == 10 * r["rows"][0]["samples"]


def callers(nodes, found):
    for node in nodes:
        name = node["name"].split()[0]
        found[name] = found.get(name, 0) + node["total"]
        callers(node["calls"], found)
    return found


@drawn
def test_one_of_ten(results):
    """It is drawn by chance, as calls of two kinds in turn have half of the samples each;
    each tenth call is always of the same kind."""
    r = report(results, "about")
    found = callers(r["tree"], {})
    assert r["random"] == 1 and r["period"] == 10 and r["error_of_half"] > 1, r
    chance = deviations() * math.sqrt(r["taken"] / 4)
    assert 300 < r["taken"] and chance < 0.2 * r["taken"], r
    for name in "read", "write":
        assert abs(found[name] - r["taken"] / 2) < chance, (found, chance)
    r = report(results, "step")
    found = callers(r["tree"], {})
    assert r["random"] == 0 and r["error_of_half"] is None, r
    assert min(found.get("read", 0), found.get("write", 0)) < 0.1 * r["taken"], found


def test_two_sessions_share_the_point(results):
    """The second gets the period that runs, and says so."""
    r = report(results, "shared")
    assert r["period"] == 7 and r["rows"][0]["period"] == 7 * r["rows"][0]["samples"]


def test_chains_lead_to_the_point(results):
    tree = results["switches"].output
    last = [line.split("%")[-1].strip(" -") for line in tree.splitlines() if "%" in line]
    for function in ("sched_switch_finished [kernel]", "task_wait [kernel]", "waitpid [/bin/busybox]",
                     "nanosleep [/bin/busybox]"):
        assert any(function in line for line in last), tree
    assert "Chains:  0.0% of" in tree, tree


def test_a_field_is_the_weight(results):
    by_bytes, by_objects = report(results, "bytes"), report(results, "objects")
    weight = sum(row["period"] for row in by_bytes["rows"])
    assert by_bytes["taken"] == by_objects["taken"]
    assert weight >= 16 * by_bytes["taken"] and weight % 4 == 0
    assert sum(row["period"] for row in by_objects["rows"]) == by_objects["taken"]


def test_the_report_says_that_it_is_all(results):
    text = results["text"].output
    assert "Source:  trace, every page/fault on 2 CPUs\n" in text
    assert re.search(r"^Shares:  of page/fault, all \d+ of them: exact$", text, re.M)
    assert "cycles a sample" in text and "at the points" in text


def test_perf_reads_them(results, out):
    assert results["file"].status == 0, results["file"]
    taken = int(re.search(r"(\d+) taken", (out / "report").read_text())[1])
    said = subprocess.run(["perf", "script", "-i", "wakes.data", "-F", "event,period,ip"],
                          cwd=out, capture_output=True, text=True, errors="replace")
    assert said.returncode == 0, said
    assert len(re.findall(r"^ *1 sched/wake:", said.stdout, re.M)) == taken


def test_wrong_names(results):
    r = results["wrong"]
    said = r.output + r.errors
    assert "@page/falt: no such trace point; there are page/fault page/fault_end" in said, r
    assert re.search(r"@pages/fault: no such trace point; there are sched/\.\.\. ", said), r
    assert "@page/fault:adress: no such field; there are: address error" in said, r
    assert "a trace point's name is missing" in said, r
    assert "page/fault: no such event; available: cycles" in said, r
    assert "a trace point is its own source" in said and "it has no rate (-F)" in said, r
    assert "status 0" not in r.output, r


def test_fields_are_not_shown_to_ordinary_users(results):
    """They may be the kernel's addresses."""
    r = results["ordinary"]
    assert r.output.startswith("status 1\n") and r.output.endswith("status 0\n"), r
    assert "every heap/alloc on" in r.output and "slab_alloc" not in r.output, r


def test_nothing_stays_switched_on(results):
    before, during, after = (int(n) for n in re.findall(r"^patched +(\d+)", results["killed"].output, re.M))
    assert before == after == 0 < during
