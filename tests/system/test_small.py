"""Machines with little memory: the system runs in 16 MiB, with room to work; otherwise
the missing size and its purpose are reported."""
import re

import pytest

from machine import vm
from statistic import deviations
from tiers import drawn


def small(command, mem, *options):
    return vm(command, "--no-tests", "--mem", str(mem), *options)


@drawn
@pytest.mark.parametrize("mem", (16, 24))
def test_a_shell_and_a_profile(mem):
    result = small("profile tester && free | awk '/Mem:/ { print $4 }'", mem)
    assert result.status == 0, result
    samples, share = re.search(r"^ *\S+ +(\d+) +([\d.]+)%  burn_a$",
                               result.output, re.MULTILINE).groups()
    # Half of the samples, at random distances.
    assert abs(float(share) - 50) < deviations() * 50 / (2 * int(samples)) ** 0.5, result
    assert int(result.output.split()[-1]) > 4096, result


def test_the_tests_too():
    """The tests fit, too: unpacking keeps nothing in memory twice."""
    assert vm("/test/process", "--mem", "24").status == 0


# What memory is too small for. The sizes at which each is reported depend on the sizes
# of kernel and archives, thus on the compiler.
LACKS = {
    "module": r"boot module \S+: at least [1-9]\d* KiB more are needed than"
              r" {mem} MiB",
    "kernel": r".+: the kernel and the boot modules take [1-9]\d* of"
              r" [1-9]\d* KiB",
    "file": r"\S+ of initrd \S+: at least [1-9]\d* KiB more are needed than"
            r" {mem} MiB",
}


def lacks(mem, *options):
    """What is said of this size, and the result; None: it is enough."""
    result = small("true", mem, *options)
    if result.status == 0:
        return None, result
    assert result.status == 125, result
    kind, = [kind for kind, said in LACKS.items() if
             re.search(f"no memory for {said.format(mem=mem)}", result.errors)]
    return kind, result


def test_what_lacks_is_said(tmp_path):
    """At each size too small to start, the missing size and its purpose are reported. (The
    kernel is at 4 MiB. While a file is unpacked it is in memory twice.)"""
    kinds, missing = [], {}
    (tmp_path / "large").write_bytes(bytes(6 << 20))
    for mem in 6, 7, *range(16, 30):
        kind, result = lacks(mem, "--add", str(tmp_path))
        if not kind:
            break
        kinds.append(kind)
        missing[mem] = int(re.search(r"\d+(?= .*KiB)", result.errors)[0])
    assert not kind, result
    assert {"module", "file"} <= set(kinds), kinds
    assert kinds == sorted(kinds, key=list(LACKS).index), kinds
    assert kinds[:2] == ["module"] * 2 and missing[6] - missing[7] == 1024, missing
