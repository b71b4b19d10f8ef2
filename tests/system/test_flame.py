"""make flame and its page in a browser. The page's numbers are compared with those
counted here from its data."""
import collections
import json
import os
import re
import subprocess

import pytest
from selenium.webdriver.common.keys import Keys

from browser import Browser
from machine import ROOT
from perf_file import IDLE, KERNEL, PerfFile

_, KERNEL_MODE, _, IDLE_MODE = range(4)
SCRIPT = "</script><script>document.body.id = 'owned'</script>"


def strobe(*arguments):
    return subprocess.run([f"{ROOT}/tools/strobe", *arguments],
                          capture_output=True, text=True, errors="replace")


class Counted:
    """A page's data, counted independently."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = re.search(r'<script type="application/json" id="data">'
                             r"(.*?)</script>", file.read(), re.S).group(1)
        self.data = data = json.loads(text)
        origin = list(zip(*(data["origin"][key] for key in ("task", "cpu", "mode",
                                                   "event"))))
        self.counts = [(b, node, *origin[w], n)
                       for b, bin_ in enumerate(data["bins"])
                       for node, w, _, n in zip(*[iter(bin_)] * 4)]
        self.of_samples = [n for bin_ in data["bins"] for n in bin_[2::4]]

    def chain(self, node):
        """The symbols of a node's chain, innermost first."""
        names = self.data["symbols"]["name"]
        return (names[symbol] for symbol in self.symbols(node))

    def symbols(self, node):
        """The symbol numbers of a node's chain, innermost first."""
        nodes = self.data["nodes"]
        while node:
            yield nodes["symbol"][node]
            node = nodes["parent"][node]

    def period(self, task=None, cpu=None, idle=False, bins=None, name=None,
                event=None):
        return sum(n for b, node, t, c, mode, e, n in self.counts
                   if (event is None or e == event) and (task is None or self.data["tasks"][t][1] == task) and
                   (cpu is None or c == cpu) and
                   (idle or mode != IDLE_MODE) and
                   (bins is None or bins[0] <= b < bins[1]) and
                   (name is None or name in self.chain(node)))

    def leaves(self):
        """The period of each innermost function, by name and image, without idle."""
        symbols, leaves = self.data["symbols"], {}
        for _, node, _, _, mode, _, n in self.counts:
            symbol = self.data["nodes"]["symbol"][node]
            key = (symbols["name"][symbol],
                   self.data["images"][symbols["image"][symbol]])
            if mode != IDLE_MODE:
                leaves[key] = leaves.get(key, 0) + n
        return leaves


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def flame():
    """The status and output of make flame, and its page's data."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-s", "--no-print-directory", "-C", ROOT, "flame",
         "CMD=lua /share/bench.lua 1", "VM=--smp 2"],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, errors="replace")
    assert done.returncode == 0, done.stdout + done.stderr
    return done, Counted(f"{ROOT}/build/flame.html")


@pytest.fixture
def page(browser, flame):
    """The page, just opened, in a wide, light window. At the end the console is empty,
    and only the page was requested."""
    browser.screen()
    browser.complaints()
    browser.requests()
    browser.open(f"{ROOT}/build/flame.html")
    yield browser
    assert browser.complaints() == []
    assert {url for url in browser.requests()
            if not url.startswith("data:")} == \
        {f"file://{ROOT}/build/flame.html"}


def shown(browser):
    """The period that the page says it shows: ms, with three decimals."""
    browser.settle()
    return about(browser.find("shown").text)


def about(text):
    """The first number of ms, in ns."""
    number = re.search(r"([\d,.]+)(?: of [\d,.]+)? ms", text)[1]
    return pytest.approx(float(number.replace(",", "")) * 1e6, abs=1000)


def frames(browser):
    """(name, depth, period, width in pixels) of all frames."""
    browser.settle()
    return browser.run("""
        return [...document.querySelectorAll("g.frame")].map((g) => [
            g.getAttribute("name"), g.__data__.depth, g.__data__.data.value,
            Number(g.getAttribute("width"))]);""")


def click_frame(browser, name):
    browser.run("""
        [...document.querySelectorAll("g.frame")]
            .find((g) => g.getAttribute("name") === arguments[0])
            .dispatchEvent(new MouseEvent("click", { bubbles: true }));""",
                name)
    browser.settle()


def choose(browser, id_, text):
    """Selects the option that begins with `text`."""
    for option in browser.find(id_).find_elements("tag name", "option"):
        if option.text.strip().startswith(text):
            option.click()
            return
    assert False, f"there is no {text} in {id_}"


def page_with(path, data):
    """Writes the page of hand-made data."""
    with open(f"{ROOT}/build/page.html", encoding="utf-8") as file:
        path.write_text(file.read().replace("{{data}}", json.dumps(data)))
    return path


def page_of(tmp_path, made):
    """Writes the page of a hand-made perf.data file."""
    data, page = tmp_path / "perf.data", tmp_path / "page.html"
    data.write_bytes(made.bytes())
    done = strobe("export", "--html", "-o", str(page), str(data))
    assert done.returncode == 0, done.stderr
    return page


# --- a real run ---------------------------------------------------------------

def test_make_flame_counts_what_sprofile_counted(flame, page):
    done, counted = flame
    taken = int(re.search(r"Samples:.* (\d+) taken", done.stdout)[1])
    assert "build/flame.html" in done.stdout.splitlines()[-1]
    assert "build id" not in done.stderr, done.stderr
    event, total = counted.data["events"][0], counted.period(idle=True)
    assert event["unit"] == "ns" and event["total"] == total
    assert about(re.search(r"Total: .*", done.stdout)[0]) == total
    assert event["samples"] == sum(counted.of_samples) == taken
    assert shown(page) == counted.period()
    page.find("mode-idle").click()
    assert shown(page) == total
    text = page.find("shown").text
    assert text.startswith("all ") and text.endswith(f" ms ({taken:,} samples)")
    assert {name for name, depth, *_ in frames(page) if depth == 1} >= \
        {"lua", "idle"}
    root = [frame for frame in frames(page) if frame[1] == 0]
    assert [frame[2] for frame in root] == [total]


def test_header_is_the_reports(flame, page):
    facts = dict(zip(
        [e.text for e in page.driver.find_elements("tag name", "dt")],
        [e.text for e in page.driver.find_elements("tag name", "dd")]))
    report = re.sub("\n +", " ", strobe("report", f"{ROOT}/build/flame.data").stdout)
    assert {"Source", "Samples", "Ticks", "Cost"} <= facts.keys()
    for name, text in facts.items():
        assert re.search(rf"^{name}: +{re.escape(text)}$", report, re.M), report
    assert "lua /share/bench.lua 1" in page.find("title").text


def test_widths_are_shares(flame, page):
    whole, width = next((n, w) for _, depth, n, w in frames(page) if depth == 0)
    assert whole == shown(page)
    for _, depth, period, w in frames(page):
        if depth == 1:
            assert abs(w - width * period / whole) < 0.01


def is_found(page, period):
    text = page.find("found").text
    return text.startswith("found in ") and about(text) == period


def test_search(flame, page):
    name = "luaV_execute"
    page.press("/", name[:8].upper())
    matching = sum(
        n for _, node, _, _, mode, _, n in flame[1].counts if mode != IDLE_MODE and
        any(name[:8].lower() in symbol.lower()
            for symbol in flame[1].chain(node)))
    assert matching > 0
    page.wait(lambda: is_found(page, matching))
    page.press(Keys.ESCAPE)
    page.wait(lambda: not page.find("found").text)


def found(counted, pattern):
    """The period of samples with a function whose name matches."""
    return sum(n for _, node, _, _, mode, _, n in counted.counts
               if mode != IDLE_MODE and any(
                   re.search(pattern, symbol) for symbol in counted.chain(node)))


def test_search_for_a_regular_expression(flame, page):
    page.press("/", "^luaV_(execute|concat)")
    matching = found(flame[1], "^luaV_(execute|concat)")
    assert matching > 0
    page.wait(lambda: is_found(page, matching))
    page.press("(")
    page.wait(lambda: "nvalid regular expression" in page.find("found").text)
    page.press(Keys.BACKSPACE)
    page.wait(lambda: page.find("found").text.startswith("found in "))


def test_the_address_has_what_is_chosen(flame, page):
    """The URL keeps the selection: opened again, the page shows the same."""
    page.find("mode-kernel").click()
    page.press("i")
    page.press("i")
    click_frame(page, "luaV_execute")
    page.press("/", "mem.y")
    page.wait(lambda: "search=mem.y" in page.run("return location.href"))
    page.settle()
    page.run("document.activeElement.blur()")
    said = [page.find(part).text for part in ("shown", "found")]
    before, address = frames(page), page.run("return location.href")
    assert "zoom=" in address and "search=mem.y" in address
    page.open(f"{ROOT}/build/flame.html")
    assert page.find("mode-kernel").is_selected()
    assert page.find("search").get_attribute("value") == ""
    page.run("location.hash = arguments[0]", address.split("#")[1])
    page.wait(lambda: page.find("reset").is_enabled())
    assert not page.find("mode-kernel").is_selected()
    assert [page.find(part).text for part in ("shown", "found")] == said
    assert sorted(frames(page)) == sorted(before)
    page.run("location.hash = 'zoom=x&task=none&time=9-1&samples=user&event=7&"
             "function=length'")
    page.wait(lambda: not page.find("reset").is_enabled())
    assert page.run("return location.hash") == "#samples=user"
    page.press("i")
    assert page.run("return location.hash") == "#samples=user&inverted=true"


def test_zoom(flame, page):
    before = frames(page)
    whole = next(w for _, depth, _, w in before if depth == 0)
    assert not page.find("reset").is_enabled()
    click_frame(page, "luaV_execute")
    assert page.find("reset").is_enabled()
    zoomed = frames(page)
    assert whole == pytest.approx(
        max(w for name, _, _, w in zoomed if name == "luaV_execute"))
    assert [name for name, depth, *_ in zoomed if depth == 1] == ["lua"]
    assert page.find("details").text.startswith("luaV_execute (/bin/lua): ")
    page.find("reset").click()
    assert not page.find("reset").is_enabled()
    assert sorted(frames(page)) == sorted(before)


def test_inverted_begins_with_innermost_functions(flame, page):
    page.press("i")
    assert page.find("invert").get_attribute("aria-pressed") == "true"
    page.settle()
    leaves = flame[1].leaves()
    first = page.run("""
        return d3.select("#graph").datum().children.map((node) =>
            [node.data.name, node.data.image, node.data.value]);""")
    counted = collections.Counter()
    for name, image, n in first:  # static functions may share a name
        counted[name, image] += n
    # The widest frames are made first, up to the limit of drawn frames.
    assert counted.items() <= leaves.items()
    left_out = [n for leaf, n in leaves.items() if leaf not in counted]
    assert max(left_out, default=0) <= min(counted.values())
    shown_first = [n for _, depth, n, _ in frames(page) if depth == 1]
    assert max(shown_first) == max(n for *_, n in first)
    page.run("document.getElementById('graph').focus()")
    page.press(Keys.ARROW_DOWN)
    assert "sample" in page.find("details").text
    assert "of its own" not in page.find("details").text
    page.find("invert").click()
    assert "lua" in [name for name, depth, *_ in frames(page) if depth == 1]


def test_tasks_and_cpus(flame, page):
    counted = flame[1]
    choose(page, "task", "lua,")
    assert shown(page) == counted.period(task="lua")
    assert [name for name, depth, *_ in frames(page) if depth == 1] == ["lua"]
    choose(page, "cpu", "CPU 1")
    assert shown(page) == counted.period(task="lua", cpu=1)
    choose(page, "task", "all")
    assert shown(page) == counted.period(cpu=1)


def test_modes(flame, page):
    page.find("mode-user").click()
    page.find("mode-irq").click()
    modes = [n for *_, mode, _, n in flame[1].counts if mode == KERNEL_MODE]
    assert shown(page) == sum(modes)


def test_time(flame, page):
    """Keys and dragging select a part of the time."""
    counted, bins = flame[1], len(flame[1].data["bins"])
    tenth = -(-bins // 10)
    area = page.driver.find_element("css selector", "#timeline .area")
    page.run("arguments[0].focus()", area)
    page.press(Keys.ARROW_RIGHT)
    assert shown(page) == counted.period(bins=(0, tenth))
    page.press(Keys.ARROW_RIGHT)
    assert shown(page) == counted.period(bins=(1, tenth + 1))
    page.press(Keys.ESCAPE)
    assert shown(page) == counted.period()
    page.run("""
        const area = arguments[0], box = area.getBoundingClientRect();
        area.setPointerCapture = () => {};
        for (const [type, part] of [["down", 0.25], ["move", 0.4],
            ["up", 0.499]]) {
          area.dispatchEvent(new PointerEvent(`pointer${type}`,
            { clientX: box.left + part * box.width }));
        }""", area)
    assert shown(page) == counted.period(
        bins=(int(bins * 0.25), int(bins * 0.499) + 1))
    page.find("all-time").click()
    assert shown(page) == counted.period()


def test_keys_in_the_graph(flame, page):
    page.run("document.getElementById('graph').focus()")
    assert page.find("details").text.startswith("all: ")
    page.press(Keys.ARROW_UP)
    base = max((n, name) for name, depth, n, _ in frames(page) if depth == 1)
    assert page.find("details").text.startswith(f"{base[1]}: ")
    page.press(Keys.ARROW_UP, Keys.ENTER)
    assert page.find("reset").is_enabled()
    page.press(Keys.ESCAPE)
    assert not page.find("reset").is_enabled()
    page.press(Keys.HOME)
    assert page.find("details").text.startswith("all: ")


def luminance(color):
    red, green, blue = map(int, re.findall(r"\d+", color)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_light_and_dark(flame, page):
    def colors():
        return page.run("""
            const style = (query) =>
                getComputedStyle(document.querySelector(query));
            return [style("body").backgroundColor, style("body").color,
                style("g.frame rect").fill,
                style(".d3-flame-graph-label").color];""")
    paper, ink, frame, label = map(luminance, colors())
    assert paper > 200 and ink < 60 and frame > label + 100
    page.screen(scheme="dark")
    paper, ink, frame, label = map(luminance, page.wait(
        lambda: colors() if luminance(colors()[2]) < frame else None))
    assert paper < 60 and ink > 200 and label > frame + 100


@pytest.mark.parametrize("width", [360, 800])
def test_narrow_screens(flame, page, width):
    page.screen(width=width, height=740)
    click_frame(page, "luaV_execute")
    page.wait(lambda: page.run(
        "return document.documentElement.clientWidth") == width)
    page.wait(lambda: max(w for *_, w in frames(page)) < width)
    page.wait(lambda: page.find("calls").is_displayed())
    assert page.run("return document.documentElement.scrollWidth") == width
    wide = page.run("""
        return [...document.querySelectorAll("body *")].filter((e) =>
            e.getBoundingClientRect().right > innerWidth + 0.5)
            .map((e) => e.outerHTML.slice(0, 80));""")
    assert wide == []


# --- callers and callees ------------------------------------------------------

def calls(counted, chosen):
    """Callers and callees of function `chosen` (a symbol number): name, image and
    period, as in the page's tables; a sample counts once in each row."""
    nodes, symbols = counted.data["nodes"], counted.data["symbols"]
    callers, callees = collections.Counter(), collections.Counter()
    total = 0

    def named(symbol):
        return ["", ""] if symbol is None else [
            symbols["name"][symbol],
            counted.data["images"][symbols["image"][symbol]]]

    for _, node, _, _, mode, _, n in counted.counts:
        if mode == IDLE_MODE or not node:
            continue
        path = list(counted.symbols(node))
        total += n * (chosen in path)
        callers.update({caller: n for callee, caller in
                        zip(path, path[1:] + [None]) if callee == chosen})
        callees.update({callee: n for callee, caller in zip(path, path[1:])
                        if caller == chosen})
        if nodes["symbol"][node] == chosen:
            callees[None] += n
    return total, *(sorted([*named(symbol), n] for symbol, n in side.items())
                    for side in (callers, callees))


