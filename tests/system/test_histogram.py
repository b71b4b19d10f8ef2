"""profile -n and -r: the histogram of address bins, and its format."""
import re
import subprocess

import pytest

from machine import ROOT, batch, vm
from shares import LOOPS, by_chance
from tiers import BOTH, drawn

TICKS = 2500  # of "tester 1600", at least

ROW = re.compile(r"([0-9A-F]{4,8})-([0-9A-F]{4,8}) \((\d\d)%\) : (\**)$|"
                 r"([0-9A-F]{4,8})-([0-9A-F]{4,8}) \((100)%\): (\*{62})$")


def parse(text):
    """Checks the histogram at the end of a program's output; returns the program, the
    highest percentage, and (start, end, percent, stars) of the bins."""
    lines = text.splitlines()
    at = max(i for i, line in enumerate(lines) if re.match(r" +0%\.", line))
    rows = []
    for line in lines[at + 1:]:
        match = ROW.match(line)
        assert match, line
        start, end, percent, stars = (g for g in match.groups()
                                      if g is not None)
        assert len(start) == len(end)
        rows.append((int(start, 16), int(end, 16), int(percent), len(stars)))
    digits = len(lines[at + 1].split("-")[0])
    scale = lines[at]
    assert len(scale) == 80 + 2 * (digits - 4)
    assert scale.startswith(" " * (10 + 2 * digits) + "0%")
    highest = int(re.search(r"\.(\d+)%$", scale).group(1))
    assert highest == max(row[2] for row in rows)
    for (_, end, _, _), (start, _, _, _) in zip(rows, rows[1:]):
        assert start == end + 1
    widths = {end - start for start, end, _, _ in rows[:-1]}
    assert len(widths) <= 1 and all(
        rows[-1][1] - rows[-1][0] <= width for width in widths)
    if highest > 0:
        assert max(row[3] for row in rows) == 62
    return lines[at - 1], highest, rows


def functions():
    """(start of burn_a, size of each) of tester's three functions."""
    text = subprocess.run(["nm", f"{ROOT}/build/user/tester"], check=True,
                          capture_output=True, text=True).stdout
    address = {name: int(value, 16) for value, _, name in
               (line.split() for line in text.splitlines()
                if len(line.split()) == 3)}
    a, b, c = (address[name] for name in LOOPS)
    assert b - a == c - b
    return a, b - a


@drawn
@pytest.mark.parametrize("smp", (1, 4))
def test_truth(smp):
    """burn_a, called twice, has 50 %, the others 25 % each, within sampling error and a
    rounding error of one."""
    a, size = functions()
    command = f"profile -n 3 -r {a:X}-{a + 3 * size - 1:X} tester 1600"
    result = vm(command, "--icount", "1", smp=smp)
    assert result.status == 0, result
    program, highest, rows = parse(result.output)
    assert program == "tester"
    for row, start, share in zip(
            rows, (a, a + size, a + 2 * size), LOOPS.values()):
        assert row[0] == start and row[1] == start + size - 1
        off = 100 * by_chance(share, TICKS) + 1
        assert abs(row[2] - 100 * share) <= off < 10, rows
        assert abs(row[3] - row[2] * 62 / highest) <= 2, rows


def test_distances():
    """A range by distances from the code's start is the same range."""
    a, size = functions()
    low = a & ~0xfff
    command = (f"profile -r {a - low:x}-{a - low + 3 * size - 1:x} -n 3 tester;"
               " profile -n 1 tester")
    result = vm(command, "--icount", "1", smp=1)
    assert result.status == 0, result
    first, second = result.output.split("tester\n")[1:]
    _, _, rows = parse("tester\n" + first)
    assert rows[0][0] == a - low and len(rows) == 3
    assert f"\n{a - low:04X}-" in first
    _, _, rows = parse("tester\n" + second)
    assert rows[0][0] == 0 and rows[0][2:] == (100, 62) and len(rows) == 1


