"""Everything at once (tools/soak, docs/reliability.md), for some virtual seconds:
nothing leaks, no task is left, the books balance."""
import subprocess

from machine import LONG_PATIENCE, ROOT


def test_soak():
    """tools/soak's own checks: the ledger, memory by object, tasks, sessions."""
    done = subprocess.run([f"{ROOT}/tools/soak", "--minutes", "0.2"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LONG_PATIENCE)
    assert done.returncode == 0, done
    assert "differences [0, 0, 0, 0, 0, 0]" in done.stdout, done
