"""Runs tools/strobe, and reads its files with other tools."""
import collections
import json
import re
import subprocess

from machine import PATIENCE, ROOT

TOOL = f"{ROOT}/tools/strobe"
Row = collections.namedtuple("Row", "image symbol self total period")


def run(*command, status=0):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=PATIENCE,
                          capture_output=True, text=True)
    assert done.returncode == status, done
    return done


def strobe(*arguments, status=0):
    return run(TOOL, *map(str, arguments), status=status)


def read_measured(folder, name):
    """A Measured for each event of a run. (The program's output may precede the
    report.)"""
    with open(f"{folder}/{name}.json") as file:
        text = file.read()
    parsed = json.loads(text[text.index("{\n"):])
    return [Measured(f"{folder}/{name}.data", event)
            for event in parsed.get("events", [parsed])]


class Measured:
    """A file that the machine wrote, and the guest tool's report of one of its
    events."""

    def __init__(self, file, parsed):
        self.file, self.json = file, parsed
        self.rows = [Row(r["image"], r["symbol"], r["samples"], r["total"], r["period"])
                     for r in self.json["rows"]]

    def of(self, image):
        """Symbols of an image with self samples."""
        return {r.symbol: r.self for r in self.rows
                if r.image == image and r.self > 0}

    def time_of(self, image):
        """The time of these symbols, in ns."""
        return {r.symbol: r.period for r in self.rows
                if r.image == image and r.self > 0}

    def calls(self):
        """{function: samples in which it is called}, from the guest's tree (of tester,
        in which no function occurs twice in a chain)."""
        found = collections.Counter()

        def walk(nodes, outermost):
            for node in nodes:
                if not outermost:
                    found[node["name"]] += node["total"]
                walk(node["calls"], False)
        walk(self.json["tree"], True)
        return found

    def export(self, form, out, *options):
        strobe("export", f"--{form}", "-o", out, *options, self.file)
        return str(out)


def callgrind(path, inclusive, event="Samples"):
    """{function: callgrind_annotate's number of an event}, and the total."""
    done = run("callgrind_annotate", f"--inclusive={inclusive}", "--auto=no",
               "--threshold=100", f"--show={event}", f"--sort={event}", path)
    assert not done.stderr, done.stderr
    found = collections.Counter()
    for line in done.stdout.splitlines():
        row = re.match(r" *([0-9,]+) \( *[0-9.]+%\) .*:([^: ]+(?: \(inlined\))?)"
                       r"(?: \[|$)", line)
        if row:
            found[row[2]] += int(row[1].replace(",", ""))
    whole = re.search(r"([0-9,]+) \(100.0%\) *PROGRAM TOTALS", done.stdout)
    return found, int(whole[1].replace(",", ""))
