"""Sticks (USB mass storage with FAT): results are taken home, and a stick is pulled out
while it is written."""
import os
import re
import subprocess

import pytest

from checkers import NOTHING_LOST, options
from machine import ROOT, vm
from monitor import Monitored
from tiers import side_by_side

STROBE = f"{ROOT}/build/strobe"
# Waits for the stick; used as `stick && ...`.
STICK = """stick() { for i in $(seq 600); do grep -q ' /usb ' /proc/mounts && return
    sleep 0.1; done; echo no stick; return 1; }
"""


def make(path, *kind):
    subprocess.run(["/usr/sbin/mkfs.vfat", "-C", *kind, path, "66000"], check=True,
                   capture_output=True)
    return str(path)


def mtools(command, image, *arguments):
    return subprocess.run([command, "-i", image, *arguments], check=True,
                          capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"})


def check(image, *options):
    return subprocess.run(["/usr/sbin/fsck.vfat", *options, image], text=True,
                          capture_output=True)


def clean(image):
    found = check(image, "-n")
    assert found.returncode == 0, found.stdout


WRITER = STICK + """stick && cat "/usb/From the host, größer.txt" &&
sprofile -o /usb/p.data -- sh -c 'ls -R /proc >/dev/null; ls -R /proc >/dev/null' \
    >/dev/null && mkdir /usb/Folder && cp /bin/busybox "/usb/Folder/a program" &&
cmp /bin/busybox "/usb/Folder/a program" && mv /usb/p.data /usb/Folder/ &&
for i in 1 2 3 4; do (seq 3000 >"/usb/numbers of $i"; seq 3001 6000 >>"/usb/numbers of $i") &
done; wait
ls /usb; rm "/usb/numbers of 3"; sync && echo synced
/bin/busybox ls /usb/nothing; echo x >'/usb/a:b'
umount /usb && mount -t vfat none /usb && ls /usb/Folder
sysinfo system.usb | grep storage; stats --audit >/dev/null && echo balanced"""


@pytest.mark.parametrize("smp", (1, side_by_side(4)))
def test_results_go_home(tmp_path, smp):
    image = make(tmp_path / "stick", "-F", "32", "-s", "4")
    (tmp_path / "text").write_text("from the host\n")
    mtools("mcopy", image, tmp_path / "text", "::From the host, größer.txt")
    run = vm(WRITER, "--usb-stick", image, *options("addresses"), smp=smp)
    assert run.status == 0 and run.output == """from the host
Folder
From the host, größer.txt
numbers of 1
numbers of 2
numbers of 3
numbers of 4
synced
a program
p.data
kind          storage        keyboard, hub, or not used
balanced
""", run
    assert NOTHING_LOST in run.console, run
    clean(image)
    mtools("mcopy", image, "::Folder/p.data", tmp_path / "p.data")
    report = subprocess.run([STROBE, "report", tmp_path / "p.data"], text=True,
                            capture_output=True, check=True).stdout
    assert "p.data of sprofile -o /usb/p.data -- sh -c ls -R /proc" in report
    numbers = mtools("mtype", image, "::numbers of 2").stdout
    assert numbers.decode() == "".join(f"{n}\n" for n in range(1, 6001))


# A profile for minutes, whose stick is pulled out; then another stick comes.
PULLED = STICK + """stick; (cd /usb; : >open; exec 3>>open; echo ready >/dev/kmsg
until ! echo more >&3; do :; done 2>/dev/null; echo x 2>&1 >&3; echo y 2>&1 >later) &
sprofile -o /usb/p.data -- sh -c 'while :; do ls /proc >/dev/null
    [ -e /tmp/gone ] && break; done' >/tmp/said 2>&1 &
profile=$!
cat </dev/zero >/usb/zeros
echo "zeros: $?"; touch /tmp/gone; wait $profile; echo "sprofile: $?"; cat /tmp/said
wait
sleep 1; ls /usb; echo "machine goes on" >/dev/kmsg
stick && cp /bin/busybox /usb && cmp /bin/busybox /usb/busybox && echo second
stats --audit >/dev/null && echo balanced"""


@pytest.mark.parametrize("smp", (1, side_by_side(4)))
def test_pulled_out(tmp_path, smp):
    """While it is written from three sides: each of them gets an error."""
    first = make(tmp_path / "first")
    second = make(tmp_path / "second")
    with Monitored(PULLED, "--usb-stick", first, *options("addresses"), "--qemu-args",
                   f"-drive if=none,id=second,format=raw,file={second}", smp=smp) as m:
        m.wait_for("ready$")
        m.ask("device_del stick")
        m.wait_for("usb: 1-[0-9]+: unplugged$")
        m.wait_for("usb: /usb is unmounted: the stick has gone$")
        m.wait_for("machine goes on$")
        m.ask("device_add usb-storage,id=other,bus=usb.0,port=3,drive=second")
        m.wait_for("usb: the stick is at /usb$(.|\n)*usb: the stick is at /usb$")
        run = m.result()
    assert run.status == 0 and run.output.endswith("second\nbalanced\n"), run
    assert "zeros: 1\n" in run.output, run
    assert re.search("sprofile: [1-9]", run.output), run
    assert NOTHING_LOST in run.console, run
    clean(second)
    check(first, "-a")
    clean(first)
