"""Shares do not lean towards what is dear to sample: of two functions of the same number
of instructions, one has 110 callers (tests/guest/halves.c)."""
import json
import math

import pytest

from machine import vm
from statistic import deviations
from tiers import drawn

# Of a time of 110 callers the sampling takes 20 to 60 % here.
LONG, SHORT = (1000000, 100), (1000, 60000)  # instructions of a half, rounds
NO_HPET = ("--qemu-args", "-machine hpet=off")


def halves(options, size, clock, *machine, smp=1, before=""):
    """The report, and the part of the deep half in both, with the largest error that
    chance explains by the error in the report's header."""
    result = vm(f"profile -g -m 8 --json {options} {before}/test/halves "
                f"{size[0]} {size[1]}",
                "--icount", clock, "--timeout", "200", *machine, smp=smp)
    assert result.status == 0, result
    report = json.loads(result.output[result.output.index("{\n"):])
    rows = {row["symbol"]: row for row in report["rows"]}
    deep, flat = rows["deep_half"], rows["flat_half"]
    time = deep["period"] + flat["period"]
    sampled = report["taken"] / (deep["samples"] + flat["samples"])
    chance = deviations() * (report["error_of_half"] or 0) / 196 * math.sqrt(sampled)
    return report, deep["period"] / time, chance


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


def test_fixed_distances_lean():
    """There the report says how far: the cost, which is mostly the deep half's."""
    report, share, chance = halves("--fixed -F 20000", LONG, "3")
    assert report["error_of_half"] is None and report["lean"] > 5, report
    assert 0.51 < share < 0.5 + report["lean"] / 100 + 0.01, (share, report)
