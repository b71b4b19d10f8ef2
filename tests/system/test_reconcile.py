"""profile reconcile: the sampler and the trace of calls give the kernel's functions the
same shares of the time, on fixed workloads in virtual time: deterministic, but another
draw with each change of the kernel. So bounds are those of any draw (statistic.py)."""
import functools
import json
import math
import re

import pytest

from machine import batch
from statistic import FALSE_ALARM, chance, probability
from tiers import drawn

LEAST = 0.01  # share of the functions that are judged each
COMMANDS = {
    "copy": "dd if=/dev/zero of=/dev/null bs=1 count={}",
    "files": "sh -c 'for i in $(seq {}); do ls -lR /bin /proc/self >/dev/null;"
             " cp /bin/busybox /tmp/a; rm /tmp/a; done'",
}
TIMES = {"copy": 200000, "files": 40}
# Room for all samples, so that the tool reads them at the end.
ROOM = "-m 20"
# On 2 CPUs the shares may differ in virtual time: CPUs take turns, and while one waits for
# its turn, time passes in the function where it is, and there are no samples.
RUNS = (1, "copy"), (1, "files"), (2, "copy")
CPUS = pytest.mark.parametrize("cpus", (1, 2))
WRONG = {
    "none": "profile reconcile",
    "two": "profile reconcile -s lapic -s pit true",
    "rate": "profile reconcile -F 0 true",
    "no-program": "profile reconcile /nothing",
    "no-source": "profile reconcile -s sundial true",
    "busy": "cprofile sleep 3 >/dev/null & sleep 1; profile reconcile true; s=$?; "
            "wait; exit $s",
    "ordinary": "su user -c 'profile reconcile true'",
    "status": "profile reconcile sh -c 'exit 7'",
}


@functools.lru_cache(maxsize=None)
def results(cpus):
    scripts = {name: f"profile reconcile {ROOM} --json {command.format(TIMES[name])} "
                     "2>/dev/null"
               for name, command in COMMANDS.items() if (cpus, name) in RUNS}
    # By default there is room for what comes while the symbols are read.
    scripts["table"] = f"profile reconcile {COMMANDS['copy'].format(TIMES['copy'])} 2>&1"
    return batch(scripts, "--icount", "3", smp=cpus)


def read(result):
    assert result.status == 0, result
    return json.loads(result.output[result.output.index("{\"source"):])


class Shares:
    """Samples and own time of the judged functions, and of all others as one."""

    def __init__(self, report):
        traced = [row for row in report["functions"] if row["traced"]]
        self.samples, self.own, self.names = [], [], []
        self.compared, all_own = report["compared"], report["own"]
        assert sum(row["samples"] for row in traced) == self.compared
        assert sum(row["own"] for row in traced) == all_own
        rest = [0, 0]
        for row in traced:
            if row["own"] >= LEAST * all_own:
                self.samples.append(row["samples"])
                self.own.append(row["own"])
                self.names.append(row["function"])
            else:
                rest = [rest[0] + row["samples"], rest[1] + row["own"]]
        self.functions = len(self.own)
        self.samples.append(rest[0])
        self.own.append(rest[1])
        self.names.append("all others")
        self.shares = [own / all_own for own in self.own]

    def judged(self):
        return [n for n, share in enumerate(self.shares) if share >= LEAST]

    def sigmas(self, samples):
        return [(samples[n] - self.compared * self.shares[n]) /
                math.sqrt(self.compared * self.shares[n] * (1 - self.shares[n]))
                for n in self.judged()]

    def table(self):
        return [(self.names[n], self.samples[n], round(self.compared * self.shares[n]))
                for n in self.judged()]

    def chances(self, samples):
        return [chance(self.compared, samples[n], self.shares[n]) for n in self.judged()]

    def agree(self, samples):
        """In any draw: by each function, and by how many are 3 sigmas above, or below."""
        off = self.sigmas(samples)
        beyond = max(sum(n > 3 for n in off), sum(n < -3 for n in off))
        return min(self.chances(samples)) >= FALSE_ALARM and beyond <= self.most_beyond()

    def most_beyond(self):
        """How many functions may be 3 sigmas above, or as many below. (Numbers of samples
        are negatively associated: that some are all above is no likelier than if each
        was drawn by itself.)"""
        each = max(chance_beyond(self.compared, self.shares[n]) for n in self.judged())
        functions = len(self.judged())
        return next(n for n in range(functions + 1)
                    if math.comb(functions, n + 1) * each ** (n + 1) < FALSE_ALARM)


