"""Code of any period is sampled without keeping step with it: what the header states as
the error of a share is right for a loop of 2/3 of the mean distance, at which distances
that are uniform from 0.5 to 1.5 of it were worst. (tests/host/test_random_distance.c has
loops of other periods.)"""
import math
import subprocess

import pytest

from machine import ROOT, vm
from perf_file import addresses
from statistic import deviations
from tiers import drawn

PROGRAM = f"{ROOT}/build/guest/in_step"
HZ, MILLISECONDS = 8000, 5000
LOOP_NS = round(2 / 3 * 1e9 / HZ)
RUN = 20  # samples


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
    runs = [sum(hits[i:i + RUN]) for i in range(0, len(hits) - RUN, RUN)]
    assert len(runs) > 1500, result
    assert abs(sum(hits) / len(hits) - 0.5) < 0.02, result
    variance = sum((n - RUN / 2) ** 2 for n in runs) / len(runs)
    return variance / (RUN / 4), deviations() * math.sqrt(2 / len(runs)), result


@drawn
@pytest.mark.parametrize("source", ("nmi-hpet", "lapic"))
def test_a_loop_of_two_thirds_of_the_distance(source, tmp_path):
    found, chance, result = excess(tmp_path, f"-s {source}")
    assert 0.6 < found < 1 + chance < 1.3, (found, chance, result)


def test_fixed_distances_keep_step(tmp_path):
    """The test above rejects them."""
    found, chance, result = excess(tmp_path, "--fixed")
    assert not 0.6 < found < 1 + chance, (found, chance, result)
