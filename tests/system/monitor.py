"""A machine with QEMU's monitor: what happens to hardware from outside."""
import os
import random
import re
import shlex
import socket
import subprocess
import tempfile
import time

from machine import KERNEL, PATIENCE, VM, Result, cpus, read

MONITOR_PROMPT = b"(qemu) "

# Below those that any program gets which asks for none in particular.
PORTS = 20000, 30000


def free_port():
    while True:
        port = random.randrange(*PORTS)
        with socket.socket() as s:
            try:
                s.bind(("", port))
                return port
            except OSError:
                pass  # somebody has it


# (gdb would ask again after 2 seconds, and take a late answer for that to its next
# question.)
START = """
set confirm off
set pagination off
set tcp connect-timeout 60
set remotetimeout {patience}
target remote :{port}
"""


def by_gdb(folder, port, script):
    """Does what the script says in a machine that waits for gdb there."""
    path = folder / "script"
    path.write_text(START.format(port=port, patience=PATIENCE) + script +
                    "detach\n")
    return subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", path, KERNEL],
                          timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)


# The system call `sync` loops, from an instruction that gdb writes over it.
HANG = """
break sys_sync
continue
delete
set var *(unsigned short *)$pc = 0xfeeb
{how}
"""
INTERRUPTS_OFF = "set var $eflags = $eflags & ~0x200"


def hang_in_sync(folder, port, how=INTERRUPTS_OFF):
    """By the gdb stub of a machine whose command calls sync."""
    by_gdb(folder, port, HANG.format(how=how)).check_returncode()


class Monitored:
    """tools/vm runs a command; `ask` tells QEMU's monitor something. The console
    is read from a file, so that nobody waits for a prompt."""

    def __init__(self, command, *options, smp=None):
        self.folder = tempfile.TemporaryDirectory(prefix="strobe-monitor-")
        self.log = f"{self.folder.name}/console"
        path = f"{self.folder.name}/monitor"
        self.arguments = [
            "--smp", str(smp or cpus), "--timeout", str(PATIENCE),
            "--console-log", self.log, "--qemu-args",
            f"-chardev socket,id=asked,path={path},server=on,wait=off"
            " -mon chardev=asked", *options, "--", command]
        self.child = subprocess.Popen(
            [VM, *self.arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace")
        self.end = socket.socket(socket.AF_UNIX)
        self.end.settimeout(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while self.end.connect_ex(path):
            assert time.monotonic() < deadline and self.child.poll() is None
            time.sleep(0.02)
        self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end.close()
        if self.child.poll() is None:
            self.child.terminate()
            self.child.communicate()
        self.folder.cleanup()

    def answer(self):
        text = b""
        while not text.endswith(MONITOR_PROMPT):
            data = self.end.recv(4096)
            if not data:
                break  # it has ended the machine
            text += data
        return text.decode(errors="replace")

    def ask(self, line):
        self.end.sendall(line.encode() + b"\n")
        return self.answer()

    def console(self):
        return read(self.log).replace("\r", "")

    def wait_for(self, pattern):
        """Waits until the console has it; gives all that it has."""
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.console(), re.MULTILINE):
            assert time.monotonic() < deadline and self.child.poll() is None, \
                f"no {pattern!r} in\n{self.console()}"
            time.sleep(0.02)
        return self.console()

    def result(self):
        """When the machine has ended."""
        output, errors = self.child.communicate(timeout=PATIENCE + 60)
        return Result(self.child.returncode, output, errors, self.console(),
                      command=shlex.join([os.path.relpath(VM), *self.arguments]))


def debugged(folder, command, script):
    """What gdb did and the machine's result: the script runs beside the command,
    from the start of the machine on."""
    port = free_port()
    with Monitored(command, "--gdb", str(port)) as machine:
        gdb = by_gdb(folder, port, script)
        return gdb, machine.result()
