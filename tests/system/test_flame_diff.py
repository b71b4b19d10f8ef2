"""strobe diff --html and its page in a browser. The page's numbers are compared with the
samples, counted and tested for significance here."""
import json
import math
import re
import statistics
import subprocess

import pytest
from selenium.webdriver.common.keys import Keys

from browser import Browser
from machine import ROOT
from perf_file import IDLE, KERNEL, PerfFile

SCRIPT = "</script><script>document.body.id = 'owned'</script>"
PROGRAM = 'lu</script>"'
# Functions of lua, by their role here.
NAMES = {"main": "main", "slow": "luaV_execute", "fast": "luaH_getint",
         "same": "luaD_call", "noisy": "luaH_get", "gone": "luaS_new",
         "new": "luaD_precall"}
GREY = "rgb(219, 216, 211)"
TASK = 7

# Samples (1 ms each) of each path, outermost first, in each run.
BEFORE = ({("main", "slow"): (100, 102, 101, 103),
           ("main", "slow", "gone"): (40, 41, 39, 40),
           ("main", "same"): (50, 50, 50, 50),
           ("main", "noisy"): (10, 90, 30, 60)})
AFTER = ({("main", "slow"): (90, 92, 91, 90),
          ("main", "fast"): (20, 21, 22, 20),
          ("main", "same"): (50, 50, 50, 50),
          ("main", "noisy"): (80, 20, 40, 70),
          ("main", "new"): (5, 6, 5, 6)})


def addresses():
    """{function: an address a few bytes after its start}."""
    table = subprocess.run(["nm", f"{ROOT}/build/lua/lua"], capture_output=True,
                           text=True, check=True).stdout
    starts = {name: int(address, 16) for address, _, name in
              re.findall(r"^(\w+) (\w) (\w+)$", table, re.M)}
    return {function: starts[name] + 4 for function, name in NAMES.items()}


def recordings(folder, name, samples):
    """Writes a file for each run."""
    at = addresses()
    for run in range(len(next(iter(samples.values())))):
        made = PerfFile()
        made.command(b"sprofile", name.encode(), SCRIPT.encode())
        made.comm(TASK, PROGRAM.encode())
        made.mapping(TASK, b"/bin/lua")
        time = 1000000
        for path, counts in samples.items():
            for _ in range(counts[run]):
                time += 1000000
                made.sample(TASK, time, user=[at[f] for f in reversed(path)])
        made.sample(0, time, kernel=(0xc0100000,), flags=IDLE | KERNEL)
        path = folder / f"{name}{run}"
        path.write_bytes(made.bytes())
        yield str(path)


def compare(*arguments):
    return subprocess.run([f"{ROOT}/tools/strobe", "diff", *arguments],
                          capture_output=True, text=True, errors="replace")


def page_of(path, before, after):
    done = compare("--html", "-o", str(path), *before, "vs", *after)
    assert done.returncode == 0, done.stderr
    return path


def data_of(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(
            r'<script type="application/json" id="data">(.*?)</script>',
            file.read(), re.S).group(1))


def student(t, freedom):
    """P(|T| >= |t|): Simpson's rule over the density, with t = tan(x), for a finite
    interval."""
    steps, low = 20000, math.atan(abs(t))
    norm = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
                    ) / math.sqrt(freedom * math.pi)

    def density(x):
        if x >= math.pi / 2:
            return 0.0
        return norm * (1 + math.tan(x)**2 / freedom)**(-(freedom + 1) / 2) / \
            math.cos(x)**2
    width = (math.pi / 2 - low) / steps
    return 2 * width / 3 * sum(
        density(low + i * width) * (1 if i in (0, steps) else 4 if i % 2 else 2)
        for i in range(steps + 1))


def chance(before, after):
    va = statistics.variance(before) / len(before)
    vb = statistics.variance(after) / len(after)
    if va + vb == 0:
        return None
    t = (statistics.mean(after) - statistics.mean(before)) / math.sqrt(va + vb)
    freedom = (va + vb)**2 / (va**2 / (len(before) - 1) +
                              vb**2 / (len(after) - 1))
    return student(t, freedom)


def counted(samples, prefix, runs=4):
    """The samples of each run whose path begins with `prefix`."""
    return [sum(counts[run] for path, counts in samples.items()
                if path[:len(prefix)] == prefix) for run in range(runs)]


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flame_diff")
    before = list(recordings(folder, "old", BEFORE))
    after = list(recordings(folder, "new", AFTER))
    return page_of(folder / "diff.html", before, after), before, after


@pytest.fixture
def page(browser, made):
    browser.screen()
    browser.complaints()
    browser.requests()
    browser.open(made[0])
    browser.settle()
    yield browser
    assert browser.complaints() == []
    assert {url for url in browser.requests()
            if not url.startswith("data:")} == {f"file://{made[0]}"}


