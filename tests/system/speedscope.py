"""Opens files in speedscope, in Chromium, and reads what it shows."""
import base64
import collections
import os
import re

from browser import Browser
from exports import run
from machine import ROOT

PAGE = f"{ROOT}/build/npm/node_modules/speedscope/dist/release/index.html"
VERSION = "speedscope@1.25.0"
MICROSECONDS = {"s": 1e6, "ms": 1e3, "µs": 1, "ns": 1e-3}
TALL = 4000  # a screen on which the longest table of a test has all its rows
# A time as it is shown, in µs, and by how much it may be rounded.
Time = collections.namedtuple("Time", "us rounded")
Profile = collections.namedtuple("Profile", "total frames")


class Speedscope:
    """A page of speedscope with a file, at its sandwich view."""

    def __init__(self, path, height=900):
        run(f"{ROOT}/tools/build/npm", VERSION)
        with open(path, "rb") as file:
            data = base64.b64encode(file.read()).decode()
        script = f"{path}.js"
        with open(script, "w") as file:
            file.write(f"speedscope.loadFileFromBase64('{os.path.basename(path)}',"
                       f" '{data}')")
        self.browser = Browser()
        try:
            self.browser.screen(height=height)
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


def time_of(text):
    value, decimals, unit = re.match(r"(\d+\.(\d+))(s|ms|µs|ns)\b", text).groups()
    return Time(float(value) * MICROSECONDS[unit],
                MICROSECONDS[unit] / 2 / 10 ** len(decimals))


def profiles(path, expected):
    """{profile: its total time and {frame: (total, self)}}, all that are shown.
    `expected`: {profile: names of its frames}: they are waited for."""
    found = {}
    with Speedscope(path, TALL) as page:
        # The menu's rows: the place, the profile, its total.
        menu = page.browser.wait(lambda: [row for row in page.rows()
                                          if len(row) == 3 and row[0].isdigit()])
        assert {row[1] for row in menu} == expected.keys()
        for place, name, total in menu:
            title = f"{name} ({place}/{len(menu)})"
            page.browser.wait(lambda: title in page.text())
            frames = page.browser.wait(lambda: all_frames(page, expected[name]))
            found[name] = Profile(time_of(total), frames)
            page.next_profile()
    return found


def all_frames(page, names):
    """Of the profile that is shown; None: they are not those."""
    rows = [row for row in page.rows() if len(row) == 3 and row[0][-2:] == "%)"]
    if {row[2] for row in rows} != set(names):
        return None
    return {name: (time_of(total), time_of(own)) for total, own, name in rows}
