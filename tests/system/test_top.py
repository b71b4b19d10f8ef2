"""top: its numbers are consistent, its keys work, it fits any screen, and it restores the
terminal."""
import re

import pytest

from machine import COLUMNS, ROWS, Console
from tiers import realtime
from top_lists import TITLES, names, titles

pytestmark = realtime()

CPU_LINE = re.compile(r"cpu(\d+) +" + r"([\d.]+) +" * 5 + r"(\d+) +(\d+)")


@pytest.fixture(scope="module")
def machine():
    with Console() as c:
        yield c


@pytest.fixture
def console(machine):
    """An empty prompt and a screen of the usual size."""
    machine.revive()
    machine.fresh_prompt()
    resize(machine, ROWS, COLUMNS)
    machine.command("kill %1 2>/dev/null; clear")
    return machine


def resize(console, rows, columns):
    console.command(f"stty rows {rows} cols {columns}")
    console.screen.resize(rows, columns)
    console.command("clear")


def is_drawn(console):
    """Whether top has written a whole screen: lines begin on the left, and the cursor is
    behind one at the end."""
    return re.search(r"\x1b\[\d+;(?!1H)\d+H$", console.text)


def screen_with(console, found):
    """Waits until the screen is drawn and `found` accepts its lines."""
    return console.screen_with(lambda lines: is_drawn(console) and found(lines))


def killer(console, command):
    """Starts a task that runs a command at SIGUSR1; returns its number."""
    console.command(f"echo \"trap '{command}; exit' USR1\" >/tmp/killer")
    console.command("echo 'while :; do sleep 0.1; done' >>/tmp/killer")
    console.command("sh /tmp/killer & echo $! >/tmp/id")
    return console.command("cat /tmp/id").split()[0]


def start(console, options=""):
    console.send(f"top {options}\r")
    return screen_with(console, lambda lines: titles(lines) is not None)


def leave(console):
    console.send("q")
    console.wait_for("strobe:")


def assert_sane(console):
    """Checks that the terminal edits lines and echoes."""
    modes = console.command("stty -a").split()
    assert "icanon" in modes and "echo" in modes and "isig" in modes


# ---- the screen


def test_screen_of_the_thesis(console):
    """The screen has the header of figure B.1, and tasks below."""
    lines = start(console)
    assert re.fullmatch(r"top - \d\d:\d\d:\d\d up \d+ days, \d\d:\d\d:\d\d, "
                        r"load average: [\d.]+ [\d.]+ [\d.]+", lines[0])
    assert re.match(r"tasks: \d+ total, \d+ new, \d+ ended", lines[1])
    counts = re.fullmatch(r"threads: (\d+) total, (\d+) running, (\d+) ready, "
                          r"(\d+) sleeping, (\d+) lingering, (\d+) other",
                          lines[2])
    total, *states = map(int, counts.groups())
    assert total == sum(states) and int(counts[2]) >= 1
    for cpu in 0, 1:
        line = CPU_LINE.match(lines[4 + cpu])
        busy, idle, user, kernel, irq = map(float, line.groups()[1:6])
        assert round(user + kernel + irq + idle, 2) == 100
        assert round(busy + idle, 2) == 100
        assert re.search(r"\[[|#!.]{18}\]$", lines[4 + cpu])
    assert re.fullmatch(r"memory: \d+k total, \d+k? unavail, \d+k used, "
                        r"\d+k free", lines[6])
    assert lines[7] == "tasks by %CPU, every 1 s; h: help"
    assert {"kernel", "init", "sh", "top"} <= set(names(lines))
    assert all(len(line) <= COLUMNS for line in lines)
    leave(console)


def test_views(console):
    start(console)
    for key, title in TITLES.items():
        console.send(key)
        screen_with(console, lambda lines: title in lines[8])
    leave(console)


def test_only_simple_control_sequences(console):
    console.text = ""
    console.send("top\r")
    screen_with(console, lambda lines: titles(lines) is not None)
    for key in "HRiest1h":
        console.send(key)
        console.settle(0.1)
    console.send("x")
    screen_with(console, lambda lines: lines[0].startswith("top - "))
    said = console.text[console.text.index("\x1b"):]
    controls = set(re.findall(r"\x1b\[[\d;?]*(.)", said))
    assert controls <= set("HJKm"), controls
    assert said.count("\x1b") == len(re.findall(r"\x1b\[[\d;]*[HJKm]", said))
    leave(console)


