"""The kernels that check themselves, and the one that clang builds: their own
tests and the guest programs, on 1 and 4 CPUs; and for each checker the bugs that
it must find. A checker that stays silent fails here."""
import functools
import glob
import os
import re

import pytest

from machine import LONG_PATIENCE, ROOT, batch, vm

KERNELS = {
    "addresses": "build/checked/KASAN-UBSAN-LOCKDEP/kernel.elf",
    "races": "build/checked/KCSAN/kernel.elf",
    "clang": "build/clang/kernel.elf",
}
NOTHING_LOST = "objects and frames, 0 lost"
PROGRAMS = sorted(os.path.basename(path)[:-2]
                  for path in glob.glob(f"{ROOT}/tests/guest/*.c"))
matrix = pytest.mark.parametrize("smp", (1, 4))
kernels = pytest.mark.parametrize("kernel", KERNELS)


def options(kernel):
    assert os.path.exists(f"{ROOT}/{KERNELS[kernel]}"), "run make checked"
    return "--kernel", f"{ROOT}/{KERNELS[kernel]}"


@kernels
@matrix
def test_in_kernel(kernel, smp):
    result = vm(None, "--console", *options(kernel), "--kargs", "test=all",
                smp=smp, timeout=LONG_PATIENCE)
    broken = re.findall(r"^# .*: expected.*|^not ok.*", result.output,
                        re.MULTILINE)
    assert not broken and result.status == 0, (broken, result)
    assert re.search(r"^# \d+ passed, 0 failed", result.output, re.MULTILINE)
    assert kernel == "clang" or NOTHING_LOST in result.output, result


@functools.lru_cache(maxsize=None)
def results(kernel, smp):
    return batch({name: f"/test/{name}" for name in PROGRAMS},
                 *options(kernel), smp=smp)


@kernels
@matrix
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program, kernel, smp):
    result = results(kernel, smp)[program]
    assert result.status == 0, result
    assert "FAILED" not in result.output, result


@kernels
@matrix
def test_machine(kernel, smp):
    """Whatever the programs did: no report, also none of lost memory."""
    run = results(kernel, smp)[None]
    assert run.status == 0, run
    if kernel != "clang":
        assert NOTHING_LOST in run.console, run


@pytest.mark.parametrize("kernel", ("addresses", "races"))
@matrix
def test_allocations_failed(kernel, smp):
    """The walk over allocations that fail was one: /dev/failalloc is there."""
    output = results(kernel, smp)["failalloc"].output
    for what in ("fork", "exec", "mmap", "pipe", "signal", "profile"):
        assert re.search(rf"^ok .*{what}.*, without each of [1-9]", output,
                         re.MULTILINE), output


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
    ("addresses", "interrupt-unsafe-chain",
     "lockdep: an interrupt .* 'plant b'"),
    ("addresses", "lock-twice", "lockdep: .*again"),
    ("addresses", "lock-not-held", "lockdep: 'plant a' must be held"),
    ("addresses", "mutex-not-held", "lockdep: 'plant m' must be held"),
    ("addresses", "deep-recursion", "kernel stack overflow"),
    ("races", "deep-recursion", "kernel stack overflow"),
    ("races", "shift-too-far", "ubsan: .*shift"),
    ("races", "unlocked-counter", "kcsan: data race"),
    ("races", "unmasked-counter", "kcsan: data race"),
])
def test_planted_bug(kernel, plant, report):
    # An interrupt of the own CPU is the only other one on one CPU.
    smp = 1 if plant == "unmasked-counter" else 2
    result = vm(None, "--console", *options(kernel), "--kargs",
                f"plant={plant}", smp=smp)
    assert result.status == 125, result
    assert re.search(f"PANIC: {report}", result.output), result
