"""^C while a tool records: what it has is whole, and the exit status is the program's, or
0 without one. A file that cannot grow: the tool says so, and what is in it can be read."""
import re

import pytest

from machine import vm

# The tool with a program, and without; what prints its file, and what shows that all of
# it is there.
TOOLS = {
    "sprofile": ("sprofile", "sprofile", "", "Samples:"),
    "sprofile top": ("sprofile top", "sprofile top", "", " samples in "),
    "profile": ("profile", "profile -t 1", "", "Samples:"),
    "profile stat": ("profile stat", None, "", "task-clock"),
    "cprofile": ("cprofile", "cprofile", "", "Traced:"),
    "graph": ("graph -F sys_getppid", "graph -F sys_getppid", "", " of them calls"),
    "trace": ("trace record -o /tmp/f -e sched/switch",
              "trace record -o /tmp/f -e sched/switch", "trace summary /tmp/f", " events in "),
    "sensors": ("sensors record -o /tmp/f /sensors/mm/free --",
                "sensors record -o /tmp/f /sensors/mm/free", "sensors --json /tmp/f",
                '"ended": true'),
}
# As a terminal does: the signal goes to the tool and to its program.
PROGRAM = "sh -c 'kill -INT $PPID; usleep 100000; kill -INT $$'"
WITH = f"%s {PROGRAM} >/tmp/said 2>&1"
WITHOUT = "%s >/tmp/said 2>&1 & p=$!; usleep 300000; kill -INT $p; wait $p"


def outputs(commands):
    """The output of each command line, behind its status, from one machine."""
    result = vm("".join(f"{line}; echo status $?; cat /tmp/said; {show}\necho; echo ==\n"
                        for line, show in commands))
    assert result.status == 0, result
    return result.output.split("\n==\n")


@pytest.fixture(scope="module")
def ended():
    cases = [(name, how % tool, show) for name, (*tools, show, _) in TOOLS.items()
             for how, tool in zip((WITH, WITHOUT), tools) if tool]
    said = outputs([(line, show) for _, line, show in cases])
    found = {}
    for (name, *_), text in zip(cases, said):
        found.setdefault(name, []).append(text)
    return found


@pytest.mark.parametrize("name", TOOLS)
def test_status(ended, name):
    for status, output in zip((130, 0), ended[name]):
        assert output.startswith(f"status {status}\n") and TOOLS[name][3] in output, output


# Files of at most 3 KiB; what reads them, and what that says of a part.
WORK = "sh -c 'for i in 1 2 3 4 5 6; do ls -R /proc >/dev/null; done'"
FULL = {
    "profile": (f"profile -F 8000 -g -o /tmp/f {WORK}", "profile --repair /tmp/f",
                r"/tmp/f: repaired; [1-9]\d* records"),
    "sprofile": (f"sprofile -F 8000 -g -o /tmp/f {WORK}", "profile --repair /tmp/f",
                 r"/tmp/f: repaired; [1-9]\d* records"),
    "trace": (f"trace record -o /tmp/f {WORK}", "trace summary /tmp/f", "# command: sh -c"),
    "cprofile": (f"cprofile -o /tmp/f {WORK}", "strings /tmp/f | head -n 1", "."),
    "graph": (f"graph -F 'sys_*' -o /tmp/f {WORK}", "head -n 3 /tmp/f", "."),
    "sensors": (f"sensors record -i 0.001 -o /tmp/f /sensors/mm/free -- {WORK}",
                "sensors --json /tmp/f | tail -n 1", r'^\{"seconds": .*\}$'),
}


def test_no_room():
    """In the middle of a recording: status 1, a message with the file's name, and no session
    that stays."""
    script = "".join(f"(ulimit -f 6; trap '' XFSZ; {line} 2>&1 >/dev/null; echo status $?)\n"
                     f"stat -c 'size %s' /tmp/f; echo =; {show}; rm /tmp/f; echo ==\n"
                     for line, show, _ in FULL.values())
    run = vm(script + "sysinfo system.profile.sessions | wc -l; sysinfo system.profile.traces"
             " | wc -l; stats --audit >/dev/null && echo balanced")
    *parts, left = run.output.split("\n==\n")
    assert run.status == 0 and left == "1\n1\nbalanced\n", run
    for (name, (_, _, shown)), part in zip(FULL.items(), parts):
        said, content = part.split("\n=\n")
        assert re.search(rf"^{name}: .*/tmp/f: .*(the disk full|File too large)", said, re.MULTILINE)
        assert "\nstatus 1\n" in said and " records, in /tmp/f" not in said, run
        assert 1000 < int(re.search(r"size (\d+)", said)[1]) <= 3072, run
        assert re.search(shown, content, re.MULTILINE), (name, content)
