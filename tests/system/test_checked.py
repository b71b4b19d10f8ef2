"""What every kernel with checkers does (docs/debugging.md): allocations that fail,
memory that is lost, memory that is written to when it is free."""
import re

import pytest

from machine import vm
from test_checkers import options

# Allocations of start-up: the first hundreds, then those of single steps.
START_UP = ([str(n) for n in (1, 2, 3, 5, 8, 89, 233, 260, 270, 280, 290, 300,
                              310, 330, 377, 610, 987)] +
            [f"{n},{site}" for site in ("smp_start", "load_start", "vfs_init",
                                        "tty_init", "task_start_init",
                                        "init_thread")
             for n in (1, 3, 6, 10)])


def checked(command, kargs="", kernel="addresses", smp=2, timeout=120):
    """Runs a command, or the kernel's own part alone; the console with it."""
    how = ["--kargs", kargs, *options(kernel)]
    how += ["--console"] if command is None else ["--console-log",
                                                  "/dev/stderr"]
    return vm(command, *how, smp=smp, timeout=timeout)


def nothing_lost(result):
    return re.search(r"leak check: \d+ objects and frames, 0 lost",
                     result.output + result.errors)


@pytest.mark.parametrize("allocation", START_UP)
def test_start_up_without(allocation):
    """It works all the same, or the kernel says what it had no memory for."""
    result = checked("echo works", f"fail_alloc={allocation}", timeout=60)
    if result.output == "works\n":
        return
    assert result.status in (125, 126), result
    panics = re.findall("KERNEL PANIC: (.*)", result.errors)
    if panics:
        assert "no memory" in panics[0], result
    else:  # no terminal, so no shell: that has been said
        assert "tty: no " in result.errors, result
        assert nothing_lost(result), result


@pytest.mark.parametrize("kernel", ("addresses", "races"))
@pytest.mark.parametrize("smp", (1, 4))
def test_every_allocation_of_every_operation(kernel, smp):
    result = checked("/test/failalloc", kernel=kernel, smp=smp, timeout=300)
    assert result.status == 0, result
    assert "ok fork, without each of" in result.output, result
    assert "FAILED" not in result.output, result
    assert nothing_lost(result), result


def test_unknown_failure():
    result = checked(None, "fail_alloc=everything")
    assert result.status == 125, result
    assert "fail_alloc=everything" in result.output, result


@pytest.mark.parametrize("smp", (1, 4))
def test_nothing_lost(smp):
    """Programs of all kinds, killed ones too, leave nothing behind."""
    result = checked("""
        seq 2000 | sort -r | gzip | gunzip | tail -n 1
        sleep 100 & sleep 0.2; kill -9 $!
        for test in process signals threads fs_pipe mm_fork mm_file exec; do
            timeout -s KILL 60 /test/$test >/dev/null || echo $test failed
        done
        profile -o /dev/null sleep 0.2 >/dev/null 2>&1
        mkdir -p /tmp/a/b && ln -s b /tmp/a/c && rm -rf /tmp/a; echo done""",
                     smp=smp)
    assert result.output == "1\ndone\n", result
    assert nothing_lost(result), result


@pytest.mark.parametrize("plant,what", (
    ("leak", r"leak: [1-9] times kmalloc-64, .*\n(.*\n)*.*lose_objects"),
    ("frame-leak", r"leak: [1-9] times 4096 bytes .*\n(.*\n)*.*lose_frames"),
    ("vmap-leak", r"leak: \d+ times 4096 bytes .*\n(.*\n)*.*lose_ranges")))
def test_planted_leaks(plant, what):
    result = checked(None, f"plant={plant}", smp=1)
    assert result.status == 1, result
    assert re.search(what, result.output), result


@pytest.mark.parametrize("plant", ("write-after-free", "double-free"))
def test_planted_misuse(plant):
    """Without KASAN: what was free is found to have been used."""
    result = checked(None, f"plant={plant}", kernel="races", smp=1)
    assert result.status == 125, result
    assert "KERNEL PANIC: heap: " in result.output, result
    assert "it was freed last by" in result.output, result
