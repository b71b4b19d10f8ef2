"""profile reconcile: the sampler and the trace of calls give the kernel's functions the
same shares of the time, on fixed workloads in virtual time: deterministic, but another
draw with each change of the kernel. So bounds are those of any draw (statistic.py)."""
import json
import math
import re

import pytest

from machine import batch
from statistic import FALSE_ALARM, chi_square, chi_square_bound, deviations
from tiers import drawn

LEAST = 0.01  # share of the functions that are judged each
COMMANDS = {
    "copy": "dd if=/dev/zero of=/dev/null bs=1 count={}",
    "files": "sh -c 'for i in $(seq {}); do ls -lR /bin /proc/self >/dev/null;"
             " cp /bin/busybox /tmp/a; rm /tmp/a; done'",
}
TIMES = {"copy": 200000, "files": 40}
# Room for all samples: in virtual time CPUs take turns, so the tool may not read for long.
# For the same reason only one CPU at a time is busy: while a CPU waits for its turn, time
# passes in the function where it is, and there are no samples.
ROOM = "-m 20"
WRONG = {
    "none": "profile reconcile",
    "two": "profile reconcile -s lapic -s pit true",
    "rate": "profile reconcile -F 0 true",
    "no-program": "profile reconcile /nothing",
    "no-source": "profile reconcile -s sundial true",
    "busy": "cprofile sleep 3 >/dev/null & sleep 1; profile reconcile true",
    "ordinary": "su user -c 'profile reconcile true'",
    "status": "profile reconcile sh -c 'exit 7'",
}


@pytest.fixture(scope="module", params=(1, 2))
def results(request):
    scripts = {name: f"profile reconcile {ROOM} --json {command.format(TIMES[name])} "
                     "2>/dev/null"
               for name, command in COMMANDS.items()}
    scripts["table"] = f"profile reconcile {ROOM} {COMMANDS['copy'].format(TIMES['copy'])} 2>&1"
    return batch(scripts, "--icount", "3", smp=request.param)


def read(result):
    assert result.status == 0, result
    return json.loads(result.output[result.output.index("{\"source"):])


class Shares:
    """Samples and own time of the judged functions, and of all others as one."""

    def __init__(self, report):
        traced = [row for row in report["functions"] if row["traced"]]
        self.samples, self.own = [], []
        self.compared, all_own = report["compared"], report["own"]
        assert sum(row["samples"] for row in traced) == self.compared
        assert sum(row["own"] for row in traced) == all_own
        rest = [0, 0]
        for row in traced:
            if row["own"] >= LEAST * all_own:
                self.samples.append(row["samples"])
                self.own.append(row["own"])
            else:
                rest = [rest[0] + row["samples"], rest[1] + row["own"]]
        self.functions = len(self.own)
        self.samples.append(rest[0])
        self.own.append(rest[1])
        self.shares = [own / all_own for own in self.own]

    def sigma(self, n):
        share = self.shares[n]
        return math.sqrt(self.compared * share * (1 - share))

    def sigmas(self, samples):
        return [abs(samples[n] - self.compared * share) / self.sigma(n)
                for n, share in enumerate(self.shares) if share >= LEAST]

    def agree(self, samples):
        off = self.sigmas(samples)
        return max(off) <= deviations() and \
            sum(n > 3 for n in off) <= most_beyond(len(off)) and \
            chi_square(samples, self.shares) <= chi_square_bound(len(samples) - 1)


def most_beyond(functions):
    """How many of so many functions may differ by more than 3 standard deviations."""
    chance = math.erfc(3 / math.sqrt(2))
    tail = 1.0
    for n in range(functions + 1):
        tail -= math.comb(functions, n) * chance ** n * \
            (1 - chance) ** (functions - n)
        if tail < FALSE_ALARM:
            return n
    return functions


@drawn
@pytest.mark.parametrize("name", COMMANDS)
def test_samples_and_trace_agree(results, name):
    report = read(results[name])
    found = Shares(report)
    assert not report["missing"] and not report["lost"]
    assert found.functions >= 6 and found.compared > 1000, report
    assert found.agree(found.samples), results[name]


@drawn
@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_share_is_found(results, name):
    """Samples of the largest function that are charged to the smallest: as many as 4 %
    of all."""
    found = Shares(read(results[name]))
    moved = math.ceil(0.04 * found.compared)
    wrong = list(found.samples)
    large = found.own.index(max(found.own))
    small = found.own.index(min(found.own[:-1]))
    wrong[large] -= moved
    wrong[small] += moved
    assert not found.agree(wrong), (moved, found.samples, found.own)


@drawn
@pytest.mark.parametrize("name", COMMANDS)
def test_the_tool_judges_as_it_should(results, name):
    report = read(results[name])
    found = Shares(report)
    off = found.sigmas(found.samples)
    assert report["judged"] == len(off)
    assert report["within"] == sum(n <= 3 for n in off)
    assert report["agree"] == (max(off) <= report["bound"])
    assert math.erfc(report["bound"] / math.sqrt(2)) * len(off) == \
        pytest.approx(0.001, rel=0.02)


def test_functions_that_jump_to_assembler_code_have_its_time(results):
    """zero_user's last instruction is a jump to user_zero, which has no site."""
    rows = {row["function"]: row for row in read(results["copy"])["functions"]}
    assert rows["zero_user"]["samples"] > 20
    assert not rows["user_zero"]["traced"] and rows["user_zero"]["in"] > 20


def test_table(results):
    result = results["table"]
    assert result.status == 0, result
    rows = re.findall(r"^ *[0-9.]+% +[0-9.]+% +[0-9.]+% +[0-9.]+% +[-+][0-9.]+[ !] +\d+ "
                      r" (\S.*)$", result.output, re.MULTILINE)
    assert len(rows) > 5 and rows[-1] == "all others", result
    assert re.search(r"^Sampled: \d+ times in the kernel, by \S+ at 4000 Hz",
                     result.output, re.MULTILINE)
    assert "MISSING" not in result.output
    assert re.search(r"^\d+ of \d+ functions with 1 % or more agree within 3 sigmas",
                     result.output, re.MULTILINE)


@pytest.fixture(scope="module")
def wrong():
    return batch({name: f"({command}) 2>&1" for name, command in WRONG.items()},
                 "--icount", "3")


@pytest.mark.parametrize("name, status, said", [
    ("none", 2, "nothing to profile: give a command"),
    ("two", 2, "-s: one source"),
    ("rate", 2, "-F"),
    ("no-program", 127, "/nothing: no such program"),
    ("no-source", 1, "sundial"),
    ("busy", 1, "traces the kernel's calls already"),
    ("ordinary", 1, ""),
])
def test_bad_input(wrong, name, status, said):
    assert wrong[name].status == status and said in wrong[name].output, wrong[name]


def test_the_status_is_the_commands(wrong):
    assert wrong["status"].status == 7, wrong["status"]
    assert "too few samples" in wrong["status"].output
