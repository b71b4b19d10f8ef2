"""The network: a card on a cable whose other end is the test (peer.py), which pings, sends
datagrams, and thousands of malformed frames; DHCP; net= that is wrong."""
import random
import re

import pytest

import peer
from checkers import options
from damage import cases, damaged
from machine import vm
from monitor import Monitored
from tiers import realtime

SERVER = """/test/udp serve; echo status $?; sysinfo system.net
stats --audit && echo balanced; sysinfo system.errors"""
QUEUE = 32  # of 1400 bytes, in 2 KiB of memory each, of 64 KiB
SENT = 200
FLOOD = cases(3000)
ANSWERS = cases(1000)  # of a hostile DHCP server


def facts(text):
    return dict(re.findall(r"^(\w+) +(\S.*?)(?:  .*)?$", text, re.MULTILINE))


def malformed(draw):
    """A frame that the guest could get, with some bytes changed or cut off."""
    data = draw.randbytes(draw.randrange(1400))
    frame = bytearray(draw.choice((
        peer.arp(draw.randrange(1, 3)), peer.ping(9, data), peer.udp(7, data),
        peer.udp(draw.randrange(65536), data), peer.ethernet(0x0800, data),
        peer.ipv4(draw.randrange(256), data))))
    for _ in range(draw.randrange(1, 6)):
        frame[draw.randrange(12, min(len(frame), 60))] = draw.randrange(256)
    if draw.randrange(3) == 0:
        del frame[draw.randrange(14, len(frame)):]
    return bytes(frame)


def flood(other, seed):
    draw = random.Random(seed)
    for number in range(FLOOD):
        # An "end" that survives would end the guest's server.
        if b"end" not in (frame := malformed(draw)):
            other.send(frame)
        if number % 50 == 49:
            other.ping(number)
            other.echo(b"still there")  # the server does not wait for ever


def lose(other):
    """The server does not read: what finds its queue full is lost, and counted."""
    other.echo(b"wait")
    for number in range(SENT):
        other.send(peer.udp(7, bytes((number,)) * 1400))
        if number % 10 == 9:
            other.ping(number)
    other.send(peer.udp(8, b"go"))
    got = other.datagrams(2)
    assert got == [bytes((number,)) * 1400 for number in range(QUEUE)], len(got)


@pytest.mark.parametrize("kernel, smp", [
    pytest.param(kernel, smp, marks=realtime()) for kernel, smp in (
        ("addresses", 1), ("addresses", 4), ("races", 2), ("races", 4))])
def test_traffic(kernel, smp, seed=1):
    """A data race ends the kernel that looks for them."""
    other = peer.Peer()
    with Monitored(SERVER, "--net", other.netdev, "--kargs", "net=10.0.0.2/24",
                   *options(kernel), smp=smp) as m:
        other.machine = m
        m.wait_for("net: address 10.0.0.2/24, gateway 0.0.0.0$")
        m.wait_for("net: link up, 1000 Mbit/s$")
        m.wait_for("port 7 is served$")
        assert "net: e1000 8086:10d3 at 00:" in m.console()
        assert other.ask(peer.arp(1), lambda f: f[20:22] == b"\0\2",
                         "the guest's Ethernet address")[22:28] == \
            peer.GUEST_MAC
        for size in 0, 1, 56, 1000, 1472:
            other.ping(size, b"x" * size)
            other.echo(b"echo" + b"y" * (size - 4))
        lose(other)
        other.send(peer.udp(7, b"send 50"))
        numbers = [int.from_bytes(data[:4], "little") for data in other.datagrams(2)]
        assert numbers == list(range(50))
        flood(other, seed)
        m.ask("set_link card off")
        m.wait_for("net: link down$")
        m.ask("set_link card on")
        m.wait_for("link down(.|\n)*net: link up, 1000 Mbit/s$")
        other.echo(b"again")
        other.send(peer.udp(7, b"end"))
        result = m.result()
    assert "status 0\n" in result.output and "balanced\n" in result.output, result
    found = facts(result.output)
    assert found["state"] == "ready" and found["address"] == "10.0.0.2", result
    assert int(found["queue_full"]) == SENT - QUEUE and found["missed"] == "0", result
    for reason in "checksum", "malformed", "unwanted", "no_socket":
        assert int(found[reason]) > 0, result


