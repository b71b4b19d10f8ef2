"""Shares do not lean towards what is dear to sample: of two functions of the same number
of instructions, one has 110 callers (tests/guest/halves.c)."""
import json
import math

import pytest

from machine import vm
from statistic import FALSE_ALARM, deviations, tail
from tiers import drawn

# Of a time of 110 callers the sampling takes 20 to 60 % here.
LONG, SHORT = (1000000, 100), (1000, 60000)  # instructions of a half, rounds
NO_HPET = ("--qemu-args", "-machine hpet=off")


def run(options, size, clock, *machine, smp=1, before="", times=1):
    """Yields the report, the part of the deep half in both, and its standard deviation by
    the error in the report's header, of each of several runs in one machine."""
    result = vm(f"for i in $(seq {times}); do profile -g -m 8 --json {options} "
                f"{before}/test/halves {size[0]} {size[1]} || exit; done",
                "--icount", clock, "--timeout", "200", *machine, smp=smp)
    assert result.status == 0, result
    for text in result.output.split("ok halves\n")[1:]:
        report = json.loads(text[text.index("{\n"):])
        rows = {row["symbol"]: row for row in report["rows"]}
        deep, flat = rows["deep_half"], rows["flat_half"]
        time = deep["period"] + flat["period"]
        sampled = report["taken"] / (deep["samples"] + flat["samples"])
        yield report, deep["period"] / time, \
            (report["error_of_half"] or 0) / 196 * math.sqrt(sampled)


def halves(*arguments, **options):
    """Of one run, with the largest error that chance explains."""
    (report, share, deviation), = run(*arguments, **options)
    return report, share, deviations() * deviation


@drawn
@pytest.mark.parametrize("source,machine", (
    ("nmi-hpet", ()), ("lapic", ()), ("nmi-pit", NO_HPET)))
@pytest.mark.parametrize("size", (LONG, SHORT))
def test_equal_halves(source, machine, size):
    report, share, chance = halves(f"-s {source} -F 20000", size, "3", *machine)
    assert report["random"] and report["throttled"] == 0 and report["lost"] == 0, report
    assert report["in_sampling"] > 1000 and report["missed"] == 0, report
    assert abs(share - 0.5) < chance < 0.035, (share, chance, report)


@drawn
@pytest.mark.parametrize("size", (LONG, SHORT))
def test_throttled(size):
    """Samples taken stand for those that are not."""
    report, share, chance = halves("-F 20000", (size[0], size[1] // 5), "6")
    assert report["throttled"] > report["taken"] / 10 and report["lost"] == 0, report
    assert abs(share - 0.5) < chance < 0.06, (share, chance, report)


@drawn
def test_two_cpus():
    """Ticks of a CPU are late during the other's turns, of both halves alike. (On the boot
    CPU, which QEMU gives the first turn after each tick, and which sets the next one: so a
    turn of the other CPU ends there. One of the boot CPU ends after 100 ms, or a PAUSE.)"""
    report, share, chance = halves("-F 20000", (1000000, 30), "3", smp=2,
                                   before="taskset 1 ")
    assert report["in_sampling"] > 500 and report["throttled"] == 0, report
    assert report["late"] and report["missed"] > 500, report
    assert abs(share - 0.5) < chance < 0.06, (share, chance, report)


# Runs in one machine; `make test-draws` multiplies them. A turn of the two halves and the
# callers is 2/3 of the mean distance.
RUNS, IN_STEP = 10, (1600, 2400)


@drawn
@pytest.mark.parametrize("options,size,smp,machine", (
    ("-s nmi-hpet", (100000, 50), 1, ()), ("-s nmi-hpet", IN_STEP, 1, ()),
    ("-s nmi-pit", IN_STEP, 1, NO_HPET), ("-s nmi-hpet", IN_STEP, 2, ())))
def test_stated_errors_are_those_of_many_runs(options, size, smp, machine):
    """The square of a run's error by that stated in its header is 1 on average."""
    found = list(run(f"{options} -F 20000", size, "3", *machine, smp=smp,
                     before="taskset 1 ", times=RUNS))
    errors = [(share - 0.5) / deviation for _, share, deviation in found]
    assert len(errors) == RUNS, errors
    squares = sum(error * error for error in errors)
    assert FALSE_ALARM < tail(RUNS, squares) < 1 - FALSE_ALARM, (squares, errors)


def test_fixed_distances_lean():
    """There the report says how far: the cost, which is mostly the deep half's."""
    report, share, chance = halves("--fixed -F 20000", LONG, "3")
    assert report["error_of_half"] is None and report["lean"] > 5, report
    assert 0.51 < share < 0.5 + report["lean"] / 100 + 0.01, (share, report)
