"""Opens files in speedscope, in Chromium, and reads what it shows."""
import base64
import os
import re

from browser import Browser
from exports import run
from machine import ROOT

PAGE = f"{ROOT}/build/npm/node_modules/speedscope/dist/release/index.html"
VERSION = "speedscope@1.25.0"


class Speedscope:
    """A page of speedscope with a file, at its sandwich view."""

    def __init__(self, path):
        run(f"{ROOT}/tools/build/npm", VERSION)
        with open(path, "rb") as file:
            data = base64.b64encode(file.read()).decode()
        script = f"{path}.js"
        with open(script, "w") as file:
            file.write(f"speedscope.loadFileFromBase64('{os.path.basename(path)}',"
                       f" '{data}')")
        self.browser = Browser()
        try:
            self.browser.screen(height=900)
            self.browser.open(f"{PAGE}#localProfilePath={script}")
            self.browser.wait(lambda: "Sandwich" in self.text())
            self.browser.press("3")
        except BaseException:
            self.browser.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.close()

    def text(self):
        return self.browser.run("return document.body.innerText")

    def rows(self):
        """The cells of all tables."""
        return self.browser.run("return [...document.querySelectorAll('tr')]"
                                ".map(row => [...row.cells].map(c => c.textContent))")

    def next_profile(self):
        self.browser.press("n")


def speedscope(path, functions, names):
    """Opens a file: {profile: {function: self share in %}}. `names`: the expected
    profiles, in order."""
    shares = {}
    with Speedscope(path) as page:
        for i, name in enumerate(names):
            if i > 0:
                page.next_profile()
            page.browser.wait(lambda: name in page.text())
            shares[name] = page.browser.wait(lambda: sandwich_rows(page, functions))
    return shares


def sandwich_rows(page, functions):
    """Rows, or None while some are missing: titles appear before rows."""
    shares = {}
    for row in page.rows():
        share = re.search(r"\(([0-9.]+)%\)$", row[1]) if len(row) == 3 else None
        if share and row[2] in functions:
            shares[row[2]] = float(share[1])
    return shares if set(functions) <= shares.keys() else None