def chance_beyond(n, share):
    """That of the likelier side."""
    reach = 3 * math.sqrt(n * share * (1 - share))
    return max(math.fsum(probability(n, i, share) for i in range(n + 1)
                         if sign * (i - n * share) > reach) for sign in (1, -1))


@drawn
@pytest.mark.parametrize("name", COMMANDS)
def test_samples_and_trace_agree(name):
    report = read(results(1)[name])
    found = Shares(report)
    assert not report["missing"] and not report["lost"]
    assert not report["missed"] and not report["throttled"]
    assert found.functions >= 6 and found.compared > 1000, report
    assert found.agree(found.samples), found.table()


@drawn
@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_share_is_found(name):
    """Samples of the largest function that are charged to the smallest: as many as 4 %
    of all. (Of the expected numbers, as the drawn ones may happen to make up for it.)"""
    found = Shares(read(results(1)[name]))
    moved = math.ceil(0.04 * found.compared)
    wrong = [round(found.compared * share) for share in found.shares]
    assert found.agree(wrong), wrong
    large = found.own.index(max(found.own))
    small = found.own.index(min(found.own[:-1]))
    wrong[large] -= moved
    wrong[small] += moved
    assert not found.agree(wrong), (moved, wrong, found.own)


@drawn
@pytest.mark.parametrize("cpus, name", RUNS)
def test_the_tool_judges_as_it_should(cpus, name):
    report = read(results(cpus)[name])
    found = Shares(report)
    off = found.sigmas(found.samples)
    assert report["judged"] == len(off)
    assert report["within"] == sum(abs(n) <= 3 for n in off)
    all_of_them = min(1, len(off) * min(found.chances(found.samples)))
    assert report["chance"] == pytest.approx(all_of_them, rel=1e-6)
    assert report["agree"] == (report["chance"] >= 0.001)


@CPUS
def test_functions_that_jump_to_assembler_code_have_its_time(cpus):
    """zero_user's last instruction is a jump to user_zero, which has no site."""
    rows = {row["function"]: row for row in read(results(cpus)["copy"])["functions"]}
    assert rows["zero_user"]["samples"] > 20
    assert not rows["user_zero"]["traced"] and rows["user_zero"]["in"] > 20


@CPUS
def test_table(cpus):
    result = results(cpus)["table"]
    assert "no room" not in result.output, result
    assert result.status == 0, result
    rows = re.findall(r"^ *[0-9.]+% +[0-9.]+% +[0-9.]+ - +[0-9.]+% +[0-9.]+% +[-+][0-9.]+"
                      r"[ !] +\d+ "
                      r" (\S.*)$", result.output, re.MULTILINE)
    assert len(rows) > 5 and rows[-1] == "all others", result
    assert re.search(r"^Sampled: \d+ times in the kernel, by \S+ at 4000 Hz",
                     result.output, re.MULTILINE)
    missing = re.findall(r"^MISSING: \d+ (\S+ \S+ \S+)", result.output, re.MULTILINE)
    assert not missing if cpus == 1 else "samples, which came" in missing, result
    assert re.search(r"^\d+ of \d+ functions with 1 % or more agree within 3 sigmas",
                     result.output, re.MULTILINE)
    judged, chance_of_worst = re.search(
        r"^The least likely difference, [-+][0-9.]+ sigmas of \S.*: by chance one of (\d+)\n"
        r"differs as much in ([0-9.e-]+) % of all runs", result.output, re.MULTILINE).groups()
    assert int(judged) > 5 and 0 < float(chance_of_worst) <= 100


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
