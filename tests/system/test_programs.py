"""The guest programs of tests/guest, on 1, 2, 4 and 8 CPUs, all in one boot
each; and the tests in the kernel where tools/build/test does not run them."""
import functools
import glob
import os
import re

import pytest

from machine import ROOT, batch, vm

CPUS = (1, 2, 4, 8)
PROGRAMS = sorted(os.path.basename(path)[:-2]
                  for path in glob.glob(f"{ROOT}/tests/guest/*.c"))


@functools.lru_cache(maxsize=None)
def results(smp):
    return batch({name: f"/test/{name}" for name in PROGRAMS}, smp=smp)


@pytest.mark.parametrize("smp", CPUS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program, smp):
    result = results(smp)[program]
    assert result.status == 0, result
    assert "ok " in result.output and "FAILED" not in result.output, result


@pytest.mark.parametrize("smp", (2, 8))
def test_in_kernel(smp):
    result = vm(None, "--console", "--kargs", "test=all", smp=smp)
    assert result.status == 0, result
    assert re.search(r"^# \d+ passed, 0 failed", result.output, re.MULTILINE)


def test_from_the_iso():
    """GRUB, Multiboot2 and the rest of the way a PC boots."""
    result = vm("echo started; /test/process; uname -s; exit 5", "--iso")
    assert result.status == 5, result
    assert result.output.startswith("started\nok "), result
    assert result.output.endswith("Strobe\n"), result


def test_debian_busybox():
    """Somebody else's binary, built for Linux with glibc."""
    result = vm("""set -e
        alias b=/usr/lib/debian/busybox
        /usr/lib/debian/busybox sh -c '
            for i in 1 2 3; do echo $i; done | sort -r | tr "\\n" " "
            echo; ls -l /etc/passwd | wc -l; echo abc | md5sum
            ps | grep -c busybox; (sleep 0.1; echo late) & wait
            seq 1000 | gzip | gunzip | tail -n 1'""")
    assert result.status == 0, result
    lines = result.output.splitlines()
    assert lines[:3] == ["3 2 1 ", "1", "0bee89b07a248e27c83fc3d5951213c1  -"]
    assert lines[4:] == ["late", "1000"], result