@pytest.mark.parametrize("rows, columns", ((25, 80), (40, 120), (12, 40)))
def test_sizes(console, rows, columns):
    resize(console, rows, columns)
    lines = start(console)
    assert lines[0].startswith("top - ") and len(lines) == rows
    assert ("Faults/s" in lines[titles(lines)]) == (columns == 120)
    assert ("irq ms" in "".join(lines)) == (columns == 120)
    assert console.screen.cursor.y < rows
    leave(console)


@pytest.mark.parametrize("rows, columns", ((25, 80), (40, 120)))
def test_every_view_in_every_order(console, rows, columns):
    """Each view, sorted by each column in both directions, fits the screen, with its
    titles and the same header."""
    resize(console, rows, columns)
    start(console, "-d 60")
    for view in TITLES:
        console.send(view)
        console.settle(0.15)
        for key in ">" * 14 + "<" * 3 + "R":
            console.send(key)
            console.settle(0.02)
        lines = screen_with(
            console, lambda lines: "(reverse), every 60 s" in lines[7])
        assert lines[0].startswith("top - ") and len(lines) == rows
        assert lines[8].split()[0] == TITLES[view].split()[0]
        assert lines[6].startswith("memory: ")
        console.send("R")
        screen_with(console, lambda lines: "reverse" not in lines[7])
    leave(console)


def test_short_lived_tasks_in_the_header(console):
    console.command("(while :; do /bin/true; done) &")
    start(console)
    lines = screen_with(console, lambda lines: re.search(
        r"ended \([1-9]\d* short-lived\) using [1-9]", lines[1]))
    new, ended, short = map(int, re.search(
        r" (\d+) new, (\d+) ended \((\d+) short", lines[1]).groups())
    assert 0 < short <= min(new, ended)
    leave(console)


def test_resized_while_it_runs(console):
    console.command("(sleep 1.5; stty rows 40 cols 120 </dev/ttyS0) &")
    start(console)
    console.screen.resize(40, 120)
    lines = screen_with(console, lambda lines: "irq ms" in lines[3])
    assert "Faults/s" in lines[titles(lines)]
    leave(console)


@pytest.mark.parametrize("rows, lines_of_bars", ((16, 3), (25, 0)))
def test_many_cpus(rows, lines_of_bars):
    """CPUs without room for a line each share lines, with their bars side by side."""
    with Console(smp=8) as console:
        resize(console, rows, 80)
        lines = start(console)
        if lines_of_bars == 0:
            assert all(re.match(rf"cpu{n} .*\]$", lines[4 + n])
                       for n in range(8))
        else:
            assert lines[4].startswith("all ")
            bars = " ".join(lines[5:5 + lines_of_bars])
            assert re.findall(r"(\d)\[[|#!.]+\]", bars) == list("01234567")
            assert lines[5 + lines_of_bars].startswith("memory:")
        leave(console)


# ---- keys


def test_order(console):
    start(console)
    console.send("N")
    lines = screen_with(console, lambda lines: "by ID" in lines[7])
    assert names(lines)[:2] == ["kernel", "init"]
    console.send("R")
    lines = screen_with(console, lambda lines: "reverse" in lines[7])
    assert names(lines)[-2:] == ["init", "kernel"]
    console.send(">")
    screen_with(console, lambda lines: "by Thr," in lines[7])
    console.send("<")
    screen_with(console, lambda lines: "by ID," in lines[7])
    for key, title in ("M", "%Mem"), ("T", "Time"), ("P", "%CPU"):
        console.send(key)
        screen_with(console, lambda lines: f"by {title}," in lines[7])
    leave(console)


def test_filter(console):
    start(console)
    console.send("/")
    screen_with(console, lambda lines: lines[7] == "Show what contains:")
    console.send("xX\x7f\x7finit\r")
    lines = screen_with(console, lambda lines: 'with "init"' in lines[7])
    assert names(lines) == ["init"]
    console.send("/\r")
    screen_with(console, lambda lines: "top" in names(lines))
    console.send("/zzz\x1b")  # escape: no change
    screen_with(console, lambda lines: "top" in names(lines))
    leave(console)


