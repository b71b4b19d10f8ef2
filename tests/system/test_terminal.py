"""Sessions at the serial console: line editing, job control, full-screen programs."""
import re
import time

import pytest

from machine import ANSWER_PATIENCE, Console
from tiers import realtime

pytestmark = realtime()


@pytest.fixture(scope="module")
def console():
    with Console() as c:
        yield c


@pytest.fixture(autouse=True)
def fresh_prompt(console):
    """Each test starts at an empty line."""
    console.revive()
    console.fresh_prompt()
    console.command("cd /root; clear")


def run(console, command):
    """Starts a program, and waits until it runs."""
    console.send(f"sh -c 'echo run\"\"ning; exec {command}'\r")
    console.wait_for("running\r\n")


def repeat(console, command, found):
    """Repeats a command until `found` accepts its output."""
    deadline = time.monotonic() + ANSWER_PATIENCE
    while not found(output := console.command(command)):
        assert time.monotonic() < deadline, output
    return output


def test_echo(console):
    assert console.command("echo hello").startswith("hello\n")


def test_erase_and_history(console):
    assert "right" in console.command("echo wrX\x7fong\x7f\x7f\x7f\x7fright")
    assert "right" in console.command("\x1b[A")  # the previous line again


def test_canonical_input(console):
    """cat reads lines that the terminal edits, until ^D."""
    console.send("cat\r")
    console.wait_for("\n")
    console.send("abX\x7fc\r")
    console.wait_for("abc\r\n")  # written by cat
    console.send("word gone\x15kept\r")  # ^U
    console.wait_for("\nkept\r\n")
    console.send("\x04")
    console.wait_for("strobe:")


def test_interrupt(console):
    run(console, "sleep 100")
    console.send("\x03")
    console.wait_for("^C")
    console.wait_for("strobe:")
    assert console.command("echo $?").startswith("130")


def test_interrupt_reaches_a_pipeline(console):
    console.send("(echo run\"\"ning >&2; yes) | cat >/dev/null\r")
    console.wait_for("running\r\n")
    console.send("\x03")
    console.wait_for("strobe:")
    assert "yes" not in console.command("ps | grep -v grep")


def test_quit(console):
    run(console, "sleep 100")
    console.send("\x1c")
    console.wait_for("strobe:")
    assert console.command("echo $?").startswith("131")


def test_stop_and_continue(console):
    console.command("rm -f fifo; mkfifo fifo")
    run(console, "cat fifo")
    console.send("\x1a")  # ^Z
    console.wait_for("Stopped")
    console.wait_for("strobe:")
    assert "Stopped" in console.command("jobs")
    console.command("bg")
    assert "Running" in console.command("jobs")
    # It ends at the next write.
    console.command("(usleep 300000; echo end >fifo) &")
    assert "cat fifo" in console.command("fg %1")
    repeat(console, "jobs", lambda jobs: "fifo" not in jobs)


def test_background_reader_is_stopped(console):
    console.command("cat &")
    repeat(console, "jobs", lambda jobs: "Stopped" in jobs)
    console.command("kill -9 %1")
    repeat(console, "jobs", lambda jobs: "cat" not in jobs)


def test_window_size(console):
    assert console.command("stty size").startswith("24 80")


def test_vi(console):
    console.command("printf 'first\\nsecond\\n' >file")
    console.send("vi file\r")
    console.screen_with(lambda lines: lines[:3] == ["first", "second", "~"] and
                        "file" in lines[23])
    for keys, lines, column in (
            ("Othe top\x1b", ["the top", "first", "second"], 6),  # a line above
            ("jA line\x1b", ["the top", "first line", "second"], 9),
            ("jdd", ["the top", "first line", "~"], 0),
            (":s/line/LINE/\r", ["the top", "first LINE", "~"], 0)):
        console.send(keys)
        # An escape and a letter at once are a function key, so waits until the cursor
        # has left the typed text.
        console.screen_with(lambda shown: shown[:3] == lines and
                            console.screen.cursor.x == column)
    console.send(":wq\r")
    console.wait_for("strobe:")
    assert console.command("cat file").startswith("the top\nfirst LINE\n")


def test_busybox_top(console):
    console.send("busybox top\r")
    console.screen_with(
        lambda lines: lines[0].startswith("Mem:") and
        any("%CPU COMMAND" in line for line in lines))
    console.send("q")
    console.wait_for("strobe:")


def test_less(console):
    console.send("seq 1 100 | less\r")
    console.screen_with(lambda lines: lines[0] == "1" and lines[22] == "23")
    console.send(" ")
    console.screen_with(lambda lines: lines[0] == "24")
    console.send("q")
    console.wait_for("strobe:")


def test_profile_and_interrupt(console):
    """^C ends the program; the report is printed."""
    count = "for (n = 0; n < 1e5; n++)"
    awk = f"BEGIN {{ {count} {{}}; print 99*9; while (1) {{}} }}"
    run(console, f'profile awk "{awk}"')
    console.wait_for("891\r\n")  # it has been sampled for some time
    console.send("\x03")
    report = console.wait_for("strobe:")
    assert "Samples:" in report and " evaluate [" in report
    assert console.command("echo $?").startswith("130")


def wait_for_samples(console, least):
    """Waits until profile's status line has `least` samples."""
    deadline = time.monotonic() + ANSWER_PATIENCE
    while max(map(int, re.findall(r"(\d+) samples, ", console.text)),
              default=0) < least:
        assert time.monotonic() < deadline, console.text
        console.pump()


def taken_in(report):
    return int(re.search(r"(\d+) taken", report)[1])


def standing_samples(console):
    """The samples that p prints, twice the same number: there are no new ones."""
    console.send("p")
    first = console.wait_for(" burn_a\r\n")
    console.settle(0.5)
    console.send("p")
    again = console.wait_for(" burn_a\r\n")
    samples = [line for line in first.splitlines() if "Samples:" in line]
    assert samples and samples[0] in again, (first, again)
    return samples[0]


def test_profile_of_a_task_until_e(console):
    console.command("tester 100000 &")
    console.send("profile -t $!\r")
    console.wait_for("until it ends")
    wait_for_samples(console, 50)
    console.text = ""
    console.send("e")
    before = console.wait_for("; ended (p print, q quit)")
    assert "Samples:" not in before
    console.send("a")  # nothing to pause
    standing_samples(console)
    console.send("q")
    assert "paused" not in console.wait_for("strobe:")
    assert console.command("echo $?").startswith("0")
    console.command("kill %1")
    assert console.command("stty -a | grep -o '.icanon'").startswith(" icanon")


def test_profile_keys(console):
    """p prints and goes on, a pauses and goes on, q ends without a report."""
    console.command("tester 100000 &")
    console.send("profile -t $!\r")
    wait_for_samples(console, 50)
    console.send("p")
    taken = taken_in(console.wait_for(" burn_a\r\n"))
    assert taken >= 50
    wait_for_samples(console, taken + 1)
    console.send("a")
    console.wait_for("; paused (")
    console.settle(0.5)
    samples = standing_samples(console)
    console.send("a")
    wait_for_samples(console, 1 + taken_in(samples))
    console.send("p")
    assert samples not in console.wait_for(" burn_a\r\n")
    console.send("q")
    assert "Samples:" not in console.wait_for("strobe:")
    assert console.command("echo $?").startswith("0")
    console.command("kill %1")
    assert console.command("stty -a | grep -o '.icanon'").startswith(" icanon")


def test_exit_starts_no_trouble(console):
    assert "again" in console.command("sh -c 'exit 3'; echo again")
