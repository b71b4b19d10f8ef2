"""The kernel's frame table (tools/build/kframes) covers each instruction of C code."""
import importlib.machinery
import importlib.util
import subprocess

import pytest

from checkers import KERNELS
from machine import ROOT


@pytest.mark.parametrize("kernel", ("build/kernel.elf", KERNELS["clang"]))
def test_every_place_in_c_is_known(kernel):
    loader = importlib.machinery.SourceFileLoader(
        "kframes", f"{ROOT}/tools/build/kframes")
    kframes = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(kframes)
    cfi = subprocess.run(["readelf", "--debug-dump=frames-interp", kernel], cwd=ROOT,
                         capture_output=True, text=True, check=True).stdout
    rows, _ = kframes.read_rows(cfi.splitlines())
    unknown = [hex(pc) for pc, kind in rows.items() if kind == kframes.UNKNOWN]
    assert len(rows) > 1000 and not unknown, unknown
