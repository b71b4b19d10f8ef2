"""Runs commands under the oracle, and reads its files by build/strobe."""
import collections
import re
import subprocess

from machine import ROOT, vm

STROBE = f"{ROOT}/build/strobe"


def strobe(*arguments, status=0):
    done = subprocess.run([STROBE, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, done
    return done.stdout


def oracle(folder, command, *options, smp=1, name="counts", flat=False):
    """Runs a command under the oracle. Returns the file."""
    file = folder / name
    result = vm(command, "--oracle-flat" if flat else "--oracle", str(file), "--icount",
                "0", *options, smp=smp)
    assert result.status == 0, result
    return file


def proof(file):
    """(instructions, comparisons with the clock) of a file that proves itself."""
    text = strobe("exact", file)
    counted, executed, off = re.search(
        r"^(\d+) instructions of all owners, (\d+) executed: difference (-?\d+)$", text,
        re.MULTILINE).groups()
    times, wrong = re.search(r"compared (\d+) times with this count: (\d+) differences$",
                             text, re.MULTILINE).groups()
    assert counted == executed and off == wrong == "0" and int(times) > 100, text
    return int(counted), int(times)


def functions(file, *options):
    """{function: its own instructions}."""
    rows = re.findall(r"^ *0x\w+ +(\d+) +[\d.]+% +(\S+)",
                      strobe("report", "-n", "0", "--no-inline", *options, file),
                      re.MULTILINE)
    found = collections.Counter()
    for count, name in rows:
        found[name] += int(count)
    return found


def paths(file, folder):
    """[([function, ...], instructions)]: each path from its root, where `_[k]` and `_[i]`
    mark functions of the kernel and inlined ones."""
    strobe("export", "--folded", "-o", folder / "folded", file)
    rows = (line.rsplit(" ", 1)
            for line in (folder / "folded").read_text().splitlines())
    return [(path.split(";"), int(count)) for path, count in rows]
