"""i386 programs on this machine, which need not run them."""
import subprocess

from machine import ROOT

RUNS = subprocess.run([f"{ROOT}/tools/build/runs-i386"]).returncode == 0


def command(program):
    """The command that runs a program. LeakSanitizer never ends under QEMU."""
    return [program] if RUNS else [
        "env", "ASAN_OPTIONS=detect_leaks=0", "qemu-i386", program]
