"""^C while a tool records: what it has is whole, and the exit status is the program's, or
0 without one."""
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