def frames(browser):
    """{path: (before, after, probability, width, colour, tooltip)} of visible frames."""
    browser.settle()
    found = browser.run("""
        const path = (node) => node.parent === null ? [] :
            [...path(node.parent), node.data.name];
        return [...document.querySelectorAll("g.frame")].map((g) => {
            const { before, after, chance } = g.__data__.data;
            return [path(g.__data__), before, after, chance,
                Number(g.getAttribute("width")),
                getComputedStyle(g.querySelector("rect")).fill,
                g.querySelector("title").textContent];
        });""")
    ours = {theirs: name for name, theirs in NAMES.items()}
    return {tuple(ours.get(name, "lua") for name in path): rest
            for path, *rest in found}


def all_paths():
    return {("lua", *path[:n]) for path in {**BEFORE, **AFTER}
            for n in range(len(path) + 1)} | {()}


def choose_widths(browser, value):
    browser.find("widths").find_element(
        "css selector", f"option[value={value}]").click()
    browser.run("document.activeElement.blur()")
    browser.settle()


# --- the graph ----------------------------------------------------------------

def test_frames_are_both_sides(page):
    """Every frame has its means, probability and width; also removed and new ones."""
    found = frames(page)
    assert found.keys() == all_paths()
    whole = found[()]
    for path, (before, after, p, width, _, title) in found.items():
        a, b = counted(BEFORE, path[1:]), counted(AFTER, path[1:])
        assert before == pytest.approx(statistics.mean(a))
        assert after == pytest.approx(statistics.mean(b))
        expected = chance(a, b)
        assert p == (expected if expected is None else
                     pytest.approx(expected, rel=1e-3, abs=1e-9)), path
        assert width / whole[3] == pytest.approx(
            (before + after) / (whole[0] + whole[1]))
        assert f"before {before:,.2f}".rstrip("0").rstrip(".") in title
    gone = found["lua", "main", "slow", "gone"][5]
    assert "before 40 ms, after 0 ms, change -40 ms (gone), chance <0.0001 ***" \
        in gone
    assert gone.startswith("luaS_new (/bin/lua): ")
    new = found["lua", "main", "fast"][5]
    assert "before 0 ms, after 20.75 ms, change +20.75 ms (new), chance " in new
    assert "chance unknown" in found["lua", "main", "same"][5]


def hue(color):
    red, _, blue = map(int, re.findall(r"\d+", color)[:3])
    return "orange" if red > blue + 30 else "blue" if blue > red + 20 else "grey"


def test_colours(page):
    """Significant increases are orange, decreases blue; other frames are grey. The legend
    has these colours."""
    found = frames(page)
    hues = {path: hue(color) for path, (*_, color, _) in found.items()}
    assert hues["lua", "main", "slow"] == hues["lua", "main", "slow", "gone"] == \
        "blue"
    assert hues["lua", "main", "fast"] == hues["lua", "main", "new"] == "orange"
    assert found["lua", "main", "noisy"][2] > 0.05
    assert {found["lua", "main", name][4] for name in ("noisy", "same")} == {GREY}
    legend = page.run("""
        return [...document.querySelectorAll("#legend li")].map((li) =>
            [getComputedStyle(li.querySelector("i")).backgroundColor,
             li.textContent]);""")
    assert len(legend) == 7
    colors = dict(legend)
    assert {color for *_, color, _ in found.values()} <= colors.keys()
    assert colors[found["lua", "main", "fast"][4]] == \
        "more: more than half, or all of it"
    assert colors[found["lua", "main", "slow"][4]] == "less: under half"
    assert "chance" in colors[GREY]
    page.screen(scheme="dark")
    page.wait(lambda: frames(page)["lua", "main", "same"][4] != GREY)
    dark = frames(page)
    assert {path: hue(color) for path, (*_, color, _) in dark.items()} == hues


def test_widths(page):
    choose_widths(page, "before")
    before = frames(page)
    assert before.keys() == {path for path in all_paths()
                             if sum(counted(BEFORE, path[1:]))}
    for _, (a, _, _, width, *_) in before.items():
        assert width / before[()][3] == pytest.approx(a / before[()][0])
    assert "what is new has none" in page.find("legend-note").text
    choose_widths(page, "after")
    after = frames(page)
    assert after.keys() == {path for path in all_paths()
                            if sum(counted(AFTER, path[1:]))}
    assert ("lua", "main", "slow", "gone") not in after
    assert page.run("return location.hash") == "#widths=after"


def test_inverted(page):
    page.press("i")
    found = frames(page)
    leaves = {}
    for side, samples in enumerate((BEFORE, AFTER)):
        for path, counts in samples.items():
            leaves.setdefault(path[-1], [0, 0])[side] += statistics.mean(counts)
    assert {path[0]: row[:2] for path, row in found.items() if len(path) == 1} \
        == {name: pytest.approx(sides) for name, sides in leaves.items()}
    assert found["gone", "slow", "main", "lua"][0] == 40
    assert page.run("return location.hash") == "#inverted=true"


