"""Drives Strobe for the tests: single commands through tools/vm, batches of
them in one boot, and sessions at the console."""
import os
import subprocess
import tempfile
import time

import pexpect
import pyte

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
VM = f"{ROOT}/tools/vm"
PROMPT = "strobe:"
ROWS, COLUMNS = 24, 80


class Result:
    """What a run gave: status, output, errors, seconds."""

    def __init__(self, status, output, errors, seconds=0.0):
        self.status, self.output, self.errors = status, output, errors
        self.seconds = seconds

    def __repr__(self):
        return (f"status {self.status}\n--- output\n{self.output}"
                f"\n--- errors\n{self.errors}")


def vm(command=None, *options, smp=2, timeout=60):
    """Runs tools/vm, with a command for the guest or without."""
    arguments = [VM, "--smp", str(smp), "--timeout", str(timeout), *options]
    if command is not None:
        arguments += ["--", command]
    start = time.monotonic()
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=timeout + 60)
    return Result(done.returncode, done.stdout.decode(errors="replace"),
                  done.stderr.decode(errors="replace"),
                  time.monotonic() - start)


def batch(scripts, *options, smp=2, timeout=120, limit=60):
    """Runs many shell scripts in one boot. Each has its own shell, an empty
    directory, and `limit` seconds. Gives a Result for each name, in a dict, and
    the machine's own under None."""
    with tempfile.TemporaryDirectory(prefix="strobe-test-") as folder:
        top = f"{folder}/add/batch"
        os.makedirs(top)
        for number, text in enumerate(scripts.values()):
            with open(f"{top}/{number}", "w") as file:
                file.write(text)
        with open(f"{top}/run", "w") as file:
            file.write(f"""
for n in $(seq 0 {len(scripts) - 1}); do
    mkdir -p /tmp/batch/$n && cd /tmp/batch/$n
    timeout -s KILL {limit} sh /batch/$n >/out/$n.out 2>/out/$n.err </dev/null
    echo $? >/out/$n.status
    cd / && rm -rf /tmp/batch/$n
done
""")
        run = vm("sh /batch/run", "--add", f"{folder}/add",
                 "--get", f"{folder}/out", *options, smp=smp, timeout=timeout)
        return {None: run, **{name: collect(folder, number, run)
                              for number, name in enumerate(scripts)}}


def collect(folder, number, run):
    """One script's Result, or the machine's if it did not come so far."""
    def read(kind):
        with open(f"{folder}/out/{number}.{kind}", errors="replace") as file:
            return file.read()
    try:
        return Result(int(read("status")), read("out"), read("err"))
    except OSError:
        return Result(None, run.output, run.errors)


class Console:
    """A session at the serial console, with the screen that a user sees."""

    def __init__(self, *options, smp=2):
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.text = ""
        self.child = pexpect.spawn(
            VM, ["--smp", str(smp), "--timeout", "300", *options],
            dimensions=(ROWS, COLUMNS), timeout=30,
            env={**os.environ, "TERM": "vt100"})
        self.child.delaybeforesend = None
        self.boot = self.wait_for(PROMPT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.close(force=True)

    def pump(self, seconds=0.05):
        """Takes what the machine prints within some time."""
        try:
            data = self.child.read_nonblocking(65536, seconds)
        except pexpect.TIMEOUT:
            return False
        self.stream.feed(data)
        self.text += data.decode(errors="replace")
        return True

    def wait_for(self, text, seconds=30):
        """Waits until `text` has been printed; forgets all before its end."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, \
                f"no {text!r} in {self.text!r}\n" + "\n".join(self.lines())
            self.pump()
        before, self.text = self.text.split(text, 1)
        return before

    def settle(self, seconds=0.4):
        """Waits until nothing has been printed for a while."""
        while self.pump(seconds):
            pass

    def send(self, text):
        self.child.send(text)

    def command(self, line, seconds=30):
        """Types a command line; gives what it printed until the next prompt."""
        self.send(line + "\r")
        self.wait_for("\n", seconds)
        return self.wait_for(PROMPT, seconds).replace("\r", "")

    def lines(self):
        """The screen, without blanks at the ends of lines."""
        return [line.rstrip() for line in self.screen.display]
