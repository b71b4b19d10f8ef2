"""Common part of the tests of the kernels with checkers and of clang's kernel
(test_addresses, test_races, test_clang). docs/testing.md says which programs run
where, and why."""
import functools
import glob
import os
import re

from machine import LONG_PATIENCE, ROOT, batch, vm

KERNELS = {
    "addresses": "build/checked/KASAN-UBSAN-LOCKDEP/kernel.elf",
    "races": "build/checked/KCSAN/kernel.elf",
    "clang": "build/clang/kernel.elf",
}
NOTHING_LOST = "objects and frames, 0 lost"
PROGRAMS = tuple(sorted(os.path.basename(path)[:-2]
                        for path in glob.glob(f"{ROOT}/tests/guest/*.c")
                        if not path.endswith("/attacks.c")))  # test_users measures it
# Programs whose threads and tasks interact on several CPUs. The others take the same
# paths in the kernel on any number of CPUs.
MEETINGS = (
    "clock_stress", "cpu_timers", "failalloc", "forkbomb", "fs_pipe",
    "ipc_calls", "ipc_death", "killed", "ledger_storm", "mm_fork", "mm_threads",
    "process", "profile_books", "profile_ends", "profile_rings", "profile_storm",
    "sensor_files", "sensor_ring_storm", "sensor_storm", "signals", "signals_queued", "sleeps", "sysinfo_fuzz", "sysinfo_tasks",
    "text_busy", "threads", "timers", "trace_monitor", "tty_jobs")
ALONE = tuple(name for name in PROGRAMS if name not in MEETINGS)

# CPUs in real time: memory errors and the order of locks, and races.
SIDE_BY_SIDE = {"addresses": 2, "races": 4}
# Virtual time for kernels with checkers, at 1 ns an instruction: at 8 ns some interrupts
# take longer than their period.
FINE_CLOCK = ("--icount", "0")


def options(kernel, tests=False):
    """Options of tools/vm; `tests`: the kernel with tests and planted bugs."""
    path = f"{ROOT}/{KERNELS[kernel]}"
    if tests:
        path = path.replace("kernel.elf", "kernel-test.elf")
    assert os.path.exists(path), "run make checked"
    return "--kernel", path


def check_in_kernel(kernel, smp):
    result = vm(None, "--console", *options(kernel, tests=True), "--kargs",
                "test=all", smp=smp, timeout=LONG_PATIENCE)
    broken = re.findall(r"^# .*: expected.*|^not ok.*", result.output,
                        re.MULTILINE)
    assert not broken and result.status == 0, (broken, result)
    assert re.search(r"^# \d+ passed, 0 failed", result.output, re.MULTILINE)
    assert kernel == "clang" or NOTHING_LOST in result.output, result


@functools.lru_cache(maxsize=None)
def results(kernel, smp, programs=PROGRAMS, *more):
    """Results of guest programs, in one boot; `more` options for tools/vm."""
    return batch({name: f"/test/{name}" for name in programs},
                 *options(kernel), *more, smp=smp)


def check_program(result):
    assert result.status == 0, result
    assert "FAILED" not in result.output, result


def check_machine(run):
    """The machine ended without a report, and lost no memory."""
    assert run.status == 0, run
    assert NOTHING_LOST in run.console, run


def check_failed_allocations(output):
    """The allocations did fail: the kernel has /dev/failalloc."""
    for what in ("fork", "exec", "mmap", "pipe", "signal", "profile"):
        assert re.search(rf"^ok .*{what}.*, without each of [1-9]", output,
                         re.MULTILINE), output


def check_plant(kernel, plant, report, smp):
    result = vm(None, "--console", *options(kernel, tests=True), "--kargs",
                f"plant={plant}", smp=smp)
    assert result.status == 125, result
    assert re.search(f"PANIC: {report}", result.output), result
