"""The other end of a machine's network cable: frames to and from tools/vm --net
socket,udp=... (each is a UDP datagram of the host)."""
import socket
import struct
import time

from machine import PATIENCE

MAC = bytes((2, 0, 0, 0, 0, 1))
IP = bytes((10, 0, 0, 1))
GUEST_MAC = bytes.fromhex("525400123456")  # QEMU's default
GUEST_IP = bytes((10, 0, 0, 2))
BROADCAST = b"\xff" * 6


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def ethernet(kind, body, to=GUEST_MAC):
    return (to + MAC + struct.pack(">H", kind) + body).ljust(60, b"\0")


def ipv4(protocol, body):
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0, 64, protocol, 0)
    head += IP + GUEST_IP
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return ethernet(0x0800, head + body)


def arp(operation):
    return ethernet(0x0806, struct.pack(">HHBBH", 1, 0x0800, 6, 4, operation) +
                    MAC + IP + GUEST_MAC + GUEST_IP, BROADCAST)


def ping(number, data):
    body = struct.pack(">BBHHH", 8, 0, 0, 1, number) + data
    return ipv4(1, body[:2] + struct.pack(">H", checksum(body)) + body[4:])


def udp(port, data, source=9999):
    body = struct.pack(">HHHH", source, port, 8 + len(data), 0) + data
    pseudo = IP + GUEST_IP + struct.pack(">HH", 17, len(body))
    return ipv4(17, body[:6] + struct.pack(">H", checksum(pseudo + body) or 0xffff) +
                body[8:])


def dhcp(kind, request, options, name=b"", file=b""):
    """A server's answer of this kind (2: offer, 5: ack) to a client's request."""
    head = struct.pack(">BBBBI4x4x4s4s4x", 2, 1, 6, 0, request, GUEST_IP, IP)
    body = head + GUEST_MAC.ljust(16, b"\0") + name.ljust(64, b"\0") + file.ljust(128, b"\0")
    return udp(68, body + b"\x63\x82\x53\x63" + bytes((53, 1, kind)) + options, 67)


def asked(frame):
    """(number, kind) of a request of DHCP, or None."""
    if frame[23] != 17 or frame[36:38] != b"\0\x43":
        return None
    return struct.unpack(">I", frame[46:50])[0], frame[284]


class Peer:
    """Answers ARP while it waits for something else. `machine`: the other end
    (monitor.Monitored), whose end is an end of waiting."""

    def __init__(self):
        self.machine = None
        self.end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.end.bind(("127.0.0.1", 0))
        free = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        free.bind(("127.0.0.1", 0))
        self.guest = free.getsockname()
        free.close()
        self.netdev = (f"socket,udp=127.0.0.1:{self.end.getsockname()[1]},"
                       f"localaddr=127.0.0.1:{self.guest[1]}")

    def send(self, frame):
        self.end.sendto(frame, self.guest)

    def frame(self, seconds):
        """The next frame but for requests of ARP, or None."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.end.settimeout(left)
            try:
                frame = self.end.recv(4096)
            except TimeoutError:
                return None
            if frame[12:14] == b"\x08\x06" and frame[20:22] == b"\0\1":
                if frame[38:42] == IP:
                    self.send(arp(2))
            else:
                return frame
        return None

    def ask(self, frame, is_answer, what):
        """Sends it and waits for `what`, which is returned: no frame is lost."""
        deadline = time.monotonic() + PATIENCE
        self.send(frame)
        while (left := deadline - time.monotonic()) > 0:
            got = self.frame(min(left, 1))
            if got and is_answer(got):
                return got
            if self.machine and self.machine.child.poll() is not None:
                break
        raise AssertionError(f"{what} was expected; sent: {frame.hex()}\n"
                             f"{self.machine and self.machine.failure()}")

    def ping(self, number, data=b""):
        """All that was sent before has been taken by the guest when it returns."""
        sent = ping(number, data)
        got = self.ask(sent, lambda f: f[23] == 1 and f[34] == 0 and
                       f[38:42 + len(data)] == sent[38:42 + len(data)],
                       f"the echo of ping {number}")
        assert checksum(got[34:42 + len(data)]) == 0 == checksum(got[14:34]), got

    def echo(self, data):
        """From port 7."""
        self.ask(udp(7, data), lambda f: datagram(f) == data,
                 f"the echo of {data[:20]} from port 7")

    def datagrams(self, seconds):
        """What arrives until nothing has for so long."""
        found = []
        while frame := self.frame(seconds):
            if (data := datagram(frame)) is not None:
                found.append(data)
        return found


def datagram(frame):
    """The data of a UDP frame with right sums, or None."""
    if frame[12:14] != b"\x08\0" or frame[23] != 17:
        return None
    size = struct.unpack(">H", frame[38:40])[0]
    body = frame[34:34 + size]
    pseudo = frame[26:34] + struct.pack(">HH", 17, size)
    assert checksum(frame[14:34]) == 0 and checksum(pseudo + body) == 0, frame.hex()
    return body[8:]