SLEEPS = "until pidof sleep >/dev/null; do usleep 20000; done"
SCRIPTS = {
    "output": "profile -n 4 echo --help -n",
    "as given": "cp /bin/tester ./mine; profile -n 2 ./mine 40",
    "default rows": "profile -r 0-3FF tester 40",
    "many rows": "profile -r 0-3FF -n 5000 tester 10",
    "few bins": "profile -r 0-9 -n 6 tester 10",
    "large program": "profile -n 7 lua -e 'for i = 1, 1e6 do end'",
    "its failure is not ours": "profile -n 2 false",
    "killed": "profile -n 2 sh -c 'kill -9 $$'",
    "blocked": "profile -n 5 sleep 1",
    "input": "echo word | profile -n 2 cat",
    "nested": "profile -n 2 profile -n 2 true",
    "one at a time": f"profile -n 2 sleep 100 & {SLEEPS};"
                     " profile -n 2 true; s=$?; killall sleep; wait; exit $s",
    "killed profiler": f"profile -n 2 sleep 100 & p=$!; {SLEEPS}; kill -9 $p;"
                       " wait $p; killall sleep;"
                       " while killall -0 sleep 2>/dev/null; do sleep 0.1; done;"
                       " profile -n 2 true",
    "with a session": "profile --json tester 20 >a & profile -n 2 tester 20;"
                      " wait; grep -c '\"burn_a\"' a",
    "no rows": "profile -n 0 true",
    "bad rows": "profile -n -3 true",
    "bad rows 2": "profile -n 3x true",
    "empty range": "profile -r 100-100 true",
    "backward range": "profile -r 200-100 true",
    "bad range": "profile -r 12 true",
    "bad range 2": "profile -r 12-xyz true",
    "range outside": "profile -r 100-FFFFFF tester",
    "range outside 2": "profile -r 90000000-90000010 tester",
    "no program": "profile -n 3",
    "missing": "profile -n 3 nothing-of-that-name",
    "no executable": "profile -n 3 /etc/passwd",
    "text": "echo nonsense >f; chmod +x f; profile -n 3 ./f",
    "with others": "profile -n 3 -g true",
    "with a task": "profile -n 3 -t 1",
}


@pytest.fixture(scope="module", params=BOTH)
def results(request):
    return batch(SCRIPTS, smp=request.param)


@pytest.mark.parametrize("name,rows", [
    ("output", 4), ("as given", 2), ("default rows", 20), ("many rows", 1024),
    ("few bins", 5), ("large program", 7), ("its failure is not ours", 2),
    ("killed", 2), ("blocked", 5), ("input", 2), ("killed profiler", 2),
])
def test_shape(results, name, rows):
    result = results[name]
    assert result.status == 0, result
    program, _, found = parse(result.output)
    assert len(found) == rows
    if name == "as given":
        assert program == "./mine"
    if name == "output":
        assert result.output.startswith("--help -n\n"), result
    if name == "input":
        assert result.output.startswith("word\n")


def test_percentages_add_up(results):
    for name in ("large program", "default rows", "as given"):
        _, _, rows = parse(results[name].output)
        assert abs(sum(row[2] for row in rows) - 100) <= len(rows) // 2 + 1


def test_busy(results):
    result = results["one at a time"]
    assert result.status == 1 and "already profiling another" in result.errors
    assert len(parse(result.output)[2]) == 2  # the first one's
    assert results["nested"].status == 0
    assert "already profiling another" in results["nested"].errors


def test_beside_a_session(results):
    result = results["with a session"]
    assert result.status == 0 and result.output.endswith("\n1\n"), result


@pytest.mark.parametrize("name,status", [
    ("no rows", 2), ("bad rows", 2), ("bad rows 2", 2), ("empty range", 2),
    ("backward range", 2), ("bad range", 2), ("bad range 2", 2),
    ("range outside", 1), ("range outside 2", 1), ("no program", 2),
    ("missing", 127), ("no executable", 126), ("text", 126),
    ("with others", 2), ("with a task", 2),
])
def test_errors(results, name, status):
    """Errors give a status above 0, a message, and no standard output."""
    result = results[name]
    assert result.status == status, result
    assert result.output == "" and result.errors.startswith("profile: "), result
