"""The soak test (tools/soak, docs/reliability.md) for some virtual seconds: nothing
leaks, no task remains, the ledger balances; and injected errors are found."""
import importlib.machinery
import importlib.util
import re
import subprocess

import pytest

from checkers import options
from machine import PATIENCE, ROOT
from tiers import realtime

LOADER = importlib.machinery.SourceFileLoader("soak", f"{ROOT}/tools/soak")
soak = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("soak", LOADER))
LOADER.exec_module(soak)


@pytest.fixture(scope="module")
def done():
    return soak.work(12, 1, [])


def test_soak(done, capsys):
    """tools/soak finds no error in the ledger, memory by object, tasks and sessions."""
    assert done.returncode == 0, done
    assert not list(soak.problems(done.stdout, 1)), done
    assert "differences [0, 0, 0, 0, 0, 0]" in capsys.readouterr().out


@realtime()
@pytest.mark.parametrize("kernel", ("plain", "addresses"))
def test_under_faults(kernel, capsys):
    """The same while sticks, disks, memory, frames and programs fail. The plain kernel's
    books are checked to the tick; that with checkers has allocations that fail."""
    run = soak.work(4, 1, [] if kernel == "plain" else list(options(kernel)), faults=True)
    assert run.returncode == 0, run
    assert not list(soak.problems(run.stdout, 1)), run
    assert "differences [0, 0, 0, 0, 0, 0]" in capsys.readouterr().out
    for part in ("written", "network", "programs") + (("damaged",) if kernel == "plain" else ()):
        assert re.search(rf"^ *\d+ .*rounds\.{part}$", run.stdout, re.MULTILINE), run


def add(pattern, more, *, kind=""):
    """A change of the output: adds `more` to the last number that matches."""
    def change(text):
        found = list(re.finditer(f"^{kind}.*?{pattern}" if kind else pattern, text,
                                 re.MULTILINE))[-1]
        begin, end = found.span(1)
        return text[:begin] + str(int(text[begin:end]) + more) + text[end:]
    return change


def without(pattern):
    return lambda text: re.sub(pattern, "", text, flags=re.MULTILINE)


def in_listings(change):
    """A change of each list of tasks at the end."""
    def change_all(text):
        head, end = text.split("state after\n")
        first, *lists = end.split("\nlisting\n")
        lists[-1], rest = lists[-1].split("\naudit\n")
        return "".join((head, "state after\n", "\nlisting\n".join(
            [first, *map(change, lists)]), "\naudit\n", rest))
    return change_all


# A change of the output, and the error that is found then.
WRONG = {
    "a part of the work": (lambda text: "FAILED mounts\n" + text, "^mounts$"),
    "no end": (without("^audit\n"), "did not come to the end"),
    "audit": (add(r"^ *0 +all +\d+ +\d+ +(\d+)", 1), "difference that is not 0"),
    "audit, later": (add(r"^all +user .* (\d+)$", -3), "difference that is not 0"),
    "no audit": (without(r"^ *(0|all) .*\n"), "difference that is not 0"),
    "objects": (add(r"^struct task +\d+ +(\d+)", 13), "struct task: 1?[0-9] more"),
    "stacks": (add(r"^kstack +(\d+)", 9 * 16384), "^kstack: "),
    "page tables": (add(r"^pagetable +(\d+)", 69632), "^pagetable: "),
    "user": (add(r"^user +(\d+)", 69632), "^user: "),
    "file": (add(r"^file +(\d+)", 4096), "^file: "),
    "buffer": (add(r"^buffer +(\d+)", 69632), "^buffer: "),
    "task": (in_listings(lambda text: re.sub(r"^( *) 1( .* init)", r"\g<1>41\g<2>", text,
                                             flags=re.MULTILINE)),
             "task 41 init is left"),
    "state": (in_listings(lambda text: re.sub(r"^( *1 +\d+ +)\w+( .* init)",
                                              r"\g<1>stopped\g<2>", text,
                                              flags=re.MULTILINE)),
              "task 1 init is left, stopped"),
    "a session": (lambda text: text.replace("state after\n", "state after\nleft: traces: 1\n"),
                  "^left: traces: 1"),
    "a patched place": (add(r"^patched +(\d+)", 1), "patched at 1 places"),
    "user time": (add(r'"user-time", "counted": true, "value": (\d+)', 3),
                  "session of stat: user and kernel"),
    "no call": (lambda text: re.sub(
        r'("system-calls", "counted": true, "value": )\d+', r"\g<1>0", text),
        "session of stat: no system call"),
    "taken": (add(r'"user": (\d+)', 1, kind="report tree"),
              "session of tree: taken are not"),
    "rows": (add(r'"lost": (\d+)', 1, kind="report profile"),
             "session of profile: the rows have"),
    "ticks": (add(r'"others": (\d+)', 2, kind="report system"),
              "sessions of the machine are"),
    "a number": (without(r'"taken": \d+, '), "session of profile: without 'taken'"),
    "no session": (without("^report tree.*\n"), "session of tree: none"),
}


def test_a_soak_that_stands_still_is_ended(tmp_path):
    """It fails, and says what the tasks wait for."""
    (tmp_path / "run").write_text("mkfifo /tmp/x; exec cat /tmp/x\n")
    for seconds in 10, PATIENCE // 3:  # the first may not last for the start
        done = subprocess.run(
            [f"{ROOT}/tools/soak", "--minutes", "0.1", "--add", str(tmp_path), "--silence",
             str(seconds)], capture_output=True, text=True)
        if "(cat)" in done.stdout:
            break
    assert done.returncode == 1, done
    assert re.search(r"^  thread \d+ \(cat\) waits for 'pipe read'", done.stdout,
                     re.MULTILINE), done
    assert "FAILED status 124: tools/vm: not a word for " in done.stdout, done


@pytest.mark.parametrize("what", WRONG)
def test_soak_finds(done, what):
    change, said = WRONG[what]
    wrong = change(done.stdout)
    assert wrong != done.stdout, what
    found = list(soak.problems(wrong, 1))
    assert any(re.search(said, problem) for problem in found), (what, found)