def test_search_and_address(page):
    """The URL keeps search, widths and zoom; a bad expression is reported."""
    choose_widths(page, "before")
    page.press("/", "(")
    page.wait(lambda: "nvalid regular expression" in page.find("found").text)
    page.press(Keys.BACKSPACE, "^luaV_|luaS_")
    page.wait(lambda: "luaS_" in page.run("return location.hash"))
    before = statistics.mean(counted(BEFORE, ("main", "slow")))
    after = statistics.mean(counted(AFTER, ("main", "slow")))
    assert page.find("found").text == \
        f"found in {before:g} ms before, {after:g} ms after"
    page.run("document.activeElement.blur()")
    page.run("""
        [...document.querySelectorAll("g.frame")]
            .find((g) => g.__data__.data.name === "luaV_execute")
            .dispatchEvent(new MouseEvent("click", { bubbles: true }));""")
    page.settle()
    before, address = frames(page), page.run("return location.hash")
    assert "zoom=" in address and "widths=before" in address
    page.run("location.hash = ''")
    page.wait(lambda: not page.find("reset").is_enabled())
    page.run("location.hash = arguments[0]", address)
    page.wait(lambda: page.find("reset").is_enabled())
    assert frames(page) == before
    assert page.find("search").get_attribute("value") == "^luaV_|luaS_"
    assert page.run("return location.hash") == address
    page.press(Keys.ESCAPE)
    assert page.run("return location.hash") == "#widths=before"


# --- the rest of the page -----------------------------------------------------

def test_table_and_head(page, made):
    """The table is that of `diff --json` without the total; the head names the runs."""
    rows = json.loads(compare("--json", *made[1], "vs", *made[2]).stdout)["rows"]
    shown = page.run("""
        return [...document.querySelectorAll("#changes tbody tr")].map((tr) =>
            [...tr.cells].map((td) => td.textContent));""")
    assert [row[4] for row in shown] == [row["name"] for row in rows[1:]]
    for row, expected in zip(shown, rows[1:]):
        assert float(row[0]) == pytest.approx(expected["before"], abs=0.006)
        assert float(row[1]) == pytest.approx(expected["after"], abs=0.006)
    facts = page.find("facts").text
    assert "sprofile old" in facts and "sprofile new" in facts
    for path in made[1] + made[2]:
        assert path in facts
    assert page.run("return document.body.id") == ""


@pytest.mark.parametrize("width", [360, 800])
def test_narrow_screens(page, width):
    page.screen(width=width, height=740)
    page.wait(lambda: page.run(
        "return document.documentElement.clientWidth") == width)
    page.wait(lambda: all(row[3] < width for row in frames(page).values()))
    assert page.run("return document.documentElement.scrollWidth") == width


def test_one_run_on_a_side(browser, made, tmp_path):
    """With one run on a side the page says that significance is unknown; changes have
    their colours."""
    path = page_of(tmp_path / "one.html", made[1][:1], made[2][:1])
    browser.complaints()
    browser.open(path)
    assert "is unknown" in browser.find("legend-note").text
    found = frames(browser)
    assert all(row[2] is None for row in found.values())
    assert hue(found["lua", "main", "noisy"][4]) == "orange"
    assert found["lua", "main", "same"][4] == GREY
    assert browser.complaints() == []


def test_nothing_but_idle(browser, tmp_path):
    idle = PerfFile()
    idle.comm(0, b"swapper")
    idle.sample(0, 1000, kernel=(0xc0100000,), flags=IDLE | KERNEL)
    data = tmp_path / "idle"
    data.write_bytes(idle.bytes())
    path = page_of(tmp_path / "idle.html", [str(data)], [str(data)])
    browser.complaints()
    browser.open(path)
    browser.settle()
    assert browser.find("shown").text.startswith("0 ms before, 0 ms after")
    assert browser.complaints() == []


def test_what_is_below_a_ten_thousandth_is_left_out(made, tmp_path):
    samples = {("main", "same"): (9999,), ("main", "gone"): (1,),
               ("main", "fast"): (2,)}
    files = list(recordings(tmp_path, "large", samples))
    data = data_of(page_of(tmp_path / "page.html", files, files))
    left = {data["symbols"]["name"][s] for s in data["calls"]["symbol"][1:]}
    assert left == {PROGRAM, NAMES["main"], NAMES["same"], NAMES["fast"]}
    assert data["calls"]["before"][0] == pytest.approx(10002)
    assert data["left_out"] == 0.0001


# --- what is wrong is said ----------------------------------------------------

def test_diff_says_what_is_wrong(made, tmp_path):
    a, b = made[1][0], made[2][0]
    for arguments, words in (
            (("-o", "x", a, b), "is for the page: --html -o x"),
            (("--html", "--json", a, b), "one at a time"),
            (("--html", "--rows", "5", a, b), "the page has all"),
            (("--html", "--total", a, b), "is for the table"),
            (("--html", a), "at least two files")):
        done = compare(*arguments)
        assert done.returncode == 2 and words in done.stderr, done.stderr
    done = compare("--html", "-o", f"{tmp_path}/no/page", a, b)
    assert done.returncode == 1 and "No such file or directory" in done.stderr
    done = compare("--html", a, "/bin/true")
    assert done.returncode == 1 and "not a perf.data file" in done.stderr
