"""The table of costs: complete, no operation dearer than on Linux, monitoring linear in
the number of tasks; and the cost of accounting."""
import re
import subprocess

import pytest

from machine import LONG_PATIENCE, ROOT, vm


def run(tool):
    return subprocess.run([f"{ROOT}/tools/bench/{tool}", "--check"],
                          capture_output=True, text=True, timeout=LONG_PATIENCE)


@pytest.fixture(scope="module")
def table():
    """{operation: cost} of Strobe's column."""
    done = run("run")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^(.+?) {2,}[\d,-]+ +[\d,-]+ +([\d,]+)", done.stdout,
                      re.MULTILINE)
    assert len(rows) == len(done.stdout.splitlines()) - 1, done.stdout
    return [(text, int(cost.replace(",", ""))) for text, cost in rows]


def test_no_operation_is_dearer_than_on_linux(table):
    assert len(table) == 74, table


def test_tools_that_name_functions_are_fast(table):
    """They ask for the names that they print, a hundred of 2,500, many at once, and the
    kernel finds nodes by search: 1.8, 2.1 and 1.1 millions, 3.0, 7.0 and 2.1 with the
    whole list. `graph` prints 2,000 lines, and has a ring of 1 MiB."""
    costs = dict(table)
    assert costs["cprofile -1 true"] < 2.0e6, costs
    assert costs["graph true"] < 2.25e6, costs
    assert costs["sysinfo: the whole tree"] < 1.3e6, costs


def test_kgmon_begins_without_lists_of_functions():
    """The command, a child of the shell, and the task in the background: 1.5 millions (8,
    when the one looked each function up and the other sorted all symbols)."""
    done = vm("kgmon -b; sysinfo system.tasks; kgmon -e", "--icount", "0", smp=1)
    titles, *rows = (line.split() for line in done.output.splitlines())
    tasks = {row["name"]: row for row in (dict(zip(titles, row)) for row in rows)}
    used = [int(tasks["kgmon"][c]) for c in ("user", "kernel")]
    used += [int(tasks["sh"][c]) for c in ("child_user", "child_kernel")]
    assert min(used) > 0 and sum(used) < 1.8e6, (used, done)


def test_the_program_itself_runs_on_linux_for_the_other_column():
    """Each operation that bench measures on both has a cost of Linux, and linux.txt
    says how it was measured."""
    text = open(f"{ROOT}/tools/bench/linux.txt", encoding="ascii").read()
    made = re.findall(r"^([a-z0-9-]+) \d+$", text, re.MULTILINE)
    assert "Measured by: tools/bench/linux" in text
    both = vm("bench --help").output.split("  calls\n")[1].split("  yields\n")[0]
    assert {*made} == {*both.split()} - {"jobs"} | {"boot"}


@pytest.mark.parametrize("steps, memory, failed", [
    ("watch", "128", "system-tasks-1000 failed: fork: "),
    ("jobs", "256", "sh-two-programs failed: the child's status"),
])
def test_a_step_that_fails_is_reported(steps, memory, failed):
    """A failed step prints no result; earlier results are printed, and no task remains.
    (Too little memory for 1,000 tasks; a shell that cannot run cat.)"""
    done = vm(f"rm /bin/cat; bench {steps}; s=$?; "
              "test $(ps | grep -c 'bench [w]atch') = 0 && exit $s",
              "--mem", memory, "--icount", "1", smp=1)
    assert done.status == 1, done.output + done.errors
    assert f"bench: {failed}" in done.errors, done.errors
    assert failed.split()[0] not in done.output
    assert re.search(r"^[a-z0-9-]+ \d+$", done.output, re.MULTILINE)


def test_no_task_outlives_a_bench_that_is_killed():
    """Here by SIGKILL, while 1,000 children sleep or fewer."""
    done = vm("bench watch >/dev/null & while [ $(pidof bench | wc -w) -lt 4 ]; do sleep 0.01; "
              "done; kill -KILL $!; while pidof bench >/dev/null; do sleep 0.01; done; "
              "echo none is left", "--icount", "1", smp=1)
    assert done.output == "none is left\n", done


def test_watching_is_linear_in_the_number_of_tasks(table):
    """Another task costs the same with 1,000 tasks as with 10; a refresh of top each
    second with 100 tasks takes less than 1 % of 10^9 instructions."""
    costs = [cost for _, cost in table[-6:]]
    for ten, hundred, thousand in (costs[:3], costs[3:]):
        assert (thousand - hundred) / 900 < 1.3 * (hundred - ten) / 90, costs
    assert costs[4] < 10_000_000, costs


def test_symbols():
    """A million samples find their functions; the time is printed, not checked."""
    assert " 10000 functions hit, 0 without a symbol: " in run("symbols").stdout


def test_accounting():
    """Accounting costs at most 30 instructions a system call, in and out."""
    done = run("accounting")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^a.*? +(\d+) +(\d+) +(\d+)$", done.stdout, re.MULTILINE)
    assert len(rows) == 3, done.stdout
    for accounting, counts, everything in rows:
        assert 10 < int(accounting) + int(counts) < int(everything) < 5000
