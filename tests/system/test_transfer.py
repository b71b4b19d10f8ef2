"""File transfer over the second serial port: `send` in the guest and `strobe receive` on
the host, over a good, a bad and a broken line."""
import os
import random
import re
import select
import signal
import subprocess
import threading
import tty

import pytest

from machine import PATIENCE, ROOT, Console, vm
from tiers import realtime

pytestmark = realtime()

RECEIVE = (f"{ROOT}/build/strobe", "receive")
SEED = int(os.environ.get("SEED", random.randrange(1 << 32)))
SIZE = 1_000_003  # no multiple of a block
FAULT = 1 / 20_000  # probability for a byte: about every 20th frame


class BadLine:
    """A line between two terminals that changes, loses or doubles some bytes. After
    `last` bytes it breaks, until it is repaired."""

    def __init__(self, guest, fault, last):
        self.guest = os.open(guest, os.O_RDWR | os.O_NOCTTY)
        self.end, held = os.openpty()
        self.held, self.name = held, os.ttyname(held)
        for terminal in (self.guest, self.held):
            tty.setraw(terminal)
        os.set_blocking(self.end, False)
        self.fault, self.random = fault, random.Random(SEED)
        self.faults = self.carried = 0
        self.broken = threading.Event()
        self.mend(last)
        self.stopping = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def mend(self, last):
        self.last = last
        self.broken.clear()

    def spoil(self, data):
        self.carried += len(data)
        if self.carried > self.last:
            self.broken.set()
        if self.broken.is_set():
            return b""
        out = bytearray()
        for byte in data:
            if self.random.random() >= self.fault:
                out.append(byte)
                continue
            self.faults += 1
            out += self.random.choice((
                b"", bytes([byte, byte]),
                bytes([byte ^ 1 << self.random.randrange(8)])))
        return bytes(out)

    def run(self):
        ways = {self.guest: self.end, self.end: self.guest}
        while not self.stopping:
            for source in select.select(ways, [], [], 0.1)[0]:
                data = self.spoil(os.read(source, 4096))
                try:
                    os.write(ways[source], data)
                except BlockingIOError:
                    pass  # no reader: the bytes are lost

    def close(self):
        self.stopping = True
        self.thread.join()
        for terminal in (self.guest, self.end, self.held):
            os.close(terminal)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A machine with a file to send, the file's contents, and the line's name."""
    top = tmp_path_factory.mktemp("guest")
    data = random.Random(SEED).randbytes(SIZE)
    (top / "root").mkdir()
    (top / "root/big").write_bytes(data)
    print(f"SEED={SEED}")
    with Console("--line", "--add", str(top)) as console:
        name = re.search(r"serial port is (\S+)", console.boot)[1]
        yield console, data, name


def receiver(line, folder, *options):
    return subprocess.Popen([*RECEIVE, "-d", str(folder), *options, line],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def finish(process):
    output, _ = process.communicate(timeout=PATIENCE)
    return output


def test_good_line(machine, tmp_path):
    console, data, name = machine
    process = receiver(name, tmp_path, "-n", "2")
    said = console.command("send big /etc/passwd; echo status $?", PATIENCE)
    output = finish(process)
    assert "status 0" in said, said + output
    assert f"big: {SIZE} bytes sent" in said, said
    assert (tmp_path / "big").read_bytes() == data
    assert (tmp_path / "passwd").read_text().startswith("root:")
    assert sorted(os.listdir(tmp_path)) == ["big", "passwd"]


def test_bad_line_and_receiver_killed(machine, tmp_path):
    """Received data is not sent again after the line breaks and the receiver is killed,
    twice."""
    console, data, name = machine
    line = BadLine(name, FAULT, SIZE // 3)
    try:
        process = receiver(line.name, tmp_path)
        console.send("send -w 300 big; echo status $?\r")
        for last in (SIZE // 3, float("inf")):
            assert line.broken.wait(PATIENCE), console.text
            process.send_signal(signal.SIGKILL)
            process.communicate()
            process = receiver(line.name, tmp_path)
            line.mend(line.carried + last)
        console.wait_for("status 0", PATIENCE)
        console.wait_for("strobe:")
        process.terminate()
        output = finish(process)
    finally:
        line.close()
    assert "going on at" in output and "big: complete" in output, output
    assert os.listdir(tmp_path) == ["big"]
    assert (tmp_path / "big").read_bytes() == data
    assert line.faults > 10


def test_no_receiver(machine):
    console, _, _ = machine
    said = console.command("send -w 1 big; echo status $?", PATIENCE)
    assert "no answer on /dev/ttyS1" in said and "status 1" in said, said


def test_sender_goes_on_where_it_was(machine, tmp_path):
    """An interrupted `send` continues when it is started again."""
    console, data, name = machine
    line = BadLine(name, 0, SIZE // 2)
    try:
        process = receiver(line.name, tmp_path, "-n", "1")
        console.send("send big\r")
        assert line.broken.wait(PATIENCE), console.text
        console.send("\x03")
        console.wait_for("strobe:")
        line.mend(float("inf"))
        said = console.command("send big", PATIENCE)
        output = finish(process)
    finally:
        line.close()
    kept = re.search(r"(\d+) of them already there", said)
    assert kept and 0 < int(kept[1]) < SIZE // 2, said + output
    assert (tmp_path / "big").read_bytes() == data


def test_port_that_tools_vm_uses():
    result = vm("send /etc/passwd")
    assert result.status == 1
    assert "/dev/ttyS1 is in use" in result.errors
    assert "--get" in result.errors


def test_complaints(tmp_path):
    for arguments, text in ((["/dev/null"], "not a serial line"),
                            (["/nonexistent"], "No such file"),
                            (["-d", "/nonexistent", "/dev/null"], "No such"),
                            (["-n", "x", "/dev/null"], "no number"),
                            ([], "from which serial line?")):
        done = subprocess.run([*RECEIVE, *arguments], capture_output=True,
                              text=True, timeout=PATIENCE)
        assert done.returncode != 0 and text in done.stderr, done
