"""Runs Strobe for the tests: single commands with tools/vm, batches of commands in
one boot, and sessions at the console."""
import os
import re
import shlex
import subprocess
import tempfile
import time

import pexpect
import pyte

from result import Result

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
VM = f"{ROOT}/tools/vm"
# tools/vm's default kernel; tools/coverage sets STROBE_KERNEL.
KERNEL = os.environ.get("STROBE_KERNEL", f"{ROOT}/build/kernel.elf")
PROMPT = "strobe:"
ROWS, COLUMNS = 24, 80

# Time-outs, in seconds, only to catch hangs: 8 s of work on an idle machine may take
# a minute on a slow, busy one.
PATIENCE = 300           # a machine, or a tool on the host
LONG_PATIENCE = 1200     # work of minutes on an idle machine
BATCH_PATIENCE = 3600    # a batch; its scripts have their own:
SCRIPT_PATIENCE = 300    # a script, in the guest's time
SILENCE = 360            # a machine without output
SESSION_PATIENCE = 1800  # a session at the console ...
ANSWER_PATIENCE = 100    # ... and an answer in it
# Waits in a script until a profiler samples.
TAKING = ("until sysinfo system.profile.sessions | grep -q taking; do"
          " usleep 20000; done")
# Limits for a kernel that always hangs:
MACHINES = 3  # machines that one batch may use
HANGS = 8     # no machine is started after so many hangs

# Virtual time: 8 ns an instruction, about QEMU's speed in real time.
SHIFT = 3
# Fixed addresses, so that costs do not depend on earlier random numbers.
FIXED_PLACES = "randomize_va_space=0"

hangs = 0
cpus = 1  # default number of CPUs


def use_clock(virtual):
    """Selects virtual time, in which a run repeats exactly, or host time for the next
    machines. REDRAW=N delays each start. In virtual time programs have fixed
    addresses, and the default is one CPU, as two would take turns
    (docs/testing.md)."""
    global cpus
    cpus = 1 if virtual else 2
    options = ["--icount", str(SHIFT), "--kargs", FIXED_PLACES] if virtual else []
    if os.environ.get("REDRAW"):
        options += ["--kargs", f"start_delay={2 * int(os.environ['REDRAW'])}"]
    os.environ["STROBE_VM"] = shlex.join(options)