def table(browser, id_):
    """(name, image, period in ns) of a table's rows; a missing name is empty."""
    browser.settle()
    return sorted(browser.run("""
        const text = (row, what) => row.querySelector(what)?.textContent ?? "";
        return [...document.getElementById(arguments[0]).tBodies[0].rows]
            .map((row) => [text(row, "button"), text(row, "span.image"),
                1e6 * parseFloat(row.cells[0].textContent.replace(/,/g, ""))]);""", id_))


def assert_rows(browser, id_, rows):
    found = table(browser, id_)
    assert [row[:2] for row in found] == [row[:2] for row in rows]
    assert [row[2] for row in found] == pytest.approx([row[2] for row in rows],
                                                      abs=1000)


def assert_calls(browser, counted, symbol):
    total, callers, callees = calls(counted, symbol)
    browser.settle()
    assert about(browser.find("chosen-amount").text) == total
    assert_rows(browser, "callers", callers)
    assert_rows(browser, "callees", callees)


def test_callers_and_callees(flame, page):
    """A click on a frame, a hot function or a row shows callers and callees; the URL
    keeps the function."""
    names = flame[1].data["symbols"]["name"]
    assert not page.find("calls").is_displayed()
    click_frame(page, "luaV_execute")
    assert_calls(page, flame[1], names.index("luaV_execute"))
    page.find("reset").click()
    assert_calls(page, flame[1], names.index("luaV_execute"))
    row = page.driver.find_element("css selector", "#callers button")
    name = row.text
    row.click()
    assert page.find("chosen").text.startswith(name)
    hot = page.driver.find_element("css selector", "#top button")
    name = hot.text
    hot.click()
    assert page.find("chosen").text.startswith(name)
    said = [table(page, id_) for id_ in ("callers", "callees")]
    address = page.run("return location.href")
    page.open(f"{ROOT}/build/flame.html")
    page.run("location.hash = arguments[0]", address.split("#")[1])
    page.wait(lambda: page.find("calls").is_displayed())
    assert [table(page, id_) for id_ in ("callers", "callees")] == said


