"""USB keyboards on an xHCI controller, which is all that current machines have: typed on
at a root port and behind hubs, plugged in and pulled out while keys are held, with a
German layout."""
import re

import pytest

from checkers import NOTHING_LOST, options
from machine import vm
from monitor import Monitored
from tiers import side_by_side

# Each line that is typed on the screen's terminal; "end" ends the machine.
READER = """while read -r line </dev/tty0; do echo "got <$line>" >/dev/kmsg
    [ "$line" = end ] && break
done; sysinfo system.usb; stats --audit && echo balanced; sysinfo system.errors"""
CHAIN = "-device usb-hub,id=far,bus=usb.0,port=1.2 " \
    "-device usb-kbd,id=key,bus=usb.0,port=1.2.3"


class Typist(Monitored):
    """A machine without a PS/2 keyboard, whose console shows what is typed."""

    def do(self, line):
        answer = self.ask(line)
        assert "rror" not in answer, answer

    def type(self, *keys, got):
        """Types keys and Enter. A key is down for 100 ms."""
        for key in (*keys, "ret"):
            self.do(f"sendkey {key}")
        self.wait_for(f"got <{got}>$")

    def plug(self, name, port, path):
        self.do(f"device_add usb-kbd,id={name},bus=usb.0,port={port}")
        self.wait_for(f"usb: {path}: .*, keyboard$")

    def pull(self, name, path):
        self.do(f"device_del {name}")
        self.wait_for(f"usb: {path}: unplugged$")


@pytest.mark.parametrize("smp", (1, side_by_side(4)))
def test_keyboards(smp):
    """QEMU's hub is a device of full speed: ports 5 to 8 are those of USB 2. QEMU sends
    the release of a key to the keyboard that was plugged in last, so there is never a
    second one on which it would stay down."""
    with Typist(READER, "--machine", "q35", "--usb", "--qemu-args", CHAIN,
                "--kargs", "keymap=de", smp=smp) as m:
        m.wait_for("usb: 1-5.1: .*, keyboard$")
        m.wait_for("usb: 1-5.2.3: .*full speed, keyboard$")
        m.pull("keyboard", "1-5.1")
        m.type("shift-h", "e", "l", "l", "o", "kp_7", "ctrl-u", "caps_lock", "a",
               "caps_lock", "b", got="Ab")
        m.do("sendkey x 3000")  # 500 ms until it repeats, then each 33 ms
        m.type(got="x{2,80}")
        m.do("sendkey y 2000")
        m.pull("key", "1-5.2.3")  # y may be held, or not yet
        m.plug("root", "2", "1-6")
        m.type(got="z*")
        m.type("z", got="y")  # what was held is not held any more
        m.pull("root", "1-6")
        m.plug("behind", "1.2.4", "1-5.2.4")
        m.type("1", "shift-2", "semicolon", "alt_r-q", got='1"ö@')
        m.pull("far", "1-5.2")  # a hub, with its keyboard
        m.pull("hub", "1-5")
        m.plug("last", "3", "1-7")
        m.type("e", "n", "d", got="end")
        result = m.result()
    assert result.status == 0 and "balanced\n" in result.output, result
    assert "ps2: no keyboard controller" in result.console, result
    device = dict(re.findall(r"^(path|id|speed|kind) +(\S+)", result.output,
                             re.MULTILINE))
    assert device == {"path": "1-7", "id": "0627:0001", "speed": "high",
                      "kind": "keyboard"}, result
    assert re.search("^usb: unexpected events +0 ", result.output, re.MULTILINE), result


KEYMAPS = """keymap; keymap -l; for name in xx d '' 'de fr'; do keymap "$name"; echo $?; done
cd /tmp; echo nothing >/dev/keymap; su user -c 'keymap; keymap us'; keymap de && keymap -l
while read -r line </dev/tty0; do echo "got <$line>" >/dev/kmsg
    case $line in end) break;; keymap*) $line;; esac
done; keymap; stats --audit >/dev/null && echo balanced"""


def test_keymap():
    """It is changed by what is typed, for a USB and a PS/2 keyboard at once. QEMU sends
    keys to the one that was plugged in last."""
    with Typist(KEYMAPS, "--qemu-args", "-device qemu-xhci,id=usb -device "
                "usb-kbd,id=key,bus=usb.0,port=1", smp=1) as m:
        m.wait_for("usb: 1-5: .*, keyboard$")
        m.type("z", got="y")
        m.type(*"kezmap", "spc", *"fr", got="keymap fr")
        m.type(*"aq1", got="qa&")
        m.pull("key", "1-5")
        m.type(*"aq1", got="qa&")
        m.type(*"key", "semicolon", *"qp", "spc", *"us", got="keymap us")
        m.type(*"aq1", got="aq1")
        m.type(*"end", got="end")
        result = m.result()
    assert result.output == "us\n[us] de pl cz fr\n2\n2\n2\n2\nus\n" \
        "us [de] pl cz fr\nus\nbalanced\n", result
    for name in "xx", "d", "", "de fr":
        assert f"keymap: {name}: no such layout: there are [us] de pl cz fr\n" in \
            result.errors, result
    assert "write error: Invalid argument\n" in result.errors, result
    assert "keymap: /dev/keymap: Permission denied\n" in result.errors, result


@pytest.mark.parametrize("controller,how", (
    ("nec-usb-xhci,msi=on,msix=off", "interrupts"),
    ("nec-usb-xhci,msi=off,msix=off", "no interrupts: polled every 8 ms")))
def test_other_interrupts(controller, how):
    """By MSI, and without interrupts; an idle keyboard costs next to nothing."""
    script = """until sysinfo system.usb | grep -q keyboard; do sleep 0.1; done
        cost() { sysinfo --json system.threads | tr '}' '\\n' | grep usb/1; }
        cost; sleep 10; cost; dmesg | grep usb:"""
    result = vm(script, "--qemu-args", f"-device {controller} -device usb-kbd", smp=1)
    assert result.status == 0 and result.output.endswith("keyboard\n"), result
    assert f"ports, {how}\n" in result.output, result
    begin, end = map(int, re.findall(r'"kernel": ?"?(\d+)', result.output))
    # Virtual time: 8 ns an instruction.
    limit = 0.01 if "polled" in how else 0.0001
    assert (end - begin) / 1e10 < limit, (begin, end)


@pytest.mark.parametrize("fault,said", (
    ("usb-data,1", "1-5: no device that can be used: its configuration descriptor is"),
    ("usb-event,3", "controller 1 is given up: a command does not end"),
    ("usb-dead,30", "controller 1 is given up: it reports a host system error")))
def test_faults(fault, said):
    """Devices and controllers that fail are named, and the machine goes on; no memory is
    lost or used after it was freed."""
    run = vm("sleep 20; sysinfo system.usb >/dev/null; stats --audit", "--usb",
             "--kargs", f"fault={fault}", *options("addresses"), smp=1)
    assert run.status == 0 and f"usb: {said}" in run.console, run
    assert NOTHING_LOST in run.console, run
