"""What `tools/soak --faults` does to the machine from outside while tests/soak/run works in
it: a stick is pulled out and comes back, or another one does; the disk has bad sectors;
partitions are damaged, again and again, also while they are mounted; malformed frames and
datagrams, and a cable that is pulled out; programs with damaged headers."""
import os
import random
import re
import subprocess
import threading
import time

import peer
from damage import damaged
from disk_images import BASIC_DATA, SECTOR, make_fat, make_gpt, mtools, put
from machine import ROOT
from monitor import Monitored
from test_net import malformed

FIRST, COUNT = 2048, 2 * 8000
DAMAGED = 7  # partitions, of so many sectors:
SMALL = 256
PLACES = [FIRST + n * (SMALL + 8) for n in range(DAMAGED)]
REMOTE_PORT = 7876
PROGRAMS = 200
HEAD = 512  # bytes of an ELF file that are damaged
# One sector can never be read, and each of some can once not be written.
RULES = "".join(f"""[inject-error]
event = "{event}"
iotype = "{iotype}"
sector = "{FIRST + at}"
once = "{once}"

""" for event, iotype, at, once in (
    ("read_aio", "read", 3000, "off"), *(("write_aio", "write", 900 + 700 * n, "on")
                                         for n in range(20))))
SAID = re.compile(r"soak: (quiet|faults)")


class Faults:
    """The images and frames of one run, drawn by its seed."""

    def __init__(self, folder, seed):
        self.draw = random.Random(seed)
        self.folder = folder
        self.sticks = [make_fat(f"{folder}/stick{n}", kilobytes=2000) for n in (1, 2)]
        self.plugged, self.count = "stick", 0
        self.whole = self.small_fat()
        self.bad = make_gpt(f"{folder}/bad", 2 * FIRST + COUNT, [(BASIC_DATA, FIRST, COUNT)])
        put(self.bad, FIRST, make_fat(f"{folder}/fat", kilobytes=COUNT // 2))
        self.disk = make_gpt(f"{folder}/disk", 2 * FIRST + DAMAGED * (SMALL + 8), [
            (BASIC_DATA, at, SMALL) for at in PLACES])
        for number in range(DAMAGED):
            self.damage(number)
        self.peer = peer.Peer()
        self.add_programs(f"{folder}/root")
        with open(f"{folder}/rules", "w") as file:
            file.write(RULES)

    def options(self):
        return ["--usb-stick", self.sticks[0], "--net", self.peer.netdev,
                "--kargs", "net=10.0.0.2/24 disk=sata0p1", "--add", f"{self.folder}/root",
                "--qemu-args",
                "-drive if=none,id=bad,format=raw,rerror=report,werror=report,"
                f"file=blkdebug:{self.folder}/rules:{self.bad} -device ich9-ahci,id=sata "
                "-device ide-hd,bus=sata.0,drive=bad,cyls=100,heads=16,secs=63 "
                f"-drive if=none,id=damaged,format=raw,file={self.disk} "
                "-device ide-hd,bus=sata.1,drive=damaged"]

    def small_fat(self):
        fat = make_fat(f"{self.folder}/small", "-F", "12", "-s", "1", kilobytes=SMALL // 2)
        with open(f"{self.folder}/text", "w") as file:
            file.write("text\n" * 1000)
        mtools("mmd", fat, "::folder")
        for place in "text", "folder/a long name of a file":
            mtools("mcopy", fat, f"{self.folder}/text", f"::{place}")
        with open(fat, "rb") as file:
            return file.read()

    def add_programs(self, root):
        os.makedirs(f"{root}/damaged", 0o755)
        stripped = f"{root}/rest"
        subprocess.run(["i686-linux-gnu-strip", "-s", f"{ROOT}/build/guest/pie", "-o",
                        stripped], check=True)
        with open(stripped, "r+b") as file:
            data = file.read()
            file.seek(0)
            file.write(data[HEAD:])
            file.truncate()
        os.chmod(stripped, 0o644)
        for number in range(PROGRAMS):
            with open(f"{root}/damaged/{number}", "wb") as file:
                file.write(damaged("elf", number, data[:HEAD]))

    def damage(self, number):
        used = 24 * SECTOR
        data = damaged("fat", self.draw.randrange(1 << 30), self.whole[:used])
        with open(self.disk, "r+b") as file:
            file.seek(PLACES[number] * SECTOR)
            file.write((data + self.whole[used:])[:SMALL * SECTOR])

    def pull(self, machine, image):
        """The stick goes, and after a while this one comes."""
        machine.ask(f"device_del {self.plugged}")
        time.sleep(self.draw.random())
        self.count += 1
        self.plugged = f"plugged{self.count}"
        machine.ask(f"drive_add 0 if=none,id=image{self.count},format=raw,file={image}")
        order = f"device_add usb-storage,id={self.plugged},bus=usb.0,port=4," \
            f"drive=image{self.count}"
        while "Error" in machine.ask(order):  # QEMU has not closed the image yet
            time.sleep(0.05)

    def quiet(self, machine):
        """A stick tells that no fault comes any more."""
        image = make_fat(f"{self.folder}/quiet{self.count}", kilobytes=2000)
        mtools("mcopy", image, f"{self.folder}/text", "::quiet")
        self.pull(machine, image)

    def frames(self, number):
        for _ in range(number):
            frame = malformed(self.draw)
            if self.draw.randrange(4) == 0:
                frame = peer.udp(REMOTE_PORT, self.draw.randbytes(self.draw.randrange(300)))
            if b"end" not in frame:  # it would end the guest's server
                self.peer.send(frame)

    def step(self, machine):
        what = self.draw.randrange(12)
        if what == 0:
            self.pull(machine, self.draw.choice(self.sticks))
        elif what == 1:
            machine.ask("set_link card off")
            machine.ask("set_link card on")
        elif what < 5:
            self.damage(self.draw.randrange(DAMAGED))
        else:
            self.frames(50)


def work(folder, command, options, seed):
    """The Result of a command under faults, which it begins and ends by its words."""
    faults = Faults(folder, seed)
    with Monitored(command, *faults.options(), *options) as machine:
        ended = threading.Event()

        def run():
            answered = 0
            while not ended.is_set():
                said = SAID.findall(machine.console())
                if said and said[-1] == "faults":
                    faults.step(machine)
                elif len(said) > answered:
                    faults.quiet(machine)
                    answered = len(said)
                time.sleep(0.1)

        thread = threading.Thread(target=run)
        thread.start()
        output, errors = machine.child.communicate()
        ended.set()
        thread.join()
        return machine.child.returncode, output, errors
