"""Several events of one run in strobe export's files: formats for several events have
all, each with the numbers of the guest's report; the others name the one they have."""
import collections
import json

import pytest

from browser import Browser
from exports import callgrind, read_measured, strobe
from machine import vm
from shares import LOOPS
from speedscope import speedscope
from test_flame import Counted, choose, shown

LUA = "for i = 1, 1e5 do local s = tostring(i) end"
NSEC = 10**9
SOURCES = ("lapic", "nmi-hpet")


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    result = vm("sprofile -g --json -s lapic,nmi-hpet -o /out/all.data"
                f" sh -c 'tester 9 & lua -e \"{LUA}\"; wait' >/out/all.json",
                "--get", str(folder), "--icount", "1", smp=2)
    assert result.status == 0, result
    measured = read_measured(folder, "all")
    assert tuple(m.json["source"] for m in measured) == SOURCES
    return measured


def by_name(rows):
    """Sums rows by name: programs may have functions of the same name."""
    sums = collections.Counter()
    for row in rows:
        if row.symbol is not None:
            sums[row.symbol] += row.self
    return sums


def time(measured):
    """The time of the samples in ns; a late one includes the missed ones."""
    counts = measured.json
    return (counts["taken"] + counts["missed"]) * NSEC // counts["rate_hz"]


def test_callgrind(events, tmp_path):
    """A file has both events, each as in a separate file."""
    both = events[0].export("callgrind", tmp_path / "both", "--no-inline")
    for m in events:
        source = m.json["source"]
        own, whole = callgrind(both, "no", f"{source}-Samples")
        assert whole == m.json["taken"]
        truth = by_name(m.rows)
        for symbol in (*m.of("/bin/lua"), *m.of("/bin/tester")):
            assert own[symbol] == truth[symbol], (source, symbol)
        assert callgrind(both, "no", f"{source}-Nanoseconds")[1] == time(m)
        alone = m.export("callgrind", tmp_path / source, "--event", source,
                         "--no-inline")
        for inclusive in ("no", "yes"):
            assert callgrind(alone, inclusive, f"{source}-Samples") == \
                callgrind(both, inclusive, f"{source}-Samples")


def taken(profile):
    """A profile's samples, without the gaps between them."""
    return sum(bool(stack) for stack in profile["samples"])


def test_speedscope(events, tmp_path):
    """The importer shows a profile for each thread and event."""
    path = events[0].export("speedscope", tmp_path / "both")
    with open(path) as file:
        profiles = json.load(file)["profiles"]
    for m in events:
        of_event = [p for p in profiles
                    if p["name"].endswith(f", {m.json['source']}")]
        idle = [p for p in of_event if p["name"].startswith("idle CPU")]
        assert sum(map(taken, of_event)) == m.json["taken"]
        assert sum(map(taken, idle)) == m.json["idle"]
        assert sum(weight for p in of_event for stack, weight
                   in zip(p["samples"], p["weights"]) if stack) == time(m)
    path = events[0].export("speedscope", tmp_path / "tester", "--task",
                            task_of(events[0], "tester"))
    with open(path) as file:
        names = [p["name"] for p in json.load(file)["profiles"]]
    assert len(names) == 2
    shares = speedscope(path, LOOPS, names)
    for m in events:
        name, whole = next((p["name"], taken(p)) for p in profiles
                           if p["name"].startswith("tester") and
                           p["name"].endswith(f", {m.json['source']}"))
        truth = m.of("/bin/tester")
        late = 100 * m.json["missed"] / whole  # samples that weigh more
        for function, share in shares[name].items():
            assert abs(share - 100 * truth[function] / whole) < 1 + late


def task_of(measured, program):
    folded = strobe("report", "--by", "task", measured.file).stdout
    return next(words[words.index("task") + 1] for line in folded.splitlines()
                if (words := line.split()) and words[-1] == program)


def test_page(events, tmp_path):
    """The switch between events changes numbers and header, and keeps the other
    settings."""
    path = events[0].export("html", tmp_path / "page.html")
    counted = Counted(path)
    browser = Browser()
    try:
        browser.screen()
        browser.open(path)
        assert browser.find("event").is_displayed()
        for number, m in [*enumerate(events), (0, events[0])]:
            choose(browser, "event", f"{m.json['source']}:")
            choose(browser, "task", "all")
            header = browser.find("facts").text
            assert f"{m.json['source']}, {number + 1} of 2" in header
            assert f"{m.json['expected']} expected, {m.json['taken']} taken" \
                in header
            busy = m.json["taken"] - m.json["idle"]
            assert f" ({busy:,} samples)" in browser.find("shown").text
            assert shown(browser) == counted.period(event=number)
            choose(browser, "task", "tester,")
            tester = counted.period(task="tester", event=number)
            assert shown(browser) == tester
            functions = dict(browser.run("""
                return [...document.querySelectorAll("g.frame")].map((g) =>
                    [g.getAttribute("name"), g.__data__.data.samples]);"""))
            totals = {row.symbol: row.total for row in m.rows
                      if row.image == "/bin/tester"}
            for name in LOOPS:
                assert functions[name] == totals[name] > 0
            # Kept when the event changes.
            other = 1 - number
            choose(browser, "event", f"{events[other].json['source']}:")
            assert shown(browser) == counted.period(task="tester", event=other)
        assert browser.complaints() == []
    finally:
        browser.close()


def test_one_event_of_several(events, tmp_path):
    """With --event the page has no switch."""
    path = events[1].export("html", tmp_path / "page.html", "--event",
                            SOURCES[1])
    assert sum(Counted(path).of_samples) == events[1].json["taken"]
    browser = Browser()
    try:
        browser.open(path)
        assert not browser.find("event").is_displayed()
        assert f"{SOURCES[1]}, 2 of 2" in browser.find("facts").text
    finally:
        browser.close()


def test_complaints_come_once(events):
    done = strobe("report", "-k", "/nothing", events[0].file)
    assert done.stderr.count("[kernel]") == 1, done.stderr


@pytest.mark.parametrize("form", ("folded", "gmon"))
def test_room_for_one(events, tmp_path, form):
    out = tmp_path / "out"
    first = strobe("export", f"--{form}", "-o", out, events[0].file)
    assert f"using {SOURCES[0]} of the events (" in first.stderr
    assert "--event NAME selects another" in first.stderr
    written = out.read_bytes()
    for source, same in zip(SOURCES, (True, False)):
        done = strobe("export", f"--{form}", "-o", out, "--event", source,
                      events[0].file)
        assert "this is" not in done.stderr
        assert (out.read_bytes() == written) == same


@pytest.mark.parametrize("form", ("html", "callgrind", "speedscope"))
def test_room_for_all(events, form):
    done = strobe("export", f"--{form}", events[0].file)
    assert "--event" not in done.stderr
    done = strobe("export", f"--{form}", "--event", "rtc", events[0].file,
                  status=1)
    assert "available: lapic, nmi-hpet" in done.stderr