def test_callers_and_callees_of_the_recursive(browser, tmp_path):
    """In a recursion A, B, A ... each sample counts once in a row."""
    a, b, c = 0x8049000, 0x804a000, 0x804b000
    made = PerfFile()
    made.comm(7, b"lua")
    made.mapping(7, b"/bin/unheard-of")

    for i, path in enumerate(((a, b, a, b, a, c), (a, a, a), (b, a, b, a),
                              (c,))):
        made.sample(7, 1000 * i, user=path)
    page = page_of(tmp_path, made)
    browser.open(page)
    click_frame(browser, hex(a))
    counted = Counted(page)
    assert_calls(browser, counted,
                 counted.data["symbols"]["name"].index(hex(a)))
    assert table(browser, "callers") == [
        ["", "", 2e6], [hex(a), "/bin/unheard-of", 1e6],
        [hex(b), "/bin/unheard-of", 2e6], [hex(c), "/bin/unheard-of", 1e6]]
    assert table(browser, "callees") == [
        ["", "", 2e6], [hex(a), "/bin/unheard-of", 1e6],
        [hex(b), "/bin/unheard-of", 2e6]]
    assert browser.find("chosen-amount").text == "is on the path for 3 ms, 75.0 %"


# --- files made by hand -------------------------------------------------------

