"""Test results and their output: a line for each suite, a paragraph for each
failure, the slowest tests, totals."""
import dataclasses
import re

SLOWEST = 20
REASON_MAX = 300  # characters
TRIES = ("", "", "2nd", "3rd")


@dataclasses.dataclass
class Case:
    """A test and its verdict: "passed", "failed" or "skipped". A failure also has
    the test's promise, the expected and the actual result, the command that
    repeats it (`again`) and the runner's arguments to do so (`where`)."""
    name: str
    verdict: str = "passed"
    seconds: float = 0.0
    cpu: float = 0.0  # CPU seconds, which do not depend on the host's load
    promise: str = ""
    expected: str = ""
    got: str = ""
    again: str = ""
    where: tuple = ()
    tries: int = 1

    @property
    def failed(self):
        return self.verdict == "failed"

    def red(self):
        """The paragraph of a failure."""
        said = (("promise", self.promise), ("expected", self.expected),
                ("got", self.got), ("again", self.again))
        return f"FAIL {self.name}\n" + "".join(
            f"    {key + ':':10}{line(value)}\n" for key, value in said if value)

    def second_try(self):
        return f"passed at the {TRIES[self.tries]} try: {self.name}: " \
               f"{line(self.got)}"


def line(text):
    """Text on one line, cut after REASON_MAX characters."""
    return " ".join(text.split()) if len(text) < REASON_MAX \
        else " ".join(text.split())[:REASON_MAX] + " ..."


def number(cases, verdict):
    return sum(case.verdict == verdict for case in cases)


def print_suite(name, cases, output):
    """Prints a suite's result and, if it failed, its output without the lines of
    passed tests."""
    failed = number(cases, "failed")
    print(f"{'FAIL' if failed else 'ok  '} {name}: "
          f"{number(cases, 'passed')} passed, {failed} failed", flush=True)
    if failed:
        said = re.sub(r"^(# running .*\n)?ok\b.*\n", "", output, flags=re.M)
        print("\n".join("    " + text for text in said.splitlines()),
              flush=True)


def lines_of_times(cases):
    """A line for each case, the slowest first."""
    return [f"{case.seconds:7.1f} {case.cpu:7.1f}  {case.name}"
            for case in sorted(cases, key=lambda case: -case.seconds)]


def print_sum(cases):
    slowest = lines_of_times(cases)[:SLOWEST]
    print(f"The {len(slowest)} slowest: seconds, CPU seconds:")
    print("\n".join(slowest))
    for case in cases:
        if case.tries > 1 and not case.failed:
            print(case.second_try())
    for case in cases:
        if case.failed:
            print(case.red(), end="")
    print(f"{number(cases, 'passed')} passed, {number(cases, 'failed')} failed")
