"""The kernel's frame table (tools/build/kframes) covers each instruction of C code."""
import bisect
import importlib.machinery
import importlib.util
import re
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


def places_where_ebp_is_lost(kernel):
    """[from, until): ebp is saved on the stack, and no frame pointer. A prologue has such
    places, and a function that uses ebp for something else."""
    cfi = subprocess.run(["readelf", "--debug-dump=frames-interp", kernel], cwd=ROOT,
                         capture_output=True, text=True, check=True).stdout
    for fde in re.split(r"\n(?=[0-9a-f]{8} [0-9a-f]+ [0-9a-f]+ (?:FDE|CIE))", cfi):
        end, columns, rows = re.search(r" FDE .*\.\.([0-9a-f]+)", fde), [], []
        for words in map(str.split, fde.splitlines()):
            if words[:2] == ["LOC", "CFA"]:
                columns = words
            elif columns and words and re.fullmatch("[0-9a-f]{8}", words[0]):
                rows.append(dict(zip(columns, words)))
        ends = [int(row["LOC"], 16) for row in rows[1:]] + [int(end[1], 16) if end else 0]
        for row, until in zip(rows, ends):
            if end and row["CFA"].startswith("esp") and row.get("ebp", "u").startswith("c"):
                yield int(row["LOC"], 16), until


def test_no_call_where_ebp_is_lost():
    """A chain goes on through a function without a frame by the ebp that it leaves alone: one
    that is compiled so and uses ebp itself has KEEPS_FRAME."""
    lost = sorted(places_where_ebp_is_lost("build/kernel.elf"))
    assert len(lost) > 1000
    text = subprocess.run(["i686-linux-gnu-objdump", "-d", "--no-show-raw-insn",
                           "build/kernel.elf"], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout
    function, wrong = None, set()
    for line in text.splitlines():
        if name := re.match("[0-9a-f]+ <(.*)>:", line):
            function = name[1]
        elif call := re.match(r" *([0-9a-f]+):\s+call\b", line):
            at = int(call[1], 16)
            place = bisect.bisect(lost, (at + 1,)) - 1
            if place >= 0 and lost[place][0] <= at < lost[place][1]:
                wrong.add(function)
    assert not wrong
