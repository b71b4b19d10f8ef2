"""graph: the kernel's calls as a text. Its counts are cprofile's; what is lost is in it;
it leaves nothing patched."""
import collections
import json
import re

import pytest

from machine import batch

COPY = "dd if=/dev/zero of=/dev/null bs=1 count={} 2>/dev/null"
CHOSEN = "-F 'sys_read,sys_write,kernel/fs/*,!walk_*'"
TEXT = "; sysinfo system.text | grep patched"
SCRIPTS = {
    "copy": f"graph -1 {CHOSEN} {COPY.format(100)}",
    "counted": f"cprofile --json -1 {CHOSEN} {COPY.format(100)}",
    "again": f"graph -1 {CHOSEN} {COPY.format(300)}",
    "deep": f"graph -1 -D 2 {COPY.format(3)}",
    "long": f"graph -1 --min-duration 3000 {COPY.format(20)}",
    "all": "graph -Z 200 -o /tmp/all sh -c 'sleep 0.02; true'; cat /tmp/all; rm /tmp/all",
    "lost": "graph -b 8 -o /tmp/lost sh -c 'ls -lR /bin >/dev/null; sleep 0.3; true' >/dev/null; cat /tmp/lost; rm /tmp/lost",
    "missed": "graph -F 'shed_*' true",
    "none": "graph -F 'sched_*' -Z 60000 true",
    "no-task": "graph -t 4194304",
    "no-program": "graph /nothing",
    "full": "graph -1 -o /dev/full true" + TEXT,
    "status": "graph -1 -F 'sys_*' sh -c 'exit 7' >/dev/null",
    "target-killed": "graph -1 -F 'sys_*' sh -c 'kill -9 $$' >/dev/null; echo $?" + TEXT,
    "usage": "graph -D 257 true; graph -1; graph -b 7 true; graph -F '!' ls",
    "two": """
graph -F 'kernel/syscall/*' -o /tmp/two sleep 2 & sleep 0.5
graph true; echo $?; cprofile true; echo $?; cprofile get; cprofile reset; wait
rm /tmp/two; sysinfo system.text | grep patched
""",
    "killed": """
graph -o /tmp/killed sleep 100 &
until sysinfo system.text | grep -q 'patched *[0-9][0-9][0-9][0-9] '; do sleep 0.1; done
sysinfo system.text | grep patched; kill -9 $!; wait; sleep 0.1; sysinfo system.text | grep patched
graph -1 -F sys_exit_group true | tail -n 1; rm /tmp/killed
""",
    "ordinary": "su user -c 'graph true'",
}
# CPU, thread, duration, indentation, what
LINE = re.compile(r"(..\d)  (.{16}\S*) (.{9})  ( *)(\S.*)")


@pytest.fixture(scope="module")
def results():
    return batch(SCRIPTS, "--icount", "3", smp=2)


def lines(result):
    """(cpu, thread, duration in ns or None, depth, text) of each line of a call."""
    units = {"ns": 1, "us": 1000, "ms": 1000000}
    for line in result.output.splitlines():
        found = LINE.fullmatch(line)
        if not found or "----" in line or "====" in line:
            continue
        cpu, thread, time, space, text = found.groups()
        time = time.strip()
        ns = float(time[:-2]) * units[time[-2:]] if time else None
        yield int(cpu), thread.strip(), ns, len(space) // 2, text


def calls_of(result):
    """How often each function was called."""
    calls = collections.Counter()
    for *_, text in lines(result):
        found = re.fullmatch(r"([\w.]+)(\(\);| \{)", text)
        if found:
            calls[found[1]] += 1
    return calls


def patched(output):
    return [int(n) for n in re.findall(r"patched +(\d+)", output)]