def test_names_are_only_names(browser, tmp_path):
    made = PerfFile()
    made.command(b"sprofile", SCRIPT.encode(), b"\xff\"\\")
    made.comm(7, b"lu</script>\"\xff")
    made.mapping(7, b"/bin/" + SCRIPT.encode())
    made.sample(7, 1000, user=(0x8049010, 0x8049100))
    browser.complaints()
    browser.open(page_of(tmp_path, made))
    assert browser.run("return document.body.id") == ""
    assert 'lu</script>"\xff' in [name for name, *_ in frames(browser)]
    assert SCRIPT in browser.find("title").text
    assert "/bin/" + SCRIPT in browser.driver.find_element(
        "css selector", "#top .image").get_attribute("textContent")
    assert browser.complaints() == []


def test_no_samples(browser, tmp_path):
    made = PerfFile()
    made.comm(7, b"lua")
    browser.complaints()
    browser.open(page_of(tmp_path, made))
    assert browser.find("shown").text == "all 0 ms (0 samples)"
    assert browser.complaints() == []


def test_only_idle_is_shown(browser, tmp_path):
    made = PerfFile()
    made.comm(0, b"swapper")
    made.sample(0, 1000, kernel=(0xc0100000,), flags=IDLE | KERNEL)
    browser.open(page_of(tmp_path, made))
    assert browser.find("shown").text == "all 1 ms (1 sample)"
    assert "idle" in [name for name, *_ in frames(browser)]


