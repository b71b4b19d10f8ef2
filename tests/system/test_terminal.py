"""Sessions at the serial console, as a user sees them: line editing, job
control, full-screen programs."""
import pytest

from machine import Console


@pytest.fixture(scope="module")
def console():
    with Console() as c:
        yield c


@pytest.fixture(autouse=True)
def fresh_prompt(console):
    """Each test starts at an empty line, whatever the last one left."""
    console.revive()
    console.send("\x03")
    console.settle(0.2)
    console.text = ""
    console.command("cd /root; clear")


def test_echo(console):
    assert console.command("echo hello").startswith("hello\n")


def test_erase_and_history(console):
    assert "right" in console.command("echo wrX\x7fong\x7f\x7f\x7f\x7fright")
    assert "right" in console.command("\x1b[A")  # the line before, again


def test_canonical_input(console):
    """cat reads lines that the terminal edits, until ^D."""
    console.send("cat\r")
    console.wait_for("\n")
    console.send("abX\x7fc\r")
    console.wait_for("abc\r\n")  # what cat writes
    console.send("word gone\x15kept\r")  # ^U
    console.wait_for("\nkept\r\n")
    console.send("\x04")
    console.wait_for("strobe:")


def test_interrupt(console):
    console.send("sleep 100\r")
    console.wait_for("\n")
    console.settle(0.3)
    console.send("\x03")
    console.wait_for("^C")
    console.wait_for("strobe:")
    assert console.command("echo $?").startswith("130")


def test_interrupt_reaches_a_pipeline(console):
    console.send("yes | cat >/dev/null\r")
    console.wait_for("\n")
    console.settle(0.3)
    console.send("\x03")
    console.wait_for("strobe:")
    assert "yes" not in console.command("ps | grep -v grep")


def test_quit(console):
    console.send("sleep 100\r")
    console.wait_for("\n")
    console.settle(0.3)
    console.send("\x1c")
    console.wait_for("strobe:")
    assert console.command("echo $?").startswith("131")


def test_stop_and_continue(console):
    console.send("sleep 3\r")
    console.wait_for("\n")
    console.settle(0.3)
    console.send("\x1a")  # ^Z
    console.wait_for("Stopped")
    console.wait_for("strobe:")
    assert "Stopped" in console.command("jobs")
    console.command("bg")
    assert "Running" in console.command("jobs")
    assert "sleep 3" in console.command("fg")
    assert "sleep" not in console.command("jobs")


def test_background_reader_is_stopped(console):
    console.command("cat &")
    console.settle(0.3)
    assert "Stopped" in console.command("jobs")
    console.command("kill -9 %1; sleep 0.2")
    console.command("jobs")
    assert "cat" not in console.command("jobs")


def test_window_size(console):
    assert console.command("stty size").startswith("24 80")


def test_vi(console):
    console.command("printf 'first\\nsecond\\n' >file")
    console.send("vi file\r")
    console.settle()
    assert console.lines()[:3] == ["first", "second", "~"]
    assert "file" in console.lines()[23]
    for keys in ("Othe top\x1b",       # open a line above
                 "jA line\x1b",        # append to the next
                 "jdd",                # delete the last
                 ":s/line/LINE/\r"):   # on the line that is left
        console.send(keys)
        console.settle()  # an escape and a letter at once are a function key
    assert console.lines()[:3] == ["the top", "first LINE", "~"]
    console.send(":wq\r")
    console.wait_for("strobe:")
    assert console.command("cat file").startswith("the top\nfirst LINE\n")


def test_busybox_top(console):
    console.send("busybox top\r")
    console.settle(1.5)
    lines = console.lines()
    assert lines[0].startswith("Mem:"), lines
    assert any("%CPU COMMAND" in line for line in lines), lines
    console.send("q")
    console.wait_for("strobe:")


def test_less(console):
    console.send("seq 1 100 | less\r")
    console.settle()
    assert console.lines()[0] == "1" and console.lines()[22] == "23"
    console.send(" ")
    console.settle()
    assert console.lines()[0] == "24"
    console.send("q")
    console.wait_for("strobe:")


def test_profile_and_interrupt(console):
    """^C ends the program; the report comes all the same."""
    console.send("profile tester 100000\r")
    console.wait_for("\n")
    console.settle(1.0)
    console.send("\x03")
    report = console.wait_for("strobe:")
    assert "Samples:" in report and " a\r\n" in report
    assert console.command("echo $?").startswith("130")


def standing_samples(console):
    """What p prints of them, twice the same: there are no new ones."""
    console.send("p")
    first = console.wait_for(" a\r\n")
    console.settle(0.5)
    console.send("p")
    again = console.wait_for(" a\r\n")
    samples = [line for line in first.splitlines() if "Samples:" in line]
    assert samples and samples[0] in again, (first, again)
    return samples[0]


def test_profile_of_a_task_until_e(console):
    console.command("tester 100000 &")
    console.send("profile -t $!\r")
    console.wait_for("until it ends")
    console.settle(1.0)
    console.send("e")
    before = console.wait_for("; ended (p print, q quit)")
    assert "Samples:" not in before
    console.send("a")  # there is nothing left to pause
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
    console.wait_for("q quit)")
    console.settle(0.5)
    console.send("p")
    assert "taken" in console.wait_for(" a\r\n")
    console.send("a")
    console.wait_for("; paused (")
    console.settle(0.5)
    samples = standing_samples(console)
    console.send("a")
    console.wait_for("lost (p print")
    console.settle(0.5)
    console.send("p")
    assert samples not in console.wait_for(" a\r\n")
    console.send("q")
    assert "Samples:" not in console.wait_for("strobe:")
    assert console.command("echo $?").startswith("0")
    console.command("kill %1")
    assert console.command("stty -a | grep -o '.icanon'").startswith(" icanon")


def test_exit_starts_no_trouble(console):
    assert "again" in console.command("sh -c 'exit 3'; echo again")