# Mask, gateway, lease, server; the times of renewal.
LEASE = bytes((1, 4, 255, 255, 255, 0, 3, 4, *peer.IP, 51, 4, 0, 1, 0, 0, 54, 4, *peer.IP, 255))


def hostile_answer(number, request):
    """An answer to a request that is under way, whose options may be damaged, without an
    end, in the fields of names (52), or cut off; three in four have right sums."""
    draw = random.Random(f"dhcp {number}")
    kind = draw.choice((2, 2, 5, 5, 6, draw.randrange(256)))
    options = draw.choice((LEASE, LEASE[:-1], bytes((52, 1, draw.randrange(5))) + LEASE,
                           draw.randbytes(draw.randrange(500)), LEASE * 20,
                           bytes((draw.randrange(256), draw.randrange(256))) * 30))
    data = damaged("dhcp", number, options) if draw.randrange(4) else options
    frame = peer.dhcp(kind, request, data, draw.randbytes(64), draw.randbytes(128))
    # (An empty datagram ends QEMU's socket.)
    return damaged("frame", number, frame)[:1500].ljust(14) if draw.randrange(4) == 0 else frame


@realtime()
def test_hostile_dhcp():
    """Answers that lie and are damaged, before the machine has an address and when it has
    one: it then has what an honest server gave it, or the hostile one."""
    other, number = peer.Peer(), 0
    with Monitored(SERVER, "--net", other.netdev, "--kargs", "net=dhcp",
                   *options("addresses"), smp=1) as m:
        other.machine = m
        m.wait_for("net: link up, 1000 Mbit/s$")
        m.wait_for("port 7 is served$")
        while "net: address 10.0.0.2/" not in m.console():
            frame = other.frame(30)
            if not frame or not (request := peer.asked(frame)):
                continue
            for number in range(number, number + 40):
                other.send(hostile_answer(number, request[0]))
            if number > 40:
                other.send(peer.dhcp(2 if request[1] == 1 else 5, request[0], LEASE))
        for number in range(number, ANSWERS):
            other.send(hostile_answer(number, request[0]))
            if number % 20 == 19:
                other.ping(number)
                other.echo(b"still there")
        other.send(peer.udp(7, b"end"))
        result = m.result()
    assert "status 0\n" in result.output and "balanced\n" in result.output, result
    found = facts(result.output)
    assert found["missed"] == "0" and \
        int(found["in_packets"]) + int(found["bad"]) >= number, result


@realtime()
@pytest.mark.parametrize("card,how", (
    ("e1000e", "interrupts"), ("e1000", "no interrupts: polled every 8 ms"),
    ("e1000-82544gc", "no interrupts: polled every 8 ms"),
    ("e1000-82545em", "no interrupts: polled every 8 ms")))
def test_dhcp(card, how):
    """By QEMU's DHCP server, which gives the first machine this address."""
    result = vm("""until sysinfo system.net | grep -q "^state *ready "; do sleep 0.1; done
        dmesg | grep net:; stats --audit && echo balanced""", "--kargs", "net",
                "--qemu-args", f"-netdev user,id=n -device {card},netdev=n", smp=1)
    assert result.status == 0 and "balanced\n" in result.output, result
    assert f", {how}\n" in result.output, result
    assert "net: address 10.0.2.15/24, gateway 10.0.2.2\n" in result.output, result


def test_not_used():
    """A wrong net=, a card without a driver, none at all: said, and nothing starts."""
    card = "-netdev user,id=n -device "
    for argument, said, devices in (
            ("net=10.0.0.1/31", "warning: net=10.0.0.1/31 is ignored: the network's bits "
             "are not a number from 1 to 30", "e1000e"),
            ("net=dhcp", "net: 10ec:8139 at 00:03.0 is not used: there is no driver for it",
             "rtl8139"),
            ("net=off", "", "e1000e")):
        result = vm("tasks -a | grep -cw net; sysinfo system.net", "--kargs", argument,
                    "--qemu-args", f"{card}{devices},netdev=n", smp=1)
        assert said in result.console and result.output.startswith("0\n"), result
        assert "ready" not in result.output and not result.errors, result