@pytest.mark.parametrize("cpus", (1, 8, 32))
def test_many_cpus(browser, tmp_path, cpus):
    """The timeline has all CPUs, and the graph begins on the same screen; labels are
    beside their CPUs and do not overlap."""
    made = PerfFile()
    made.comm(7, b"lua")
    for cpu in range(cpus):
        made.sample(7, 1000 + cpu, user=(0x8049010,), cpu=cpu)
    browser.screen()
    browser.open(page_of(tmp_path, made))
    top, height, graph, labels = browser.run("""
        const box = (e) => e.getBoundingClientRect();
        const canvas = box(document.querySelector("#timeline canvas"));
        return [canvas.top, canvas.height,
            box(document.getElementById("graph")).top - canvas.top,
            [...document.querySelectorAll("#timeline .labels span")]
                .map((e) => [e.textContent, box(e).top])];""")
    assert graph < 400
    row = (height + 2) / cpus
    assert labels[0] == ["CPU 0", pytest.approx(top)]
    for name, label in labels:
        assert label - top == pytest.approx(row * int(name.split()[1]), abs=2)
    for (_, above), (_, below) in zip(labels, labels[1:]):
        assert below - above >= 15


def test_large_profile(browser, tmp_path):
    """200,000 samples on 4 CPUs, of 20,000 nodes, in chains up to 127 deep, are right."""
    made = PerfFile()
    made.comm(7, b"lua")
    made.mapping(7, b"/bin/unheard-of")
    depths = [127] + [1 + leaf % 40 for leaf in range(1, 1000)]
    chains = [range(0x8049000 + 0x1000 * leaf, 0x8049000 + 0x1000 * leaf +
                    16 * depth, 16) for leaf, depth in enumerate(depths)]
    for i in range(200000):
        made.sample(7, 1000000 + 250000 * i, cpu=i % 4,
                    user=chains[0 if i % 100 == 0 else i * 7919 % 1000])
    browser.complaints()
    page = page_of(tmp_path, made)
    assert len(Counted(page).data["nodes"]["parent"]) > 20000
    browser.open(page)
    assert browser.find("shown").text == "all 200,000 ms (200,000 samples)"
    deepest = max(depth for _, depth, *_ in frames(browser))
    assert deepest == 1 + max(depths)
    assert browser.complaints() == []


