"""Machines with QEMU's monitor or gdb."""
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import time

from machine import KERNEL, PATIENCE, ROOT, VM, Result, cpus, read

MONITOR_PROMPT = b"(qemu) "

# Below the range of ephemeral ports.
PORTS = 20000, 30000


def free_port():
    while True:
        port = random.randrange(*PORTS)
        with socket.socket() as s:
            try:
                s.bind(("", port))
                return port
            except OSError:
                pass  # in use


# The default remotetimeout is 2 s: then gdb repeats a request and takes a late answer
# for that to its next one.
START = """
set confirm off
set pagination off
set tcp connect-timeout 60
set remotetimeout {patience}
target remote :{port}
"""


def by_gdb(folder, port, script):
    """Runs a gdb script on the machine that waits at a port."""
    path = folder / "script"
    path.write_text(START.format(port=port, patience=PATIENCE) + script +
                    "detach\n")
    return subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", path, KERNEL],
                          timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)


# tools/gdb, and complaint("COMMAND"), which prints why the command fails.
TOOLS = f"""
source {ROOT}/tools/gdb/strobe.py
python
def complaint(command):
    try:
        gdb.execute(command)
    except gdb.error as error:
        print("complaint:", error)
end
"""


def by_tools(folder, command, script, *options, smp):
    """Runs a gdb script with tools/gdb on a machine from its start; then kills the
    machine. Returns gdb's output."""
    port = free_port()
    machine = subprocess.Popen(
        [VM, "--smp", str(smp), "--gdb", str(port), "--timeout", str(PATIENCE),
         *options, "--", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True)
    try:
        gdb = by_gdb(folder, port, TOOLS + script)
    finally:
        os.killpg(machine.pid, signal.SIGKILL)
        machine.communicate()
    return gdb.stdout + gdb.stderr


# gdb overwrites sys_sync's first instruction with a jump to itself.
HANG = """
break sys_sync
continue
delete
set var *(unsigned short *)$pc = 0xfeeb
{how}
"""
INTERRUPTS_OFF = "set var $eflags = $eflags & ~0x200"


def hang_in_sync(folder, port, how=INTERRUPTS_OFF):
    """Hangs a machine whose command calls sync, with gdb."""
    by_gdb(folder, port, HANG.format(how=how)).check_returncode()


class Monitored:
    """Runs a command with tools/vm; `ask` sends a line to QEMU's monitor. The console
    is read from its log file."""

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
                break  # the command ended the machine
            text += data
        return text.decode(errors="replace")

    def ask(self, line):
        self.end.sendall(line.encode() + b"\n")
        return self.answer()

    def console(self):
        return read(self.log).replace("\r", "")

    def wait_for(self, pattern):
        """Waits until the console matches; returns its whole output."""
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.console(), re.MULTILINE):
            assert time.monotonic() < deadline and self.child.poll() is None, \
                f"no {pattern!r} in\n{self.console()}"
            time.sleep(0.02)
        return self.console()

    def failure(self):
        """What is known when an answer does not come."""
        return self.console() if self.child.poll() is None else self.result()

    def result(self):
        """The Result, after the machine has ended."""
        output, errors = self.child.communicate(timeout=PATIENCE + 60)
        return Result(self.child.returncode, output, errors, self.console(),
                      command=shlex.join([os.path.relpath(VM), *self.arguments]))


def debugged(folder, command, script, *options, smp=None):
    """Runs a gdb script on a machine from its start. Returns gdb's process and the
    machine's Result."""
    port = free_port()
    with Monitored(command, "--gdb", str(port), *options, smp=smp) as machine:
        gdb = by_gdb(folder, port, script)
        return gdb, machine.result()