def launch(command, options, smp, timeout):
    """Runs tools/vm. Returns its Result, and its output in bytes."""
    global hangs
    arguments = ["--smp", str(smp or cpus), "--timeout", str(timeout), *options]
    if command is not None:
        arguments += ["--", command]
    shown = shlex.join(["tools/vm", *shlex.split(os.environ["STROBE_VM"]),
                       *arguments])
    if hangs >= HANGS:
        return Result(None, "", command=shown, problem="not begun: "
                      f"{hangs} machines have hung, and that is enough"), b""
    with tempfile.TemporaryDirectory(prefix="strobe-test-") as folder:
        log = f"{folder}/console"
        start = time.monotonic()
        done = subprocess.run([VM, "--console-log", log, *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=timeout + 60)
        seconds = time.monotonic() - start
        console = read(log).replace("\r", "")
    result = Result(done.returncode, done.stdout.decode(errors="replace"),
                    done.stderr.decode(errors="replace"), console, seconds,
                    shown)
    # A test that expects a time-out uses a shorter one.
    hangs += result.status == 124 and result.problem != "" and \
        timeout >= PATIENCE
    return result, done.stdout


def read(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def vm(command=None, *options, smp=None, timeout=PATIENCE):
    """Runs tools/vm, with or without a command for the guest."""
    return launch(command, options, smp, timeout)[0]


# --- batches ------------------------------------------------------------------

# The guest's script. It logs each start on the console, which is readable even if
# the machine stops; it sends a result after the script's end. The sleep lets the
# result be sent before the next script, which may measure.
RUN = """
run() {{
    n=$1
    echo "batch: begin $n, $2" >/dev/kmsg
    mkdir -p /tmp/batch/$n && cd /tmp/batch/$n
    timeout -s KILL {limit} sh /batch/$n >/batch/$n.out 2>/batch/$n.err \
        </dev/null
    status=$?
    cd / && rm -rf /tmp/batch/$n
    out=$(wc -c </batch/$n.out) err=$(wc -c </batch/$n.err)
    echo end $n $status $out $err
    head -c $out /batch/$n.out
    head -c $err /batch/$n.err
    sleep 0.05
}}
"""
BEGUN = re.compile(r"^.*batch: begin (\d+), .*\n", re.MULTILINE)


def batch(scripts, *options, smp=None, timeout=BATCH_PATIENCE,
          limit=SCRIPT_PATIENCE):
    """Runs shell scripts in one boot, each in its own shell and empty directory, for
    at most `limit` seconds. Returns {name: Result}, with the machine's under None.
    If the machine stops during a script, that script fails and the remaining ones
    run in another machine."""
    names, results, left = list(scripts), Results(), set(range(len(scripts)))
    for _ in range(MACHINES):
        run, finished, under_way = run_batch(
            {n: (names[n], scripts[names[n]]) for n in sorted(left)}, options,
            smp, timeout, limit)
        results[None] = run
        for n in left & set(finished):
            results[names[n]] = finished[n]
        left -= set(finished)
        if not left:
            return results
        n = under_way if under_way in left else min(left)
        left.remove(n)
        results[names[n]] = Result(
            None, "", run.errors, run.console, run.seconds,
            in_batch(options, smp, scripts[names[n]]),
            run.problem or f"the machine ended, with {run.status}")
        if not left:
            return results
    for n in left:
        results[names[n]] = Result(
            None, "", command=in_batch(options, smp, scripts[names[n]]),
            problem=f"not begun: the machine stopped {MACHINES} times, the "
            f"last time: {run.problem}")
    return results


def run_batch(scripts, options, smp, timeout, limit):
    """Runs scripts {number: (name, text)} in one machine. Returns its Result, {number:
    Result} of the ended scripts, and the number of the last one begun."""
    with tempfile.TemporaryDirectory(prefix="strobe-test-") as folder:
        top = f"{folder}/batch"
        os.makedirs(top)
        with open(f"{top}/run", "w") as run_file:
            run_file.write(RUN.format(limit=limit))
            for number, (name, text) in scripts.items():
                name = re.sub(r"[^\w ./-]", "", str(name))[:40]
                run_file.write(f"run {number} '{name}'\n")
                with open(f"{top}/{number}", "w") as file:
                    file.write(text)
        run, data = launch("sh /batch/run", [
            "--add", folder, "--silence", str(SILENCE), *options], smp, timeout)
    finished, rest = ended_scripts(data)
    run.output = rest.decode(errors="replace")
    parts = BEGUN.split(run.console)
    consoles = {int(n): text for n, text in zip(parts[1::2], parts[2::2])}
    for number, result in finished.items():
        result.console = consoles.get(number, "")
        result.command = in_batch(options, smp, scripts[number][1])
    return run, finished, max(consoles, default=None)


def in_batch(options, smp, script):
    """The command that runs a script alone."""
    return shlex.join(["tools/vm", "--smp", str(smp or cpus), *options, "--", script])


def ended_scripts(data):
    """{number: Result} of complete results in `data`, and the remaining data."""
    finished = {}
    while True:
        line = re.match(rb"end (\d+) (\d+) (\d+) (\d+)\n", data)
        if not line:
            return finished, data
        number, status, out, err = map(int, line.groups())
        out += line.end()
        err += out
        if len(data) < err:
            return finished, data
        finished[number] = Result(
            status, data[line.end():out].decode(errors="replace"),
            data[out:err].decode(errors="replace"))
        data = data[err:]


class Results(dict):
    """Results of a batch; remembers the last one used, for the report of a failed
    test."""
    last = None

    def __getitem__(self, name):
        self.last = super().__getitem__(name)
        return self.last


# --- sessions -----------------------------------------------------------------


class Console:
    """A session at the serial console, with the user's screen."""

    def __init__(self, *options, smp=2, prompt=PROMPT):
        self.prompt = prompt
        self.arguments = ["--smp", str(smp), "--timeout", str(SESSION_PATIENCE),
                          *options]
        self.start()

    def start(self):
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.text = self.all_text = ""
        self.prompts = 0
        self.child = pexpect.spawn(
            VM, self.arguments, dimensions=(ROWS, COLUMNS),
            timeout=ANSWER_PATIENCE, env={**os.environ, "TERM": "vt100"})
        self.child.delaybeforesend = None
        self.boot = self.wait_for(self.prompt)

    def revive(self):
        """Starts another machine if a previous test stopped it."""
        if not self.child.isalive():
            self.child.close()
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.close(force=True)

    def pump(self, seconds=0.05):
        """Reads the machine's output for at most `seconds`; False if none."""
        try:
            data = self.child.read_nonblocking(65536, seconds)
        except pexpect.TIMEOUT:
            return False
        self.stream.feed(data)
        self.text += data.decode(errors="replace")
        self.all_text += data.decode(errors="replace").replace("\r", "")
        return True

    def result(self):
        """The session so far, for the report of a failed test."""
        panics = re.findall(r"^KERNEL PANIC: (.*)", self.all_text,
                            re.MULTILINE)
        return Result(None, "\n".join(self.lines()), console=self.all_text,
                      command=shlex.join(["tools/vm", *self.arguments]),
                      problem="".join(f"the kernel panicked: {panic}"
                                      for panic in panics))

    def wait_for(self, text, seconds=ANSWER_PATIENCE):
        """Waits for `text`; returns the output before it, drops both."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, \
                f"no {text!r} in {self.text!r}\n" + "\n".join(self.lines())
            self.pump()
        before, self.text = self.text.split(text, 1)
        return before

    def settle(self, seconds=0.4):
        """Waits until nothing is printed for `seconds`. On a busy host more output may
        follow."""
        while self.pump(seconds):
            pass

    def screen_with(self, found, seconds=ANSWER_PATIENCE):
        """Waits until found(lines of the screen) is true; returns them."""
        deadline = time.monotonic() + seconds
        while not found(self.lines()):
            assert time.monotonic() < deadline, "\n".join(self.lines())
            self.pump()
        return self.lines()

    def send(self, text):
        self.child.send(text)

    def fresh_prompt(self):
        """Gets an empty prompt and drops earlier output. (The quotes distinguish the
        command's output from its echo.)"""
        self.prompts += 1
        self.send(f"\x03echo fresh''{self.prompts}\r")
        self.wait_for(f"fresh{self.prompts}\r\n")
        self.wait_for(self.prompt)

    def command(self, line, seconds=ANSWER_PATIENCE):
        """Types a command line; returns the output before the next prompt."""
        self.send(line + "\r")
        self.wait_for("\n", seconds)
        return self.wait_for(self.prompt, seconds).replace("\r", "")

    def lines(self):
        """The screen's lines, without trailing blanks."""
        return [line.rstrip() for line in self.screen.display]
