"""Machines with little memory: what people boot runs in 16 MiB, with room to
work; where memory lacks, it is said how much and for what."""
import re

import pytest

from machine import vm


def small(command, mem):
    return vm(command, "--no-tests", "--mem", str(mem))


@pytest.mark.parametrize("mem", (16, 24))
def test_a_shell_and_a_profile(mem):
    result = small("profile tester && free | awk '/Mem:/ { print $4 }'", mem)
    assert result.status == 0, result
    samples, share = re.search(r"^ *\S+ +(\d+) +([\d.]+)%  burn_a$",
                               result.output, re.MULTILINE).groups()
    # Half of all, taken at random: within six standard deviations.
    assert abs(float(share) - 50) < 6 * 50 / (2 * int(samples)) ** 0.5, result
    assert int(result.output.split()[-1]) > 4096, result


def test_the_tests_too():
    """Nothing is in memory twice while the archives are unpacked."""
    assert vm("/test/process", "--mem", "24").status == 0


@pytest.mark.parametrize("mem, lacks", (
    (6, r"boot module initrd: at least [1-9]\d* KiB more are needed than 6 MiB"),
    (7, "the root directory: the kernel and the boot modules take 7 MiB"),
    (8, r"\S+ of initrd initrd: at least [1-9]\d* KiB .* than 8 MiB")))
def test_what_lacks_is_said(mem, lacks):
    result = small("true", mem)
    assert result.status == 125, result
    assert re.search(f"no memory for {lacks}", result.errors), result
