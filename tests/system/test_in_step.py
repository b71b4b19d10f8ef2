"""Code of any period is sampled without keeping step with it: what the header states as
the error of a share is right for a loop of 2/3 of the mean distance, at which distances
that are uniform from 0.5 to 1.5 of it were worst. (tests/host/test_random_distance.c has
loops of other periods.)"""
import json
import math
import re
import subprocess

import pytest

from machine import ROOT, TAKING, batch, vm
from perf_file import addresses
from statistic import deviations
from tiers import drawn

PROGRAM = f"{ROOT}/build/guest/in_step"
HZ, MILLISECONDS = 8000, 5000
LOOP_NS = round(2 / 3 * 1e9 / HZ)
RUN = 20  # samples
NO_HPET = ("--qemu-args", "-machine hpet=off")


def halves():
    """{name: range of addresses} of the loop's two functions."""
    lines = subprocess.run(["nm", "-S", PROGRAM], text=True, check=True,
                           capture_output=True).stdout.splitlines()
    return {name: range(int(at, 16), int(at, 16) + int(size, 16))
            for at, size, _, name in (line.split() for line in lines
                                      if "half_" in line)}


def excess(folder, options, *machine):
    """The variance of the share of the loop's first half over runs of RUN samples, by
    that of independent samples, and how far chance moves it."""
    result = vm(f"profile {options} -F {HZ} -m 8 -o /out/data /test/in_step {LOOP_NS} "
                f"{MILLISECONDS}", "--icount", "3", "--get", str(folder), *machine, smp=1)
    assert result.status == 0, result
    first, second = halves()["half_a"], halves()["half_b"]
    hits = [at in first for at in addresses(folder / "data")
            if at in first or at in second]
    # It first measures a round of the first half, for 16 ms: not a part of the loop.
    hits = hits[hits.index(False) + 1:]
    runs = [sum(hits[i:i + RUN]) for i in range(0, len(hits) - RUN, RUN)]
    assert len(runs) > 1500, result
    assert abs(sum(hits) / len(hits) - 0.5) < 0.02, result
    variance = sum((n - RUN / 2) ** 2 for n in runs) / len(runs)
    return variance / (RUN / 4), deviations() * math.sqrt(2 / len(runs)), result


@drawn
@pytest.mark.parametrize("source,machine", (
    ("nmi-hpet", ()), ("lapic", ()), ("nmi-pit", NO_HPET)))
def test_a_loop_of_two_thirds_of_the_distance(source, machine, tmp_path):
    found, chance, result = excess(tmp_path, f"-s {source}", *machine)
    assert 0.6 < found < 1 + chance < 1.3, (found, chance, result)


def test_fixed_distances_keep_step(tmp_path):
    """The test above rejects them."""
    found, chance, result = excess(tmp_path, "--fixed")
    assert not 0.6 < found < 1 + chance, (found, chance, result)


def test_where_there_is_no_hpet():
    """The default source has random distances there, too. Where they cannot be had, -R is
    refused, and no error is stated."""
    results = batch({
        "default": "profile -R --json tester",
        "slow": "profile -s nmi-pit -F 50 tester",
        "rtc": "profile -s nmi-rtc --json tester",
        "refused slow": "profile -R -s nmi-pit -F 50 tester",
        "refused rtc": "profile -R -s nmi-rtc tester",
        "refused beside": f"profile --fixed -t 1 >/tmp/1 & {TAKING}; "
                          "profile -R -s nmi-pit tester; s=$?; kill $!; wait; exit $s",
        "another": "sprofile -R -F 50 --json tester",
    }, "--icount", "3", *NO_HPET, smp=1)
    assert results.pop(None).status == 0
    for name, result in results.items():
        if "refused" in name:
            assert result.status == 1, result
            assert f"-R: nmi-{'rtc' if 'rtc' in name else 'pit'}: no random distances " \
                in result.errors and "--fixed" in result.errors, result
        else:
            assert result.status == 0, result
    default, rtc, another = (json.loads(results[name].output)
                             for name in ("default", "rtc", "another"))
    assert default["source"] == "nmi-pit" and default["random"] == 1, default
    assert 1 < default["error_of_half"] < 50, default
    assert rtc["random"] == 0 and rtc["error_of_half"] is None, rtc
    assert another["source"] == "lapic" and another["random"] == 1, another
    assert re.search(r"^Source:  nmi-pit at 50 Hz on 1 CPU, at fixed distances$.*"
                     r"^Shares:  of time, by \d+ samples at fixed distances: no error can "
                     r"be stated$", results["slow"].output, re.M | re.S), results