def test_counts_are_those_of_cprofile(results):
    counted = results["counted"]
    assert counted.status == 0, counted
    counts = collections.Counter()
    for path in json.loads(counted.output[counted.output.index("{"):])["paths"]:
        counts[path["function"]] += path["calls"]
    for root in ("[threads]", "[interrupts]", "[idle]"):
        del counts[root]
    graph = calls_of(results["copy"])
    for name in ("file_unref", "take"):  # cprofile's child has one descriptor more
        del counts[name], graph[name]
    assert graph == +counts
    more = calls_of(results["again"]) - calls_of(results["copy"])
    assert more["sys_read"] == more["sys_write"] == 200


def test_calls_nest_and_end(results):
    """Each line that opens a call has one that closes it, at the same depth."""
    stack = []
    for _, _, _, depth, text in lines(results["copy"]):
        if text.endswith("{"):
            assert depth == len(stack), text
            stack.append(text[:-2])
        elif text.startswith("} (no return: "):
            assert stack.pop() == text[len("} (no return: "):-1]
        elif text.startswith("}"):
            assert stack and text[2:].startswith(stack.pop()), text
            assert depth == len(stack)
    assert all("system call exit" in call or "exit" in call for call in stack), stack


def test_a_call_is_as_long_as_those_in_it(results):
    inner = collections.defaultdict(float)  # by depth
    for _, _, ns, depth, text in lines(results["copy"]):
        if ns is None or "[" in text:
            continue
        if text.startswith("}"):
            assert ns * 1.01 + 100 >= inner[depth + 1], text
        inner[depth + 1] = 0
        inner[depth] += ns


def test_depth_and_duration_limit_it(results):
    functions = [(depth, text) for _, _, _, depth, text in lines(results["deep"])
                 if not text.startswith(("[", "}", "-"))]
    # Two calls, in a system call or a fault.
    assert max(depth for depth, _ in functions) == 2
    assert "MISSING" in results["deep"].output
    long = [(ns, text) for _, _, ns, _, text in lines(results["long"]) if ns is not None]
    assert len(long) > 5 and all(ns >= 3000 for ns, _ in long)
    assert calls_of(results["long"])["sys_execve"] == 1


def test_all_cpus_are_in_it(results):
    output = results["all"].output
    assert {cpu for cpu, *_ in lines(results["all"])} == {0, 1}
    assert "[interrupt " in output and "[system call " in output
    assert re.search(r"---- sleep:\d+ waits -> \[idle\] ----", output)
    away = re.search(r"-> sleep:\d+, which was away for ([\d.]+)ms", output)
    # It leaves after the call has begun, from which its 20 ms count.
    assert away and 19.5 <= float(away[1]) < 30
    assert "[system call nanosleep]" in output
    assert "[page fault at " in output and "-- forks task " in output
    assert "-- wakes " in output and "-- executes a new program --" in output


def test_losses_are_in_it(results):
    output = results["lost"].output
    told = [int(n) for n in re.findall(r"==== (\d+) events are LOST ====", output)]
    lost = int(re.search(r"MISSING: (\d+) events, lost", output)[1])
    assert told and sum(told) <= lost


def test_it_leaves_nothing_patched(results):
    before, after = patched(results["killed"].output)
    assert before > 1000 and after == 0
    assert "1 of them calls" in results["killed"].output
    for name in ("full", "target-killed", "two"):
        assert patched(results[name].output) == [0], name


def test_errors(results):
    assert "no such function" in results["missed"].errors
    assert "sched_" in results["missed"].errors.split("Near are:")[1]
    assert "choose no function" in results["none"].errors
    assert "no such task" in results["no-task"].errors
    assert results["no-program"].status == 127
    assert "No space left" in results["full"].errors
    assert results["status"].status == 7
    assert "137\n" in results["target-killed"].output
    assert results["usage"].errors.count("Usage: graph") == 4
    two = results["two"].errors
    assert two.count("traces the kernel's calls already") == 2
    assert two.count("there is no trace") == 2
    assert "root may profile everything" in results["ordinary"].errors