# --- more than a browser draws ------------------------------------------------

def data_of_calls(parent, symbol, samples, bins=1):
    """Data of a page with one program; samples: node, count, node, count ..."""
    names = max(symbol) + 1
    lists = [[] for _ in range(bins)]
    for i in range(0, len(samples), 2):
        lists[i // 2 % bins] += [samples[i], 0, samples[i + 1], samples[i + 1]]
    return {
        "title": "calls", "seconds": 1, "cpus": 1,
        "events": [{"name": "cycles", "unit": "cycles", "total": sum(samples[1::2]),
                    "samples": sum(samples[1::2]), "facts": []}],
        "images": ["/bin/calls"],
        "symbols": {"name": [f"f{i}" for i in range(names)],
                    "image": [0] * names},
        "nodes": {"parent": parent, "symbol": symbol}, "tasks": [[7, "calls"]],
        "origin": {"task": [0], "cpu": [0], "mode": [0], "event": [0]},
        "bins": lists}


def test_zooming_shows_what_was_left_out(browser, tmp_path):
    """Zooming shows frames that were omitted: 100 functions call 100 each."""
    parent, symbol, samples = [0], [0], []
    for branch in range(100):
        at = len(parent)
        parent.append(0)
        symbol.append(branch)
        for leaf in range(100):
            samples += [len(parent), 1000 + 10 * (100 - branch) + leaf]
            parent.append(at)
            symbol.append(100 + 100 * branch + leaf)
    page = page_with(tmp_path / "page.html",
                     data_of_calls(parent, symbol, samples))
    browser.open(page)
    browser.settle()

    def made():
        return browser.run(
            "return d3.select('#graph').datum().descendants().length")
    assert browser.find("cut").is_displayed()
    assert made() == 4001
    narrow = [["f99", 2, 100 * 1010 + sum(range(100))]] + [
        [f"f{10000 + leaf}", 3, 1010 + leaf] for leaf in range(100)]
    assert "f10000" not in [name for name, *_ in frames(browser)]
    click_frame(browser, "f99")
    assert sorted(row[:3] for row in frames(browser) if row[1] >= 2) == \
        sorted(narrow)
    click_frame(browser, "f10000")
    address = browser.run("return location.hash")
    assert browser.find("reset").is_enabled() and "f10000" in address
    before = frames(browser)
    browser.open(page)
    browser.run("location.hash = arguments[0]", address)
    browser.wait(lambda: browser.find("reset").is_enabled())
    assert sorted(frames(browser)) == sorted(before)
    assert browser.run("return location.hash") == address
    browser.press("/", "^f10000$")
    browser.press(Keys.ESCAPE)


MILLION = 10**6
SAMPLED_NODES = 200000


def million():
    """A million samples of 200,000 call paths up to 60 deep."""
    parent, symbol, level = [0], [0], [0]
    draw = 1
    while len(parent) <= SAMPLED_NODES:
        draw = draw * 1103515245 + 12345 & 0x7fffffff
        at = draw >> 8
        at = at % len(parent) if at % 10 < 3 else len(parent) - 1
        at = at if level[at] < 60 else 0
        parent.append(at)
        symbol.append((draw >> 11) % 2000)
        level.append(level[at] + 1)
    samples = []
    for i in range(MILLION):
        samples += [1 + i * 7919 % SAMPLED_NODES, 1]
    return data_of_calls(parent, symbol, samples, bins=1000)


@pytest.fixture(scope="module")
def million_page(tmp_path_factory):
    return page_with(tmp_path_factory.mktemp("million") / "page.html",
                     million())


def test_a_million_samples_inverted(browser, million_page):
    """The page responds while it counts, and the frames that it draws are right."""
    browser.complaints()
    browser.open(million_page)
    browser.settle()
    assert browser.find("shown").text == "all 1,000,000 cycles (1,000,000 samples)"
    answered = browser.driver.execute_async_script("""
        const done = arguments[0], channel = new MessageChannel();
        const graph = document.getElementById("graph");
        let answers = 0;
        channel.port1.onmessage = () => {
            if (graph.getAttribute("aria-busy") !== "true") {
                done(answers);
                return;
            }
            answers++;
            channel.port2.postMessage(null);
        };
        document.getElementById("invert").click();
        channel.port2.postMessage(null);""")
    assert answered > 50
    leaves = {name: n for (name, _), n in
              Counted(million_page).leaves().items()}
    made = browser.run("""
        const root = d3.select("#graph").datum();
        return [root.descendants().length, root.children.map((node) =>
            [node.data.value, node.data.name])];""")
    assert made[0] <= 4001
    assert len(made[1]) > 100
    assert [n for n, _ in made[1]] == \
        sorted(leaves.values(), reverse=True)[:len(made[1])]
    assert all(leaves[name] == n for n, name in made[1])
    assert browser.complaints() == []


def test_pieces(browser, million_page):
    """Between two turns of the event loop the page works on at most a piece of the
    samples (counted by reads of their lists)."""
    parts = []
    for name in ("common", "pieces", "tree", "profile", "calls"):
        with open(f"{ROOT}/tools/strobe-src/page/{name}.js", encoding="utf-8") as file:
            parts.append(file.read())
    browser.open(million_page)
    browser.settle()
    piece, whole, longest = browser.run("\n".join(parts) + """
        const profile = loadProfile(byId("data").textContent);
        let reads = 0;
        const watched = (list) => new Proxy(list, { get(list, key) {
            reads++;
            return list[key];
        } });
        profile.nodes.parent = watched(profile.nodes.parent);
        profile.nodes.symbol = watched(profile.nodes.symbol);
        profile.bins = profile.bins.map(watched);
        const filter = { event: 0, task: null, program: null, cpu: null,
            modes: [true, true, true, true], bins: [0, profile.bins.length] };
        const found = {};
        function run(name, work) {
            const begin = reads;
            found[name] = [0, 0];
            for (;;) {
                const before = reads;
                const { done, value } = work.next();
                found[name][0] = Math.max(found[name][0], reads - before);
                if (done) {
                    found[name][1] = reads - begin;
                    return value;
                }
            }
        }
        const pairs = run("pairs", countPairs(profile, filter));
        const inverted = makeInverted(profile, pairs);
        run("inverted", grow(inverted, inverted.root, FRAMES_AT_ONCE));
        const calls = run("calls", makeCalls(profile, pairs));
        run("frames", grow(calls, calls.root, FRAMES_AT_ONCE));
        const sums = run("sums", sumNodes(profile, pairs));
        run("functions", sumFunctions(profile, sums));
        run("callers", countCalls(profile, sums, 1));
        run("search", countFound(profile, pairs, /7/));
        return [PIECE, Object.values(found).reduce((n, f) => n + f[1], 0),
            found];""")
    assert whole > 5 * MILLION
    for name, (reads, _) in longest.items():
        assert reads <= 8 * piece, name


# --- what is wrong is said ----------------------------------------------------

def test_export_says_what_is_wrong(flame, tmp_path):
    data = f"{ROOT}/build/flame.data"
    none = strobe("export", data)
    assert none.returncode == 2 and "no format given" in none.stderr
    nowhere = strobe("export", "--html", "-o", f"{tmp_path}/no/page", data)
    assert nowhere.returncode == 1
    assert "No such file or directory" in nowhere.stderr


def test_flame_says_what_is_wrong():
    done = subprocess.run([f"{ROOT}/tools/flame", "--get", "x", "--", "true"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "--get is its own" in done.stderr
