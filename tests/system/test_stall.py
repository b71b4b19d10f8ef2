"""tools/stall: stops processes of a command, and ends as it does."""
import subprocess

import pytest

from machine import PATIENCE, ROOT

# Ends when a process of it has been seen stopped.
WATCHES = """sleep 1000 & child=$!
until grep -q '^State:.*stopped' /proc/$child/status; do :; done
kill -9 $child; exit 7"""


def stall(*command):
    return subprocess.run([f"{ROOT}/tools/stall", *command], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE)


def test_processes_are_stopped():
    assert stall("--seed", "1", "sh", "-c", WATCHES).returncode == 7


def test_a_command_that_is_killed():
    assert stall("sh", "-c", "kill -15 $$").returncode == 128 + 15


@pytest.mark.parametrize("command, status, problem", (
    ((), 2, "which command?"), (("/nothing",), 1, "/nothing: No such file or directory")))
def test_errors(command, status, problem):
    run = stall(*command)
    assert run.returncode == status and problem in run.stderr, run