def test_only_active(console):
    console.command("sleep 100 &")
    lines = start(console)
    assert "sleep" in names(lines)
    console.send("a")
    lines = screen_with(console, lambda lines: "active" in lines[7] and
                        "sleep" not in names(lines))
    assert "top" in names(lines)
    leave(console)


def test_kill_and_renice(console):
    console.command("tester 100000 & echo $! >/tmp/id")
    pid = console.command("cat /tmp/id").split()[0]
    assert "tester" in names(start(console))
    for bad, said in ((f"k{2**31 - 1}\r9\r", "no such task"),
                      ("kinit\r", "not a task's number"),
                      (f"k{pid}\rNOSUCH\r", "not a signal"),
                      (f"r{pid}\r77\r", "not a nice value"),
                      ("d0\r", "not a delay"), ("x", "h shows the keys")):
        console.send(bad)
        screen_with(console, lambda lines: said in lines[7])
    console.send(f"r{pid}\r7\r")
    console.settle(0.3)
    console.send(f"k{pid}\rTERM\r")
    screen_with(console, lambda lines: "tester" not in names(lines))
    leave(console)


def test_renice_arrives(console):
    console.command("sleep 100 & echo $! >/tmp/id")
    pid = console.command("cat /tmp/id").split()[0]
    start(console)
    console.send(f"r{pid}\r7\r")
    console.settle(0.3)
    leave(console)
    stat = console.command(f"cat /proc/{pid}/stat")
    assert stat.split()[18] == "7"


def test_help_and_delay(console):
    start(console)
    console.send("?")
    screen_with(console, lambda lines: lines[0] == "top: keys")
    console.send("x")
    screen_with(console, lambda lines: lines[0].startswith("top - "))
    console.send("d0.5\r")
    screen_with(console, lambda lines: "every 0.5 s" in lines[7])
    leave(console)


def test_scrolling(console):
    for _ in range(20):
        console.command("sleep 100 &")
    start(console)
    console.send("N")
    screen_with(console, lambda lines: "kernel" in names(lines))
    console.send("\x1b[B")
    screen_with(console, lambda lines: names(lines)[0] == "init")
    console.send("\x1b[6~")
    screen_with(console, lambda lines: names(lines)[-1] == "top")
    console.send("\x1b[5~\x1b[5~\x1b[A")
    screen_with(console, lambda lines: names(lines)[0] == "kernel")
    leave(console)
    console.command("killall sleep")


# ---- every way out


@pytest.mark.parametrize("keys, status", (
    ("q", 0), ("\x03", 130), ("\x1c", 131), ("kq\x1bq", 0), ("hqq", 0)))
def test_ends_by_key(console, keys, status):
    start(console)
    for key in keys:  # an escape and a letter at once are a function key
        console.send(key)
        console.settle(0.1)
    console.wait_for("strobe:")
    assert console.command("echo $?").startswith(str(status))
    assert_sane(console)


@pytest.mark.parametrize("signal, status", (
    ("TERM", 143), ("HUP", 129), ("SEGV", 139), ("ABRT", 134)))
def test_ends_by_signal(console, signal, status):
    task = killer(console, f"killall -{signal} top")
    start(console)
    console.send(f"k{task}\rUSR1\r")
    console.wait_for("strobe:")
    assert console.command("echo $?").startswith(str(status))
    assert_sane(console)


def test_ends_while_output_is_stopped(console):
    """top ends although its output is stopped by ^S."""
    task = killer(console, "sleep 2; killall top")
    start(console, "-d 0.4")
    console.send(f"k{task}\rUSR1\r")
    screen_with(console, lambda lines: lines[7].startswith("tasks by"))
    console.send("\x13")
    console.wait_for("strobe:")
    console.send("\x11")
    assert console.command("echo $?").startswith("143")
    assert_sane(console)


def test_stops_and_continues(console):
    start(console)
    console.send("\x1a")
    console.wait_for("Stopped")
    console.wait_for("strobe:")
    assert_sane(console)
    console.command("clear")
    console.send("fg\r")
    screen_with(console, lambda lines: titles(lines) == 8)
    console.send("H")
    screen_with(console, lambda lines: "threads by" in lines[7])
    leave(console)
    assert_sane(console)


def test_number_of_refreshes(console):
    console.send("top -n 2 -d 0.3\r")
    console.wait_for("strobe:")
    assert console.command("echo $?").startswith("0")
