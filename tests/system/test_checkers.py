"""The kernels that check themselves, and the one that clang builds: their own
tests and the guest programs, on 1 and 4 CPUs; and for each checker the bugs that
it must find. A checker that stays silent fails here."""
import functools
import glob
import os
import re

import pytest

from machine import ROOT, batch, vm

KERNELS = {
    "addresses": "build/checked/KASAN-UBSAN-LOCKDEP/kernel.elf",
    "races": "build/checked/KCSAN/kernel.elf",
    "clang": "build/clang/kernel.elf",
}
PROGRAMS = sorted(os.path.basename(path)[:-2]
                  for path in glob.glob(f"{ROOT}/tests/guest/*.c"))
matrix = pytest.mark.parametrize("smp", (1, 4))
kernels = pytest.mark.parametrize("kernel", KERNELS)


def options(kernel):
    return "--kernel", f"{ROOT}/{KERNELS[kernel]}", "--mem", "512"


@kernels
@matrix
def test_in_kernel(kernel, smp):
    result = vm(None, "--console", *options(kernel), "--kargs", "test=all",
                smp=smp, timeout=400)
    assert result.status == 0, result
    assert re.search(r"^# \d+ passed, 0 failed", result.output, re.MULTILINE)


@functools.lru_cache(maxsize=None)
def results(kernel, smp):
    return batch({name: f"/test/{name}" for name in PROGRAMS},
                 *options(kernel), smp=smp, timeout=900, limit=300)


@kernels
@matrix
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program, kernel, smp):
    result = results(kernel, smp)[program]
    assert result.status == 0, result
    assert "FAILED" not in result.output, result


@pytest.mark.parametrize("kernel,plant,report", [
    ("addresses", "shift-too-far", "ubsan: .*shift"),
    ("addresses", "signed-overflow", "ubsan: .*overflows"),
    ("addresses", "index-out-of-bounds", "(ubsan|kasan): .*out of bounds"),
    ("addresses", "null-member", "ubsan: .*null pointer"),
    ("addresses", "use-after-free", "kasan: .*free"),
    ("addresses", "heap-overflow", "kasan: "),
    ("addresses", "stack-overflow", "kasan: .*stack"),
    ("addresses", "global-overflow", "kasan: .*global"),
    ("addresses", "double-free", "kasan: .*free"),
    ("addresses", "lock-inversion", "lockdep: .*both orders"),
    ("addresses", "sleep-under-spinlock", "lockdep: may sleep"),
    ("addresses", "interrupt-unsafe-lock", "lockdep: an interrupt"),
    ("addresses", "lock-twice", "lockdep: .*again"),
    ("races", "unlocked-counter", "kcsan: data race"),
])
def test_planted_bug(kernel, plant, report):
    result = vm(None, "--console", *options(kernel), "--kargs",
                f"plant={plant}", smp=2, timeout=120)
    assert result.status == 125, result
    assert re.search(f"PANIC: {report}", result.output), result
