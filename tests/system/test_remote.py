"""strobe remote on this host drives sessions of a machine, by the network and by the second
serial port. (tests/guest/remote_session.c has a client in the machine.)"""
import os
import random
import re
import select
import signal
import socket
import subprocess
import threading
import time

import pytest

from damage import cases
from machine import PATIENCE, ROOT, Console
from tiers import realtime

# The client and the machine give each other up after 5 s of silence.
pytestmark = realtime()

STROBE = f"{ROOT}/build/strobe"
COMMAND = ("lua", "-e", "for i = 1, 3e5 do local s = tostring(i) end")


class Machine:
    """One on which remote runs, with the name that strobe remote knows it by."""

    def __init__(self, *options):
        self.console = Console(*options, smp=2)

    def start(self, arguments=""):
        self.console.send(f"remote {arguments}\r")
        self.console.wait_for("the key is ")
        self.key = self.console.wait_for("\n").strip()

    def wait_for(self, text):
        return self.console.wait_for(text, PATIENCE)

    def begin(self, *arguments, key=None, **options):
        return subprocess.Popen(
            [STROBE, "remote", self.name, "--key", key or self.key, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **{"text": True, **options})

    def run(self, *arguments, **options):
        child = self.begin(*arguments, **options)
        output, errors = child.communicate(timeout=PATIENCE)
        return child.returncode, output, errors


def free_udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def network():
    port = free_udp_port()
    m = Machine("--net", f"user,hostfwd=udp:127.0.0.1:{port}-:7876", "--kargs",
                "net=10.0.2.15/24,10.0.2.2")
    m.name, m.port = f"127.0.0.1:{port}", port
    with m.console:
        m.start()
        yield m


def report(path):
    done = subprocess.run([STROBE, "report", "--rows", "0", path], text=True,
                          capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def check_recorded(path, errors, *symbols):
    """The file is whole, and its header has what sending cost."""
    text = report(path)
    assert "Cut off" not in text and "lost with" not in text, text
    way = re.search(r"^Remote:  (\d+) datagrams, 0 of them lost; (\d+) bytes as (\d+), \d+ "
                    r"sent again\n +sending cost (\d+\.\d+) % of the CPUs: (\S+) ms the "
                    r"program, (\S+) ms the network's thread$", text, re.MULTILINE)
    assert way and int(way[1]) > 2 and int(way[3]) < int(way[2]), text
    assert float(way[5]) > 0, text
    assert f"{path}: " in errors and " 0 lost; " in errors, errors
    taken, lost = map(int, re.search(r"(\d+) taken, (\d+) lost", text).groups())
    assert int(re.search(r": (\d+) samples; ", errors)[1]) == taken - lost, (text, errors)
    for symbol in symbols:
        assert symbol in text, text
    perf = subprocess.run(["perf", "report", "-i", path, "--stdio", "-F", "sample"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert perf.returncode == 0 and "Samples: " in perf.stdout, perf
    return way


def test_record(network, tmp_path):
    path = str(tmp_path / "data")
    status, output, errors = network.run("record", "-F", "500", "-o", path, "--", "sh", "-c",
                                         "echo printed there; " + " ".join(
                                             (*COMMAND[:2], f"'{COMMAND[2]}'")) + "; exit 7")
    assert status == 7 and output == "printed there\n", (status, output, errors)
    way = check_recorded(path, errors, "luaV_execute [/bin/lua]", "[kernel]")
    assert int(way[3]) < int(way[2]) / 2, way
    assert float(way[6]) > 0, way  # the network's thread


@pytest.mark.parametrize("path", ("/dev/null", "/dev/stderr"))
def test_record_where_nothing_is_kept(network, path):
    """For what the program prints (docs/hardware.md); a pipe has the whole file."""
    child = network.begin("record", "-o", path, "--", "echo", "printed there", text=False)
    output, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0 and output == b"printed there\n", (output, errors)
    assert b"could not be written" not in errors, errors
    assert re.search(rb" \d+ samples; \d+ datagrams, 0 lost; ", errors), errors
    assert errors.startswith(b"PERFILE2") == (path == "/dev/stderr"), errors


def test_top(network):
    status, output, errors = network.run("top", "--", "-n", "2", "-v", "threads")
    assert status == 0 and not errors, (output, errors)
    assert output.count("remote") >= 2, output


def test_flame(network, tmp_path):
    status, output, errors = network.run("flame", "-o", "page.html", "--", *COMMAND,
                                         cwd=tmp_path)
    assert status == 0 and "page.html: open it in a browser" in errors, (output, errors)
    page = (tmp_path / "page.html").read_text()
    assert "luaV_execute" in page and "Remote" in page
    assert "luaV_execute" in report(str(tmp_path / "remote.data"))


def test_interrupted(network, tmp_path):
    """^C ends the session, and the file is whole; so does the end of the client. Until
    then an earlier file stays."""
    path = str(tmp_path / "data")
    (tmp_path / "data").write_text("before")
    child = network.begin("record", "-g", "-o", path, "--", "sh", "-c",
                          "echo begun; exec sleep 1000")
    assert select.select([child.stdout], [], [], PATIENCE)[0]
    assert child.stdout.readline() == "begun\n"
    assert (tmp_path / "data").read_text() == "before"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=PATIENCE)
    check_recorded(path, errors)
    assert os.listdir(tmp_path) == ["data"]
    network.wait_for("the session has ended")
    child = network.begin("record", "-o", path, "--", "sh", "-c",
                          "echo begun; exec sleep 1000")
    assert child.stdout.readline() == "begun\n"
    status, _, errors = network.run("top")
    assert status == 1 and "another session is running there" in errors, errors
    child.kill()
    child.communicate()
    network.wait_for("the client has vanished: the session is over")


def test_strangers(network, tmp_path):
    """Random bytes: one message, and the machine goes on; a wrong key: no session, and an
    earlier file stays."""
    draw = random.Random(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _ in range(500):
            data = draw.randbytes(draw.randrange(1400))
            s.sendto(draw.choice((data, b"SR\1h" + data)), ("127.0.0.1", network.port))
        assert not select.select([s], [], [], 0.5)[0]
    network.wait_for("without the key or damaged, the last from 10.0.2.2:")
    (tmp_path / "data").write_text("before")
    status, _, errors = network.run("record", "-o", str(tmp_path / "data"), key="0" * 32)
    assert status == 1 and "no answer: does remote run there, with this key?" in errors
    assert os.listdir(tmp_path) == ["data"]
    assert (tmp_path / "data").read_text() == "before"
    status, output, errors = network.run("top", "--", "-n", "1")
    assert status == 0 and "remote" in output, errors


class Relay(threading.Thread):
    """A way between client and machine, UDP on both sides, that keeps what it has carried,
    in other sessions, too. Of the machine's datagrams and the client's it sends a part
    twice, cut, forged, late, or not at all, and old ones beside them."""

    def __init__(self, port, seed):
        super().__init__(daemon=True)
        self.draw, self.kept, self.count = random.Random(seed), [], 0
        self.machine, self.client, self.late, self.over = port, None, [], False
        self.sides = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        self.sides[0].bind(("127.0.0.1", 0))
        self.sides[1].connect(("127.0.0.1", port))
        self.port = self.sides[0].getsockname()[1]

    def send(self, side, data):
        if side == 1:
            self.sides[1].send(data)
        elif self.client:
            self.sides[0].sendto(data, self.client)

    def hostile(self, data):
        """A datagram that was changed, or of earlier."""
        how = self.draw.randrange(5)
        if how == 0:
            return data[:self.draw.randrange(len(data))]
        if how == 1 or not self.kept:
            return data + self.draw.randbytes(self.draw.randrange(1, 50))
        if how == 2:
            return self.draw.choice(self.kept)
        changed = bytearray(data if how == 3 else self.draw.choice(self.kept))
        changed[self.draw.randrange(len(changed))] ^= 1 << self.draw.randrange(8)
        return bytes(changed)

    def carry(self, to, data):
        for _ in range(self.draw.randrange(4)):
            self.count += 1
            self.send(to, self.hostile(data))
        if self.draw.randrange(50) == 0:  # lost
            return
        delay = self.draw.random() * 0.2 if self.draw.randrange(4) == 0 else 0
        self.late.append((time.monotonic() + delay, to, data))
        if len(self.kept) < 2000:
            self.kept.append(data)

    def run(self):
        while not self.over:
            for side in select.select(self.sides, [], [], 0.02)[0]:
                data, sender = side.recvfrom(4096)
                if side is self.sides[0]:
                    self.client = sender
                self.carry(int(side is self.sides[0]), data)
            now, late = time.monotonic(), self.late
            self.late = [one for one in late if one[0] > now]
            for _, to, data in sorted(one for one in late if one[0] <= now):
                self.send(to, data)


def test_hostile_way(network, tmp_path):
    """Datagrams that are replayed, also of another session, cut, forged and late neither
    begin a session nor change a file: what has come of it is whole, in order, and what
    has not is counted."""
    relay = Relay(network.port, 1)
    relay.start()
    name, network.name = network.name, f"127.0.0.1:{relay.port}"
    try:
        for number in range(cases(2)):
            path = str(tmp_path / f"{number}")
            status, output, errors = network.run("record", "-F", "500", "-o", path, "--",
                                                 "sh", "-c", "echo printed; usleep 500000; "
                                                 "exit 7")
            assert status == 7 and output == "printed\n", (status, output, errors)
            text = report(path)
            assert "Cut off" not in text and "before the end" not in text, text
    finally:
        relay.over, network.name = True, name
        relay.join()
    assert relay.count > 20 * cases(2), relay.count
    status, output, errors = network.run("top", "--", "-n", "1")
    assert status == 0 and "remote" in output, errors


def test_serial(tmp_path):
    path = str(tmp_path / "data")
    m = Machine("--line")
    m.name = re.search(r"serial port is (\S+)", m.console.boot)[1]
    with m.console:
        m.start("-1 -d /dev/ttyS1")
        line = os.open(m.name, os.O_RDWR | os.O_NOCTTY)
        os.write(line, random.Random(1).randbytes(3000))
        status, _, errors = m.run("record", "-g", "-F", "500", "-o", path, "--", *COMMAND)
        os.close(line)
        assert status == 0, errors
        check_recorded(path, errors, "luaV_execute [/bin/lua]")
        m.wait_for("the session has ended")
        m.wait_for("strobe:")


def test_complaints(tmp_path):
    key = "0" * 32
    for arguments, text in (
            ([], "which machine"), (["host"], "which machine"),
            (["host", "sing", "-k", key], "sing: not top, record or flame"),
            (["host", "top"], "which key?"), (["host", "top", "-k", "1-2"], "32 hexadecimal"),
            (["no.such.host.invalid", "top", "-k", key], "no.such.host.invalid: "),
            (["/dev/null", "top", "-k", key], "not a serial line"),
            (["host", "record", "-k", key, "--", "x" * 2000], "too long")):
        done = subprocess.run([STROBE, "remote", *arguments], capture_output=True, text=True,
                              timeout=PATIENCE, cwd=tmp_path,
                              env={**os.environ, "STROBE_KEY": ""} if "-k" in arguments
                              else {k: v for k, v in os.environ.items() if k != "STROBE_KEY"})
        assert done.returncode != 0 and text in done.stderr, done
    assert not os.listdir(tmp_path)
