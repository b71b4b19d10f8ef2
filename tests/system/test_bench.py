"""The table of costs: complete, and nothing dearer than on Linux."""
import subprocess

from machine import ROOT


def test_no_operation_is_dearer_than_on_linux():
    done = subprocess.run([f"{ROOT}/tools/bench/run", "--check"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 17, done.stdout
