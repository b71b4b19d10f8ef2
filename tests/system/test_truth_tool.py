"""tools/truth: profiles against exact counts, and runs that do not repeat."""
import json
import math
import re
import subprocess

import pytest

from machine import ROOT, PATIENCE
from statistic import FALSE_ALARM, chance, chi_square_bound, deviations, tail
from tiers import drawn

STROBE = f"{ROOT}/build/strobe"
ROUNDS = 60


def run(*arguments):
    return subprocess.run([f"{ROOT}/tools/truth", *map(str, arguments)], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=4 * PATIENCE)


def truth(*arguments, status=0):
    done = run(*arguments)
    assert done.returncode == status, done
    return done.stdout, done.stderr


def test_chi_square():
    """The tail has the values of closed forms and of tables."""
    for degrees in (2, 4, 10, 60):
        for value in (0.5, 10, 60, 300):
            terms = sum((value / 2) ** k / math.factorial(k)
                        for k in range(degrees // 2))
            assert math.isclose(tail(degrees, value), math.exp(-value / 2) * terms,
                                rel_tol=1e-9)
    for value in (0.01, 1, 20, 500):
        assert math.isclose(tail(1, value), math.erfc(math.sqrt(value / 2)), rel_tol=1e-9)
    assert math.isclose(tail(5, 11.0705), 0.05, rel_tol=1e-4)
    assert math.isclose(tail(4, chi_square_bound(4)), FALSE_ALARM, rel_tol=1e-3)


@drawn
def test_known_shares(tmp_path):
    """The exact shares of tester are 2 : 1 : 1, profile agrees with them, and a profile
    in which 5 % of the samples are at a wrong function does not."""
    out, _ = truth("--json", "--tool", "profile", "--keep", tmp_path, "tester", ROUNDS)
    report = json.loads(out)
    exact, tool = report["exact"], report["tools"][0]
    assert exact["burn_a"] == 2 * exact["burn_b"] == 2 * exact["burn_c"]
    assert sum(exact.values()) == report["instructions"]
    assert tool["test"]["p"] > 1e-9 and tool["test_same_run"]["p"] > 1e-9, tool

    # The loops are not changed by sampling, which takes a few percent.
    for name in ("burn_a", "burn_b", "burn_c"):
        assert tool["exact"][name] == exact[name]
    assert abs(tool["instructions"] - report["instructions"]) < 10_000, tool
    assert tool["itself"] > 1_000_000, tool

    rows = subprocess.run([STROBE, "counts", tmp_path / "profile.data"], text=True,
                          capture_output=True, check=True).stdout
    # 5 % of the samples moved from burn_a to burn_b, whatever shares were drawn: chi-square
    # is 54, whose p is 8e-12.
    both = tool["samples"]["burn_a"] + tool["samples"]["burn_b"]
    parts = {"burn_a": round(both * 0.6), "burn_b": both - round(both * 0.6)}
    wrong = re.sub(r"^\d+(?=.*\t(burn_[ab])$)", lambda row: str(parts[row[1]]), rows,
                   flags=re.MULTILINE)
    for text, status in ((rows, 0), (wrong, 1)):
        path = tmp_path / f"rows{status}"
        path.write_text(text)
        out, _ = truth("--exact", tmp_path / "alone.oracle", "--samples", path,
                       status=status)
        assert ("WRONG" in out) == bool(status), out
        assert re.search(r"^ +\d+  50\.00% .* burn_a$", out, re.MULTILINE), out


@drawn
def test_system_profile():
    """Of the whole machine's samples the command's are compared, with its children."""
    out, _ = truth("--tool", "sprofile", "--rows", "3", "seq 1500 | sort -r >/dev/null")
    assert out.count(": no difference") == 2, out
    head, shares, tests, adds = out.split("\n\n")
    assert re.match(r"sh -c 'seq .*': \d+ instructions of \d+; difference to the clock: 0",
                    head), out
    for row in shares.splitlines()[1:4]:
        assert re.fullmatch(r" *\d+ +[\d.]+% +[\d.]+% +[\d.]+ - [\d.]+  \S+", row), row
    assert re.search(r"^ *\+\d+  sprofile itself$", adds, re.MULTILINE), out


# Programs, and children that are killed before they have been in user mode.
ENDS = """i=0
while [ $i -lt 320 ]; do
    /bin/true
    [ $((i % 4)) -gt 0 ] || { sleep 9 & kill -9 $!; wait $!; }
    i=$((i + 1))
done 2>/dev/null"""


@drawn
@pytest.mark.parametrize("command", (ENDS, "/test/process"), ids=("ends", "process"))
def test_exits(command):
    """A task is profiled until it has released its memory and its files. In this number
    of samples each function that does it has its share."""
    out, _ = truth("--json", "--tool", "profile", command)
    report = json.loads(out)
    tool = report["tools"][0]
    assert tool["test"]["p"] > 1e-9 and tool["test_same_run"]["p"] > 1e-9, tool
    samples, exact = tool["samples"], tool["exact"]
    # (No tick is sampled that comes due in a sampling interrupt or just behind it, which
    # is less than a tenth of the time: docs/profiling.md, No lean.)
    due = {name: count * 20000 / 1e9 for name, count in exact.items()}
    whole, expected = sum(samples.values()), sum(due.values())
    off = deviations() * math.sqrt(expected)
    assert 0.9 * expected - off < whole < expected + off, (whole, expected)
    ends = {name: due[name] for name in (
        "pagetable_release_[k]", "free_tables_[k]", "area_free_[k]", "files_unref_[k]",
        "release_memory_[i]") if name in due}
    # None is seen by chance in 1 of 10^9 draws.
    assert sum(ends.values()) > 21, ends
    assert any(samples.get(name) for name in ends), samples
    for name, part in ends.items():
        assert chance(whole, samples.get(name, 0), part / expected) > FALSE_ALARM, (
            name, part, samples)


CLOCK = "n=$(($(date +%s) % 1000)); while [ $n -gt 0 ]; do n=$((n - 1)); done"


def test_run_that_repeats():
    out, _ = truth("--repeat", CLOCK)
    assert re.search(r": repeats: \d+ instructions, the same on each path$", out), out


def test_run_that_does_not_repeat():
    """The host's time of day decides how often a loop of the shell runs. Until the two
    runs have begun in different seconds: twice in one is possible, always is not."""
    for _ in range(20):
        done = run("--repeat", "--vm", "--qemu-args '-rtc base=utc'", CLOCK)
        if done.returncode == 1:
            break
    out = done.stdout
    assert done.returncode == 1, done
    assert re.search(r"does not repeat: \d+ instructions, then \d+; \d+ paths differ", out)
    place = re.search(r"^first executed: (\d+) instructions, then (\d+):\n +\S.*$", out,
                      re.MULTILINE)
    assert place and place[1] != place[2], out
    assert re.search(r"^most different: .*\n +busybox in task \d+, \w+: .*;main;", out,
                     re.MULTILINE), out
    assert out.endswith("leave out --vm, and STROBE_VM in the environment.\n"), out


@pytest.mark.parametrize("arguments, status, problem", [
    (["nonesuch"], 127, "nonesuch: not found"),
    (["true; exit 3"], 3, "tools/truth: status 3 of: "),
    (["--vm", "--qemu nonesuch", "true"], 1, "there is no nonesuch"),
    ([], 2, "no command"),
    (["-F", "0", "true"], 2, "0: not a whole number from 1 to 20000"),
    (["--exact", "x"], 2, "--exact and --samples go together"),
    (["--exact", "/nonexistent", "--samples", "x"], 1,
     "/nonexistent: No such file or directory"),
    (["--exact", "/etc/passwd", "--samples", "x"], 1, "/etc/passwd"),
])
def test_errors(arguments, status, problem):
    out, errors = truth(*arguments, status=status)
    assert not out and problem in errors, errors


PATHS = 1_100_000  # more than libprofile keeps in the machine


def test_many_paths_are_kept(tmp_path):
    """No instruction of a file with very many paths is left out of the views."""
    file = tmp_path / "counts"
    with open(file, "w") as out:
        out.write("oracle 1\nkernel \ncommand x\nroot 0 1 kernel thread\n")
        for i in range(1, PATHS + 1):
            out.write(f"call {i} 0 {0xc0000000 + i:x} 0\n")
        out.write("block 0 c0200000 90 0\n")
        for i in range(1, PATHS + 1):
            out.write(f"run {i} 0 1\n")
        out.write(f"total {PATHS} {PATHS}\n"
                  "clock 1 readings 1 equal 0 wrong 0 halted 0 idle 0\n")
    rows = subprocess.run([STROBE, "counts", "--no-inline", file], text=True,
                          capture_output=True, check=True).stdout
    assert sum(map(int, re.findall(r"^(\d+)\t", rows, re.MULTILINE))) == PATHS
