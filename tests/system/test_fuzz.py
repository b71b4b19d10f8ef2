"""Random system calls (tests/fuzz, docs/reliability.md), while sessions sample the
machine at up to 20 kHz; and the inputs that once broke something."""
import glob
import os
import re
import subprocess

import pytest

from machine import LONG_PATIENCE, ROOT, vm
from tiers import side_by_side

CALLS = 200000
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
    """The machine stays whole: no panic, no task that cannot be killed, no mount
    that stays, and the books balance."""
    fuzz(smp, "--calls", str(CALLS))


def test_memory_that_is_not_freed_is_found():
    """Directory entries that another task makes stand for a leak: 30 objects in
    all of a run's calls."""
    run = vm("(sleep 1; cd /tmp; touch $(seq 30)) & exec /test/fuzz --quiet "
             "--calls 30000")
    assert run.status == 1, run
    assert re.search(r"^FAILED memory: struct tmpfs_node \+3\d, explained are 12$",
                     run.output, re.MULTILINE), run


@pytest.mark.parametrize("script", CORPUS, ids=os.path.basename)
@pytest.mark.parametrize("smp", WHERE)
def test_corpus(smp, script):
    """What once broke the machine does not any more."""
    fuzz(smp, "--script", script, "--times", "5")
