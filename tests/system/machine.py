"""Drives Strobe for the tests: single commands through tools/vm, batches of
them in one boot, and sessions at the console."""
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
# What tools/vm boots when no test says otherwise (tools/coverage names another).
KERNEL = os.environ.get("STROBE_KERNEL", f"{ROOT}/build/kernel.elf")
PROMPT = "strobe:"
ROWS, COLUMNS = 24, 80

# Time-outs, in seconds. They catch what hangs and nothing else: what takes 8 s
# on an idle machine may take a minute on a slow one with other work.
PATIENCE = 300           # a machine, or a tool on the host
LONG_PATIENCE = 1200     # what takes minutes on an idle machine
BATCH_PATIENCE = 3600    # a batch, of which each part has its own:
SCRIPT_PATIENCE = 300    # a script, in the guest's time
SILENCE = 360            # a machine that finishes no script
SESSION_PATIENCE = 1800  # a session at the console ...
ANSWER_PATIENCE = 100    # ... and an answer in it
# What a script runs until a profiler has begun.
TAKING = ("until sysinfo system.profile.sessions | grep -q taking; do"
          " usleep 20000; done")
# So that a kernel that always hangs does not take the whole day:
MACHINES = 3  # those that one batch may stop
HANGS = 8     # after so many none is started any more

# Virtual time: 8 ns an instruction, which is about what QEMU does in real time.
SHIFT = 3
# So that what programs cost does not depend on what was drawn before them.
FIXED_PLACES = "randomize_va_space=0"

hangs = 0
cpus = 1  # of a machine for which a test names no number


def use_clock(virtual):
    """The time of the machines that are started from now on: virtual, in which a
    run repeats to the digit, or the host's. REDRAW=N delays each start. In virtual
    time programs lie at fixed places, and a second CPU would take turns with the first (docs/testing.md), so it has
    one unless the test asks for more."""
    global cpus
    cpus = 1 if virtual else 2
    options = ["--icount", str(SHIFT), "--kargs", FIXED_PLACES] if virtual else []
    if os.environ.get("REDRAW"):
        options += ["--kargs", f"start_delay={os.environ['REDRAW']}"]
    os.environ["STROBE_VM"] = shlex.join(options)


def launch(command, options, smp, timeout):
    """Runs tools/vm. Gives its Result, and its output as it is, in bytes."""
    global hangs
    arguments = ["--smp", str(smp or cpus), "--timeout", str(timeout), *options]
    if command is not None:
        arguments += ["--", command]
    told = shlex.join(["tools/vm", *shlex.split(os.environ["STROBE_VM"]),
                       *arguments])
    if hangs >= HANGS:
        return Result(None, "", command=told, problem="not begun: "
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
                    told)
    # Who expects a time-out does not wait so long for it.
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
    """Runs tools/vm, with a command for the guest or without."""
    return launch(command, options, smp, timeout)[0]


# --- batches ------------------------------------------------------------------

# What the guest runs. That a script begins is said on the console, where it is
# read even if the machine ends with it; what it gave is sent when it has ended.
# The short sleep lets that be sent before the next one, which may measure.
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
    """Runs many shell scripts in one boot. Each has its own shell, an empty
    directory, and `limit` seconds. Gives a Result for each name, in a dict, and
    the machine's own under None. If the machine stops with a script, that one
    fails, and those not begun run in another machine."""
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
    """One machine for scripts {number: (name, text)}: its Result, those of the
    scripts that have ended, and which one was under way."""
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
    """How to run it without the others."""
    return shlex.join(["tools/vm", "--smp", str(smp or cpus), *options, "--", script])


def ended_scripts(data):
    """{number: Result} of what the guest has sent, and what is left of that."""
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
    """Those of a batch. Remembers which one was looked at last, for the story
    of a test that fails."""
    last = None

    def __getitem__(self, name):
        self.last = super().__getitem__(name)
        return self.last


# --- sessions -----------------------------------------------------------------


class Console:
    """A session at the serial console, with the screen that a user sees."""

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
        """For a test after one that the machine stopped with: another one."""
        if not self.child.isalive():
            self.child.close()
            self.start()

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
        self.all_text += data.decode(errors="replace").replace("\r", "")
        return True

    def result(self):
        """The session so far, for the story of a test that fails."""
        panics = re.findall(r"^KERNEL PANIC: (.*)", self.all_text,
                            re.MULTILINE)
        return Result(None, "\n".join(self.lines()), console=self.all_text,
                      command=shlex.join(["tools/vm", *self.arguments]),
                      problem="".join(f"the kernel panicked: {panic}"
                                      for panic in panics))

    def wait_for(self, text, seconds=ANSWER_PATIENCE):
        """Waits until `text` has been printed; forgets all before its end."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, \
                f"no {text!r} in {self.text!r}\n" + "\n".join(self.lines())
            self.pump()
        before, self.text = self.text.split(text, 1)
        return before

    def settle(self, seconds=0.4):
        """Waits until nothing has been printed for a while. On a busy host that
        may be in the middle of something."""
        while self.pump(seconds):
            pass

    def screen_with(self, found, seconds=ANSWER_PATIENCE):
        """Waits until the screen's lines are as `found` wants; gives them."""
        deadline = time.monotonic() + seconds
        while not found(self.lines()):
            assert time.monotonic() < deadline, "\n".join(self.lines())
            self.pump()
        return self.lines()

    def send(self, text):
        self.child.send(text)

    def fresh_prompt(self):
        """At an empty prompt, whatever was before: what has been printed until
        then is of no interest any more. (An echo has the quotes.)"""
        self.prompts += 1
        self.send(f"\x03echo fresh''{self.prompts}\r")
        self.wait_for(f"fresh{self.prompts}\r\n")
        self.wait_for(self.prompt)

    def command(self, line, seconds=ANSWER_PATIENCE):
        """Types a command line; gives what it printed until the next prompt."""
        self.send(line + "\r")
        self.wait_for("\n", seconds)
        return self.wait_for(self.prompt, seconds).replace("\r", "")

    def lines(self):
        """The screen, without blanks at the ends of lines."""
        return [line.rstrip() for line in self.screen.display]
