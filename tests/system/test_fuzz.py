"""Random system calls (tests/fuzz, docs/reliability.md), while sessions sample the
machine at up to 20 kHz; and inputs that failed in the past."""
import glob
import os
import re
import subprocess

import pytest

from machine import LONG_PATIENCE, PATIENCE, ROOT, vm
from tiers import side_by_side

CALLS = 200000
CALLS_IN_REAL_TIME = 100000
CORPUS = sorted(glob.glob(f"{ROOT}/tests/fuzz/corpus/*"))
WHERE = (1, side_by_side(4, chance=0))


def fuzz(smp, *arguments):
    done = subprocess.run(
        [f"{ROOT}/tools/fuzz", "--smp", str(smp), "--timeout",
         str(LONG_PATIENCE), *arguments], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LONG_PATIENCE + 60)
    assert done.returncode == 0, done
    assert "answers" in done.stdout, done


@pytest.mark.parametrize("smp", WHERE)
def test_random_calls(smp):
    """Random calls cause no panic, no unkillable task and no mount that remains, and the
    ledger balances."""
    fuzz(smp, "--calls", str(CALLS if smp == 1 else CALLS_IN_REAL_TIME))


def test_memory_that_is_not_freed_is_found():
    """A leak is found: 30 directory entries that another task makes during a run's
    calls."""
    run = vm("(sleep 1; cd /tmp; touch $(seq 30)) & exec /test/fuzz --quiet "
             "--calls 30000")
    assert run.status == 1, run
    assert re.search(r"^FAILED memory: struct tmpfs_node \+3\d, explained are 12$",
                     run.output, re.MULTILINE), run


def test_a_run_that_stands_still_is_ended(tmp_path):
    """It fails, and says where the CPUs are and what the tasks wait for."""
    (tmp_path / "test").mkdir()
    (tmp_path / "test/fuzz").write_text("#!/bin/sh\nmkfifo /tmp/x; exec cat /tmp/x\n")
    (tmp_path / "test/fuzz").chmod(0o755)
    for seconds in 10, PATIENCE // 3:  # the first may not last for the start
        done = subprocess.run(
            [f"{ROOT}/tools/fuzz", "--smp", "1", "--add", str(tmp_path), "--silence",
             str(seconds)], capture_output=True, text=True)
        if "(cat)" in done.stdout:
            break
    assert done.returncode == 1, done
    assert re.search(r"^CPU 0: eip \w{8} ring 0, halted", done.stdout, re.MULTILINE), done
    assert re.search(r"^  thread \d+ \(cat\) waits for 'pipe read', CPU 0\n",
                     done.stdout, re.MULTILINE), done
    assert "FAILED fuzz --seed 1 --calls 200000: tools/vm: not a word for " \
        f"{seconds} s: CPU 0 halted\n" in done.stdout, done


@pytest.mark.parametrize("script", CORPUS, ids=os.path.basename)
@pytest.mark.parametrize("smp", WHERE)
def test_corpus(smp, script):
    """Inputs that failed in the past pass."""
    fuzz(smp, "--script", script, "--times", "5")
