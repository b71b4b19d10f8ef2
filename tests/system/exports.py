"""Runs tools/strobe, and reads its files with other tools."""
import base64
import collections
import json
import os
import re
import subprocess

from browser import Browser
from machine import PATIENCE, ROOT

TOOL = f"{ROOT}/tools/strobe"
SPEEDSCOPE = f"{ROOT}/build/npm/node_modules/speedscope/dist/release/index.html"
SPEEDSCOPE_VERSION = "speedscope@1.25.0"
Row = collections.namedtuple("Row", "image symbol self total")


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
        self.rows = [Row(r["image"], r["symbol"], r["samples"], r["total"])
                     for r in self.json["rows"]]

    def of(self, image):
        """Symbols of an image with self samples."""
        return {r.symbol: r.self for r in self.rows
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


def speedscope(path, functions, names):
    """Opens a file in speedscope, in Chromium: {profile: {function: self share in
    %}}. `names`: the expected profiles, in order."""
    run(f"{ROOT}/tools/build/npm", SPEEDSCOPE_VERSION)
    with open(path, "rb") as file:
        data = base64.b64encode(file.read()).decode()
    script = f"{path}.js"
    with open(script, "w") as file:
        file.write(f"speedscope.loadFileFromBase64('{os.path.basename(path)}',"
                   f" '{data}')")
    browser = Browser()
    try:
        browser.screen()
        browser.open(f"{SPEEDSCOPE}#localProfilePath={script}")
        browser.wait(lambda: "Sandwich" in browser.run(
            "return document.body.innerText"))
        browser.press("3")
        shares = {}
        for i, name in enumerate(names):
            if i > 0:
                browser.press("n")
            browser.wait(lambda: name in browser.run(
                "return document.body.innerText"))
            shares[name] = browser.wait(
                lambda: sandwich_rows(browser, functions))
    finally:
        browser.close()
    return shares


def sandwich_rows(browser, functions):
    """Rows, or None while some are missing: titles appear before rows."""
    shares = {}
    for row in browser.run("return [...document.querySelectorAll('tr')]"
                           ".map(row => row.innerText)"):
        row = re.search(r"\t.*\(([0-9.]+)%\)\s+(\S+)$", row, re.S)
        if row and row[2] in functions:
            shares[row[2]] = float(row[1])
    return shares if set(functions) <= shares.keys() else None
