"""Results of runs, and their reports: a line for summaries, or the whole output."""
import re
import shlex
import signal

CONSOLE_LINES = 60
OUTPUT_LINES = 200
BROKEN = re.compile(r"^not ok.*|.*: expected .*|.*FAILED.*", re.MULTILINE)
VM_PROBLEM = re.compile(r"^tools/vm: (.*)\ntools/vm: again with: ",
                        re.MULTILINE)


class Result:
    """A run's status, output, errors, console output and seconds. `problem`: the
    machine's failure in a line, or ""."""

    def __init__(self, status, output, errors="", console="", seconds=0.0,
                 command="", problem=""):
        self.status, self.output, self.errors = status, output, errors
        self.console, self.seconds = console, seconds
        self.command = command
        self.problem = problem or "".join(VM_PROBLEM.findall(errors)[-1:])

    def status_in_words(self):
        if self.status is None:
            return "there is no status"
        if self.problem:
            return f"status {self.status} is tools/vm's own"
        if self.status > 128:
            return f"status {self.status}: {signal_name(self.status - 128)}"
        return f"status {self.status}"

    def line(self):
        """The result in a line."""
        if self.problem:
            return self.problem
        broken = BROKEN.findall(self.output)
        said = (self.errors or self.output).strip().splitlines()
        return ": ".join([self.status_in_words(), *(broken or said[-1:])[:1]])

    def __repr__(self):
        return self.line()

    def story(self):
        """The result with all output."""
        after = f", after {self.seconds:.1f} s" if self.seconds else ""
        parts = [f"{self.line()}\n{self.status_in_words()}{after}; the command "
                 f"was:\n{self.command}"]
        broken = BROKEN.findall(self.output)
        if broken:
            parts.append("what failed:\n" + "\n".join(broken))
        # Removes tools/vm's copy of the console's end: it follows below.
        errors = re.sub(
            r"^tools/vm: (the end of|again with).*\n|^\| .*\n?|^\|\n", "",
            self.errors, flags=re.MULTILINE)
        for name, text in (("output", tail(self.output, OUTPUT_LINES)),
                           ("errors", tail(errors, OUTPUT_LINES)),
                           ("console", self.end_of_console())):
            if text:
                parts.append(f"{name}:\n{text}")
        return "\n--- ".join(parts)

    def end_of_console(self):
        """The last lines; of a panic, from CONSOLE_LINES before its report on."""
        if self.console == self.output:
            return ""
        lines = self.console.splitlines()
        panic = [i for i, text in enumerate(lines) if "KERNEL PANIC: " in text]
        return tail(self.console, CONSOLE_LINES +
                    (len(lines) - panic[0] if panic else 0))


def signal_name(number):
    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return "of no signal"


def tail(text, count):
    lines = text.splitlines()
    left_out = len(lines) - count
    if left_out > 0:
        lines[:left_out] = [f"({left_out} lines before)"]
    return "\n".join(lines)


def of_process(done):
    """The Result of a subprocess.CompletedProcess."""
    def text(data):
        return data.decode(errors="replace") if isinstance(data, bytes) \
            else data or ""
    command = done.args if isinstance(done.args, str) else \
        shlex.join(map(str, done.args))
    return Result(done.returncode, text(done.stdout), text(done.stderr),
                  command=command)
